/* When communicators are set up: see pmpi/warmup.c. */
#ifndef COLLX_WARMUP_H
#define COLLX_WARMUP_H

#include "pmpi/comm.h"

/* Give a new communicator the slots that it starts with: all calls to the MPI library, until it
 * has shown that it is used. */
void collx_warmup_begin(struct collx_comm *comm);

/* Count the last call on it, if that has been left: the others have, and may be waiting for this
 * rank to set it up.  Collective, then. */
void collx_warmup_settle(struct collx_comm *comm);

/* Nothing has been left on this one, which goes before it has been looked at.  Local. */
void collx_warmup_forget(MPI_Comm comm);

/* After how many calls a communicator is set up at the latest, if all its ranks are of this job; 0:
 * before its first one; COLLX_WARMUP_CALLS: as others are, by the number of its ranks;
 * COLLX_WARMUP_NEVER: none is.  All ranks of the job say the same, before they make calls. */
void collx_warmup_set(uint64_t calls);

/* No node has more ranks than this, and the policy names nothing that works between nodes: larger
 * communicators have no routes.  All ranks of the job say so, or none, likewise. */
void collx_warmup_set_most(int ranks);

#endif
