/* The trace: what the adapter tells the recorder.  Only a process with COLLX_TRACE set comes here,
 * but for collx_trace_begin, _set_start and _end, which do nothing in others that shows. */
#ifndef COLLX_PMPI_TRACE_H
#define COLLX_PMPI_TRACE_H

#include "pmpi/comm.h"
#include "trace/recorder.h"

/* There will be something to record.  Called while the adapter itself is loaded: later a thread
 * that loads a library holds the loader's lock, and its constructor may have something to record.
 */
void collx_trace_load(void);
/* MPI has been initialised; it has ended, but may begin again.  `job`: collx_setup_begin()'s
 * number; 0: there is none. */
void collx_trace_begin(uint64_t job);
void collx_trace_end(void);
/* The run began then, if nobody has said so before: a session has been opened, with or without
 * MPI_Init to come. */
void collx_trace_set_start(uint64_t when_ns);

/* Carry out a routed collective and record it; `caller` is where it returns to. */
int collx_trace_call(enum collx_kind kind, struct collx_call *call, const void *caller);

/* Record a collective that has just returned, with all of *event filled in but communicator,
 * sequence and call site.  `refused`: for its arguments.  Returns what recorder->complete() takes.
 */
uint64_t collx_trace_add(struct collx_trace_event *event, MPI_Comm comm, bool refused,
                         const void *caller);
/* Whether the bytes of a call have to be found before it: another thread may free its types as soon
 * as others have what it gives them.  Not on a communicator that nobody knows yet, since what is
 * none is MPI's to report, nor on an intercommunicator. */
bool collx_trace_looks_before(MPI_Comm comm);
/* Bytes of `count` elements; 0 where the type is none.  `before`: the call; else it went well. */
uint64_t collx_trace_bytes(bool before, int64_t count, MPI_Datatype type);
/* A nonblocking collective is over. */
void collx_trace_complete(uint64_t event);

/* pmpi/traced.c: put the entries that record the collectives that are not routed into the door's
 * table. */
void collx_traced_install(void);

#endif
