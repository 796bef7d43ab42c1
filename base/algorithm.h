/* What an algorithm is: one struct of function pointers, one file, one word in a policy.
 *
 * A new algorithm is a file algorithms/<collective>_<name>.c that defines
 *     const struct collx_algorithm collx_<collective>_<name> = { … };
 * and its name in algorithms/meson.build.  The life of one on a communicator:
 *
 *     query    everywhere, from facts that are equal on all ranks: can it run here, or why not
 *     space    how much of the communicator's shared segment it needs
 *     place    on rank 0, before that memory is allocated: what lies on which NUMA node
 *     attach   on every rank, when the segment is mapped and all ranks agreed to go on
 *     takes    for each call, from what is equal on all ranks: is this one for us
 *     slot.run for each call that it takes
 *     detach   when the communicator is freed
 */
#ifndef COLLX_ALGORITHM_H
#define COLLX_ALGORITHM_H

#include "base/call.h"

struct collx_place; /* hw/place.h */

/* Where the ranks of a communicator are: equal on all ranks, so that all decide alike. */
struct collx_facts {
    int ranks;
    int nodes;
    int node_ranks_min, node_ranks_max; /* fewest and most ranks that a node has */
    int numa_nodes; /* NUMA nodes that the ranks are bound to; 0, 1: placing memory is no use */
    /* Where each rank runs; NULL: nothing is known.  For space() alone. */
    const struct collx_place *places;
    /* The number of each rank's node, counted in the order in which the ranks first mention them:
     * so the lowest ranks of the nodes, their leaders, are in order, too.  NULL: not known, or not
     * any more; it is for space() and query() in a job. */
    const int *node;
};

/* A parameter of an algorithm, as in `use: [nx(n=6)]`.  An array of them ends with name NULL. */
struct collx_param {
    const char *name, *help;
    int64_t initial, min, max; /* initial: the value where the policy says nothing */
    const char *const *words;  /* NULL: a number.  Else NULL-terminated; the value is an index */
};

enum { COLLX_PARAMS_MAX = 4 };

/* The values of an algorithm's parameters, in the order in which it lists them. */
struct collx_args {
    int64_t value[COLLX_PARAMS_MAX];
};

/* What the MPI adapter (or whoever else runs algorithms: tests do it with forked processes) lends
 * to a team.  `ctx` is the lender's.  Unless said otherwise functions return 0 or an MPI error
 * code that run() passes on to its caller. */
struct collx_mpi_ops {
    /* Keep MPI going: called again and again by a waiting rank, never on the fast path.  Must not
     * block.  Mandatory. */
    void (*progress)(void *ctx);
    /* inout = in op inout, for `count` elements of call->datatype laid out as MPI would have them.
     * Mandatory where Allreduce runs. */
    int (*reduce)(void *ctx, const struct collx_call *call, const void *in, void *inout,
                  int64_t count);
    /* Between a buffer as MPI describes it and call->bytes bytes in type-map order.  `first` and
     * `count` choose elements of the buffer.  Mandatory where !call->contiguous can occur. */
    int (*pack)(void *ctx, const struct collx_call *call, const void *buf, int64_t first,
                int64_t count, void *packed);
    int (*unpack)(void *ctx, const struct collx_call *call, const void *packed, void *buf,
                  int64_t first, int64_t count);
    /* Memory for `count` elements of call->datatype, laid out as MPI would have them: *base is what
     * to free(), the result the address to hand to reduce and unpack (they differ where the type's
     * lower bound is not 0).  NULL: out of memory.  Mandatory where Allreduce runs. */
    void *(*elements)(void *ctx, const struct collx_call *call, int64_t count, void **base);
    /* Send `sbytes` bytes to team rank `to`, and receive `rbytes` from team rank `from`, at the
     * same time; back when `rbuf` is filled and `sbuf` may be changed.  Where a size is 0 there is
     * no message that way, and its rank and buffer are not looked at.  Neither rank is the caller's
     * own; the buffers do not overlap; a message has at most COLLX_MESSAGE_MAX bytes.
     *
     * Every message needs its counterpart: the other rank calls this too, with the same number of
     * bytes.  What one rank sends to another arrives in the order in which it is sent.  Messages
     * meet none but those of the same team's.  It blocks, however long the others take; it keeps
     * MPI going, lets others have the CPU, and reports a long wait like collx_wait_long.  After an
     * error rbuf is whatever it is, and the algorithm goes on with what the others expect of it.
     * Called from run() alone, by one thread at a time for a team.  Mandatory for algorithms that
     * say .needs_messages. */
    int (*exchange)(void *ctx, int to, const void *sbuf, size_t sbytes, int from, void *rbuf,
                    size_t rbytes);
    /* What run() returns when memory ran out. */
    int no_memory;
};

