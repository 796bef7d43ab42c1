/* The three collectives that are routed, on their way from the door to a slot. */
#ifndef COLLX_CALLS_H
#define COLLX_CALLS_H

#include "pmpi/comm.h"

/* Give a new communicator the slots that it starts with: all calls to the MPI library, until it
 * has shown that it is used. */
void collx_calls_begin(struct collx_comm *comm);

/* After how many calls the ranks of a communicator first ask each other whether it is worth a
 * setup, if all of them are of this job; 0: it is set up before its first call.  All ranks of the
 * job say the same, before they make calls. */
void collx_calls_warm_up(uint64_t calls);

/* All further calls go to the MPI library, for `reason` (enum collx_reason). */
void collx_calls_to_mpi(struct collx_comm *comm, enum collx_kind kind, unsigned reason);

/* Hand the call to the MPI library; returns its error code. */
int collx_call_mpi(enum collx_kind kind, const struct collx_call *call);

/* Whether a call that returned `error` counts among those of its communicator.  One that MPI
 * refused for its arguments does not: it may have been made by one rank alone, and all must count
 * alike. One that failed later does, since others may have succeeded in it. */
bool collx_call_counts(int error);

/* Put the entries into the door's table: those that record a trace, or those that do not. */
void collx_calls_install(bool traced);

#endif
