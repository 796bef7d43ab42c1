/* MPI_COMM_WORLD: whether it can be used, and who is in it.  All of this is local. */
#ifndef COLLX_WORLD_H
#define COLLX_WORLD_H

#include "pmpi/comm.h"

/* It can be used: not before MPI_Init, not after MPI_Finalize, not with sessions alone. */
bool collx_world_up(void);

/* It has come up. */
void collx_world_keep(void);
/* The last that is open, of it and the sessions, is about to end; MPI may take no calls any more.
 */
void collx_world_finish(bool callable);

/* This process's rank there; in `comm` where a program has no MPI_COMM_WORLD. */
int collx_world_rank(const struct collx_comm *comm);

/* Whether all ranks of `comm` are of this process's MPI_COMM_WORLD, also when that has ended; the
 * same on all of them.  Not if some have been started by MPI_Comm_spawn since, or have come by
 * MPI_Comm_connect.  `there` gets, if it is not NULL, what they are there: [size]. */
bool collx_world_has(const struct collx_comm *comm, int *there);

/* Whether some rank of `comm` is of another one, as far as this process has a MPI_COMM_WORLD to
 * tell by; the same on all that have.  Local. */
bool collx_world_lacks(const struct collx_comm *comm);

/* This job shall go on when it loses ranks (ULFM: mpirun --with-ft), and says so once MPI is up.
 * Who waits for one in our collectives would not hear of it, nor that somebody has revoked the
 * communicator. */
bool collx_world_survives(void);

/* All that this process calls follows from its program alone: it has said that no more than one
 * thread will call MPI.  What threads have called before each other may be another way round in the
 * next run. */
bool collx_world_has_one_thread(void);

/* Several may call MPI at the same time, as far as this process can tell. */
bool collx_world_has_threads(void);

#endif