enum { COLLX_MESSAGE_MAX = 1 << 30 };

/* A communicator as algorithms see it. */
struct collx_team {
    int rank, size;
    /* Where each rank runs, the same on all ranks; NULL: nothing is known.  For place() and
     * attach() alone. */
    const struct collx_place *places;
    /* As in struct collx_facts; NULL: all are on one node.  For attach() alone. */
    const int *node;
    const struct collx_mpi_ops *ops;
    void *ctx;
    /* How to wait; see algorithms/wait.h. */
    int spins;    /* polls before the first sched_yield(); 0 with more ranks than CPUs */
    int pauses;   /* pause instructions between two polls */
    bool crowded; /* more ranks than usable CPUs: others need the CPU that we wait on */
    int stall_ms; /* a wait longer than this is reported once; 0: never */
    bool stalled; /* it was */
    /* Shared by the ranks: nonzero when one has reported a stall for all; NULL: each for itself. */
    uint32_t *stall_said;
    const char *name; /* for messages: "MPI_COMM_WORLD" or a number */
};

struct collx_algorithm {
    const char *name;  /* the policy word */
    const char *help;  /* one line */
    const char *needs; /* one line: what it takes to run */
    enum collx_kind kind;
    /* It combines rank 0, 1, 2, … from the left, whatever the call, and wherever the ranks are. */
    bool rank_order;
    bool needs_messages;              /* it calls collx_mpi_ops.exchange */
    const struct collx_param *params; /* NULL: none */

    /* Pure.  0, or COLLX_EUNFIT and one line in `why`.  Mandatory. */
    int (*query)(const struct collx_facts *facts, const struct collx_args *args, char *why,
                 size_t size);
    /* Pure.  Bytes of the team's segment that it wants, zeroed; a multiple of COLLX_LINE.  Only
     * where all ranks are on one node may it want any.  NULL: none. */
    size_t (*space)(const struct collx_facts *facts, const struct collx_args *args);
    /* Local; on rank 0 alone, and only where facts.numa_nodes says that it is of use.  `memory` is
     * what attach will be given, mapped but not yet allocated: collx_shm_place() tells where it
     * shall be.  NULL: anywhere. */
    void (*place)(const struct collx_team *team, const struct collx_args *args, void *memory);
    /* Local; all ranks call it.  `memory` is the same piece of the shared segment on all ranks,
     * aligned to COLLX_LINE; NULL where it wants none.  Sets slot->run, to code that suits this
     * team, and slot->state.  It may fail for want of memory alone (-ENOMEM); all ranks then agree
     * not to use it. Mandatory. */
    int (*attach)(struct collx_team *team, const struct collx_args *args, void *memory,
                  struct collx_slot *slot);
    /* Whether this call can be taken, from what is equal on all ranks: bytes, op_kind, root, and of
     * a reduction elem_bytes (a Bcast may have other elements on each rank).  NULL: all. */
    bool (*takes)(const void *state, const struct collx_call *call);
    /* One line for COLLX_VERBOSE about how it works on this team.  NULL: nothing to say. */
    void (*describe)(const void *state, char *line, size_t size);
    /* Local, without any MPI call.  Mandatory. */
    void (*detach)(void *state);
};

/* Everything that there is, NULL-terminated, in the order of algorithms/meson.build. */
extern const struct collx_algorithm *const collx_algorithms[];

/* The algorithm of that name for that collective, or NULL. */
const struct collx_algorithm *collx_algorithm_find(enum collx_kind kind, const char *name);

#endif
