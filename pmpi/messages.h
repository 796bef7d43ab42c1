/* Messages of algorithms, on a communicator that none of the program's can meet.
 *
 * There is one for all communicators of MPI_COMM_WORLD's processes, each of which has a tag there.
 * It is made within MPI_Init, where the policy may need it: later that could wait for what the
 * program has on its way, which may wait for us (Open MPI makes one communicator after the other),
 * and MPICH has room for some 2000.  What is not of that world, or may outlive it, gets one of its
 * own during the setup, where an algorithm listens.
 *
 * Neither is an MPI_Comm_dup of the program's: that would call what it has hung there.
 */
#ifndef COLLX_MESSAGES_H
#define COLLX_MESSAGES_H

#include "algorithms/missing.h"
#include "pmpi/comm.h"

/* MPI_COMM_WORLD has come up: make that of all.  Collective.  Where it fails each gets its own. */
void collx_messages_begin(void);

/* A new communicator may use that: it does not outlive it.  Local. */
bool collx_messages_can_share(void);

/* Have one, in comm->routes.messages, unless it is there.  Collective.  0; or an MPI error, and no
 * rank has one. */
int collx_messages_open(struct collx_comm *comm);

/* struct collx_lender_ops.listen and .transfer; ctx is the struct collx_comm.  The first one opens
 * what the second one needs. */
int collx_messages_listen(void *ctx, int count);
int collx_messages_transfer(void *ctx, const struct collx_message *messages, int count);

/* Who waits longer than `ms` says so, once in a wait: it is a rank of `comm`, for those who are
 * missing to receive what it `sends`, or for what they send to it.  0: nobody does. */
struct collx_patience {
    int64_t ms;
    void (*report)(struct collx_comm *comm, bool sends, struct collx_missing *missing,
                   uint64_t waited_ns);
};
/* As collx_messages_transfer(), of one who is not an algorithm. */
int collx_messages_exchange(struct collx_comm *comm, const struct collx_message *messages,
                            int count, const struct collx_patience *patience);

/* Their communicator is being freed, by all its ranks.  May be called where there are none; where
 * they share the one of all it calls nothing of MPI. */
void collx_messages_close(struct collx_messages *messages);

/* This thread is about to end MPI, which frees by itself what is left; or has done so. */
void collx_messages_end(bool ending);

#endif
