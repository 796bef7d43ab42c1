/* The trace recorder, as the adapter sees it.
 *
 * It is a library of its own, libcollx-trace.so, that an adapter loads from beside itself when
 * COLLX_TRACE is set: it needs libunwind, which has no business in a process that is not traced.
 * All functions may be called from any thread; none calls MPI; none fails visibly: when the disk
 * is full or the limit is reached, tracing stops with one message and the job goes on.
 */
#ifndef COLLX_RECORDER_H
#define COLLX_RECORDER_H

#include "base/collectives.h"

#include <stddef.h>
#include <stdint.h>

/* Why a call went the way it did. */
#define COLLX_REASONS(X)                                                                           \
    X(POLICY, "policy")               /* a rule chose it */                                        \
    X(NOT_ROUTED, "not routed")       /* collx has no routes for this collective */                \
    X(WARMUP, "warm-up")              /* the communicator had not shown yet that it is used */     \
    X(NOT_TAKEN, "not taken")         /* the algorithm does not take such a call */                \
    X(BAD_ARGUMENT, "bad argument")   /* left to the MPI library to report */                      \
    X(INTERCOMM, "intercommunicator") /* collx routes nothing between two groups */                \
    X(SETUP_FAILED, "setup failed")   /* the ranks agreed to do without, as the job said */        \
    X(OTHER_JOBS, "other jobs")       /* some of its processes are of another job */

enum collx_reason {
#define X(REASON, text) COLLX_REASON_##REASON,
    COLLX_REASONS(X)
#undef X
        COLLX_REASON_COUNT,
};

struct collx_trace_setup {
    const char *dir;   /* COLLX_TRACE */
    uint64_t limit;    /* bytes that the file may have at most; 0: no limit */
    uint64_t job;      /* equal on all ranks of a job, and no other job has it (a random number
                          that rank 0 hands out); 0: made up from what the launcher says */
    uint64_t start_ns; /* collx_clock_ns() when the run began; 0: now */
    int call_sites;    /* find and store them */
    int world_rank;    /* -1: the program has no MPI_COMM_WORLD (sessions) */
    int world_size;    /* 0 likewise */
    const char *mpi;   /* "Open MPI v4.1.4", … */
    const char *const *routes; /* names by route number, NULL-terminated; [0] is "pmpi" */
};

struct collx_trace_comm {
    uint64_t global; /* equal on all ranks of the communicator, different for different ones */
    int rank, size, nodes; /* nodes 0: not known yet */
    uint64_t shared;       /* bytes of memory that its ranks share, together */
    const char *name;      /* what MPI_Comm_get_name says; NULL or "": it has none */
};

struct collx_trace_event {
    uint64_t begin_ns, end_ns; /* collx_clock_ns() at entry and return */
    uint64_t bytes;            /* size of what this rank contributes or receives; see docs */
    uint32_t comm;             /* what comm() returned */
    uint32_t sequence;         /* which call on that communicator, counted from 0 */
    uint32_t site;             /* what site() returned */
    int32_t root;              /* -1: has none */
    uint8_t kind, form;        /* enum collx_kind, enum collx_form */
    uint8_t op;                /* enum collx_op */
    uint8_t route, reason;     /* index into setup.routes; enum collx_reason */
};

enum { COLLX_RECORDER_VERSION = 5 };

struct collx_recorder {
    unsigned version;
    /* Open the file of this rank.  0, or a negative errno and a reason in `why`. */
    int (*open)(const struct collx_trace_setup *setup, char *why, size_t size);
    /* Where in the program the MPI call being carried out was made: `caller` is the address that
     * the MPI function will return to.  Where that lies in a library that only passes MPI calls on
     * (Fortran bindings, collx, a tool), the stack is unwound to the program itself. */
    uint32_t (*site)(const void *caller);
    /* A communicator, seen for the first time (or known better than before: same `global`).  Each
     * call gives a new number, and any of them does for an event. */
    uint32_t (*comm)(const struct collx_trace_comm *comm);
    /* Returns a number by which complete() finds the event, or UINT64_MAX if it was dropped. */
    uint64_t (*event)(const struct collx_trace_event *event);
    /* A nonblocking collective was seen to be over. */
    void (*complete)(uint64_t event, uint64_t when_ns);
    /* The ranks have agreed on a job number since open(). */
    void (*adopt)(uint64_t job);
    /* The run is over (MPI_Finalize).  A file that was never closed is as good. */
    void (*close)(void);
    /* It was not: MPI has begun again, and the same file goes on.  Nothing where it was not closed,
     * or was by the parent of a fork. */
    void (*reopen)(void);
};

/* The one symbol that libcollx-trace.so exports. */
#define COLLX_RECORDER_SYMBOL "collx_recorder"

#endif
