/* Setting communicators up: see pmpi/setup.c. */
#ifndef COLLX_SETUP_H
#define COLLX_SETUP_H

#include "pmpi/comm.h"

/* MPI_COMM_WORLD has come up: agree on when communicators are set up: before their first call, or
 * after a few of them.  A policy that demands rank order demands it of every call.  And rank 0's
 * policy becomes everybody's.  Collective.  Returns a number for the job that no other has; 0,
 * where nobody traces it. */
uint64_t collx_setup_begin(void);

/* Whether the communicator is due to be set up: any of its ranks says so, or, with `met`, rank 0.
 * Collective.  It is what communicators pay for that are never set up, so it does nothing else.
 * `met`: all its ranks are known to run under collx, since they have met there, and need no
 * patience: then a Bcast does, in a third of the time. */
bool collx_comm_is_due(struct collx_comm *comm, bool due, bool met);

/* Whether it must not be set up, as it has ranks of other jobs, who may know nothing of collx; then
 * its slots are final.  Local: every rank that is under collx says the same. */
bool collx_comm_is_barred(struct collx_comm *comm);

/* Agree with the other ranks on the routes of this communicator, and put them into its slots.
 * Collective.  Afterwards its slots are final, whatever happened. */
void collx_comm_setup(struct collx_comm *comm);

/* The opposite of collx_comm_setup: local and without an MPI call, but collective over the leaders
 * of nodes where they have windows (pmpi/rma.h).  Twice is once; in a child that the process
 * has forked it is nothing. */
void collx_comm_teardown(struct collx_comm *comm);

#endif
