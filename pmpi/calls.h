/* The three collectives that are routed, on their way from the door to a slot. */
#ifndef COLLX_CALLS_H
#define COLLX_CALLS_H

#include "pmpi/comm.h"

/* Give a new communicator the slots that it starts with: all calls to the MPI library, until it
 * has shown that it is used. */
void collx_calls_begin(struct collx_comm *comm);

/* From now on communicators whose ranks are all of this job are set up before their first call, not
 * after a few of them.  All ranks of the job say the same, before they make calls. */
void collx_calls_set_up_at_once(bool yes);

/* All further calls go to the MPI library, for `reason` (enum collx_reason). */
void collx_calls_to_mpi(struct collx_comm *comm, enum collx_kind kind, unsigned reason);

/* Hand the call to the MPI library; returns its error code. */
int collx_call_mpi(enum collx_kind kind, const struct collx_call *call);

/* Put the entries into the door's table: those that record a trace, or those that do not. */
void collx_calls_install(bool traced);

#endif
