/* COLLX_CHECK: the ranks of a communicator compare what they call, before collx carries it out.
 *
 * MPI wants the same collective on all ranks, with the same root and as many bytes, and leaves what
 * happens otherwise open.  Some MPI libraries let much of it pass; ranks that wait for each other's
 * flags stand still, or read what was not meant for them.
 */
#ifndef COLLX_CHECK_H
#define COLLX_CHECK_H

#include "pmpi/comm.h"

/* From now on compare the calls of this communicator, which has just been set up, before they go
 * where they go now: by messages of their own, so that who waits for a rank that calls nothing can
 * say for whom.  Where they differ rank 0 says so, and this call and all later ones go to the MPI
 * library.  Collective.  Where a rank has no memory for it nothing is compared, and that is said.
 */
void collx_check_install(struct collx_comm *comm);
/* The communicator has no routes any more.  Local, without an MPI call; twice is once. */
void collx_check_finish(struct collx_comm *comm);

#endif
