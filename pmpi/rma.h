/* Segments through MPI's own one-sided communication, between any processes that MPI reaches.
 *
 * The driver is as hw/segment.h has it, but for its beginning and its end, which MPI makes
 * collective: each net of a communicator is a window, in which all segments of a process are.
 * docs/segments.md says which guarantees of MPI it rests on.
 */
#ifndef COLLX_RMA_H
#define COLLX_RMA_H

#include "hw/segment.h"
#include "pmpi/comm.h"

/* Has no open(): collx_rma_open() makes its net.  All else is local, and only store(), copy(),
 * check() and progress() call MPI. */
extern const struct collx_seg_ops collx_segment_rma;

/* Make another net of the communicator, into comm->rma: among leaders[count], ascending ranks of
 * the communicator, of which this one may be one.  Each of them may make segments of `bytes` in
 * all, after which -ENOSPC comes. Collective over the whole communicator, with equal arguments.  0,
 * also for those who are no leaders, whose comm->rma stays as it is; COLLX_EUNFIT and in `why` what
 * is missing and what to do; or an MPI error of the communicator itself.  The result is the same on
 * all ranks, the sentence not.  Nobody has windows while a session is open on any of the ranks.
 */
int collx_rma_open(struct collx_comm *comm, const int *leaders, int count, size_t bytes,
                   struct collx_seg_caps *caps, char *why, size_t size);

/* Free comm->rma, and the nets before it, if there is one.  Whoever used it has closed it.
 * Collective over the leaders. */
void collx_rma_close(struct collx_comm *comm);

/* MPI is about to end: free all windows that are left, while MPI can still do it.  Collective over
 * all processes.  Who stores afterwards hears that the others are gone.  Not `callable`: MPI takes
 * no calls any more, so that they are left to it.  Local. */
void collx_rma_end(bool callable);

#endif
