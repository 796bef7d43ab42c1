/* Messages of algorithms, on a communicator of their own that none of the program's can meet.
 *
 * It has the ranks of the program's communicator, in the same order, and is made during the setup,
 * only where an algorithm listens.  It is no MPI_Comm_dup of it: that would call what a program
 * has hung on its communicator.
 */
#ifndef COLLX_MESSAGES_H
#define COLLX_MESSAGES_H

#include "pmpi/comm.h"

/* Make it, into comm->messages, unless it is there.  Collective.  0 or an MPI error; then it may be
 * there on other ranks. */
int collx_messages_open(struct collx_comm *comm);

/* struct collx_mpi_ops.listen and .transfer; ctx is the struct collx_comm.  The first opens them.
 */
int collx_messages_listen(void *ctx, int messages);
int collx_messages_transfer(void *ctx, const struct collx_message *messages, int count);

/* comm's communicator is being freed, by all its ranks.  May be called where there is none. */
void collx_messages_close(struct collx_comm *comm);

/* This thread is about to end MPI, which frees by itself what is left; or has done so. */
void collx_messages_end(bool ending);

#endif
