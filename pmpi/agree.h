/* What the ranks tell each other while they agree on something: small collectives of the MPI
 * library itself, which all of them make in the same order.
 *
 * The first time is where a job hangs of which not every process runs under collx, so they do not
 * wait in silence then: by nonblocking ones, or by messages.  All return 0 or an MPI error.
 */
#ifndef COLLX_AGREE_H
#define COLLX_AGREE_H

#include "pmpi/comm.h"

enum { COLLX_AGREE_WORDS = 8 };

/* All ranks of MPI_COMM_WORLD have agreed on something, in MPI_Init, and no session was open then
 * whose communicators may have been used before.  Said by all of them, or by none. */
void collx_agree_world_met(void);

/* Whether all ranks of this communicator are known to have done so with each other; all say the
 * same.  Not of those of another job. */
bool collx_agree_has_met(struct collx_comm *comm);

/* `bytes` of each rank, in rank order. */
int collx_agree_from_all(struct collx_comm *comm, const void *own, void *all, size_t bytes);

/* `bytes` of rank 0. */
int collx_agree_from_zero(struct collx_comm *comm, void *data, size_t bytes);

/* Bits that any rank has set, in `count` words, at most COLLX_AGREE_WORDS. */
int collx_agree_any(struct collx_comm *comm, uint64_t *words, int count);

/* The same on MPI_COMM_WORLD in MPI_Init, before the program can have messages on their way there.
 * With Open MPI by messages, in dissemination (Hensgen, Finkel and Manber, 1988): from the first
 * nonblocking collective on, which making a communicator has as well, each of its calls that polls
 * looks after those, too, and a program that polls much without one was 8 % slower for it.  A rank
 * leaves when it has had all that others send it here, so none is there for the program to find. */
int collx_agree_first(struct collx_comm *world, uint64_t *words, int count);

#endif
