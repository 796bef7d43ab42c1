/* Keeping MPI going while a rank waits for a flag.
 *
 * A rank may enter a collective with a rendezvous send pending that another rank needs before it
 * can arrive.  MPI_Iprobe does not move such a send on every MPI; testing a request that is never
 * fulfilled does.  The request is a receive on a communicator of our own, of this rank alone.
 */
#ifndef COLLX_PROGRESS_H
#define COLLX_PROGRESS_H

#include "pmpi/pmpi.h"

/* Make the communicator of our own, from `comm`'s group (a program that uses sessions alone has no
 * MPI_COMM_SELF).  Local.  Once; later calls do nothing.  0 or an MPI error code. */
int collx_self_init(MPI_Comm comm);

/* The communicator of this rank alone; its error handler returns. */
MPI_Comm collx_self(void);

/* Let MPI move what is pending. */
void collx_progress(void);

/* MPI is about to end: cancel the requests, free the communicator; if it takes no calls any more,
 * forget them. */
void collx_self_finish(bool callable);

#endif
