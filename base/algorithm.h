/* What an algorithm is: one struct of function pointers, one file, one word in a policy.
 *
 * A new algorithm is a file algorithms/<collective>/<collective>_<name>.c that defines
 *     const struct collx_algorithm collx_<collective>_<name> = { … };
 * and its name in algorithms/meson.build.  The life of one on a communicator:
 *
 *     query    everywhere, from facts that are equal on all ranks: can it run here, or why not
 *     space    how much of the communicator's shared segment it needs
 *     place    on rank 0, before that memory is allocated: what lies on which NUMA node
 *     clear    on one rank of each node, where that memory is not new: what has to be zero
 *     attach   on every rank, when the segment is mapped
 *     connect  on every rank, when all have attached and agreed to go on: together
 *     takes    for each call, from what is equal on all ranks: is this one for us
 *     slot.run for each call that it takes
 *     detach   when nobody needs it any more
 *
 * It may outlive the communicator: the next one of the same ranks goes on with it, as if it were
 * the same.  The team stays, but not what its `ctx` and `name` are: look at those in the team, when
 * they are needed.
 */
#ifndef COLLX_ALGORITHM_H
#define COLLX_ALGORITHM_H

#include "base/call.h"

struct collx_place; /* hw/place.h */
struct collx_net;   /* hw/segment.h, as the next two */
struct collx_seg_caps;
struct collx_seg_ops;

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

enum { COLLX_MESSAGE_MAX = 1 << 30, COLLX_GATHER_MAX = 512 };

/* One of those that collx_lender_ops.transfer sends and receives. */
struct collx_message {
    int rank;     /* of the team, the other's; not the caller's own */
    bool sends;   /* data to that rank; else from it */
    void *data;   /* not changed where it is sent; overlaps no other message that is received */
    size_t bytes; /* COLLX_MESSAGE_MAX at most */
};

/* What the MPI adapter (or whoever else runs algorithms: tests do it with forked processes) lends
 * to a team.  `ctx` is the lender's.  Unless said otherwise functions return 0 or an MPI error
 * code that run() passes on to its caller. */
struct collx_lender_ops {
    /* What the names of collectives begin with for its users, for messages: "MPI_". */
    const char *prefix;
    /* Goes behind the question whether ranks that others wait for are in another call. */
    const char *stall_advice;
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
    /* The largest element that these can do, in bytes; 0: any. */
    size_t pack_most;
    /* Memory for `count` elements of call->datatype, laid out as MPI would have them: *base is what
     * to free(), the result the address to hand to reduce and unpack (they differ where the type's
     * lower bound is not 0).  NULL: out of memory.  Mandatory where Allreduce runs and
     * !call->contiguous can occur, or elements of more than 8 KiB. */
    void *(*elements)(void *ctx, const struct collx_call *call, int64_t count, void **base);
    /* What every rank has at `own`, `bytes` of it (COLLX_GATHER_MAX at most), into `all`, in the
     * order of the ranks.  Called from connect() alone, by all ranks equally often.  It keeps MPI
     * going while it waits.  Mandatory for algorithms that have connect(). */
    int (*gather)(void *ctx, const void *own, void *all, size_t bytes);
    /* Open a driver of segments of the lender's own, of that name, among the ranks leader[count],
     * in ascending order, each of which will make segments of `bytes` in all.  The driver's ops
     * have no open(); close() is theirs as ever, but the lender undoes what that leaves when the
     * team has ended, on all leaders together.  *ops is set on all ranks, *net and *caps on
     * leaders. Called from connect() alone, by all ranks, with equal arguments.  0; or not 0, on
     * all ranks, and why in `why`, maybe only on those where it failed.  NULL: it has no such
     * drivers. */
    int (*segments)(void *ctx, const char *name, const int *leader, int count, size_t bytes,
                    const struct collx_seg_ops **ops, struct collx_net **net,
                    struct collx_seg_caps *caps, char *why, size_t size);
    /* Make transfer() possible for this team, with up to `messages` messages at once.  Called from
     * connect() alone, by all ranks; where it fails it may have worked on others.  -ENOTSUP: there
     * is nothing that sends messages.  Mandatory for algorithms that have connect(). */
    int (*listen)(void *ctx, int messages);
    /* Send and receive these messages, all at the same time; back when all that is received is
     * there and all that was sent may be changed.
     *
     * Every message needs its counterpart: the other rank receives what is sent here, with the same
     * number of bytes.  What one rank sends to another arrives in the order in which it is sent.
     * Messages meet none but those of the same team's.  It blocks, however long the others take; it
     * keeps MPI going, lets others have the CPU, and reports a long wait like collx_wait_long.
     * After an error what was received is whatever it is, and the algorithm goes on with what the
     * others expect of it.  Called from run() alone, by one thread at a time for a team, after
     * listen().  Algorithms go through algorithms/messages.h. */
    int (*transfer)(void *ctx, const struct collx_message *messages, int count);
    /* What run() returns when memory ran out. */
    int no_memory;
    /* What it returns when another node cannot be reached any more. */
    int unreachable;
};

/* A communicator as algorithms see it. */
struct collx_team {
    int rank, size;
    /* Where each rank runs, the same on all ranks; NULL: nothing is known.  For place() and
     * attach() alone. */
    const struct collx_place *places;
    /* As in struct collx_facts; NULL: all are on one node.  For attach() and connect() alone. */
    const int *node;
    const struct collx_lender_ops *ops;
    void *ctx;
    /* How to wait; see algorithms/wait.h.  Known to all when everything is attached and connected,
     * not before. */
    int spins;    /* polls before the first sched_yield(); 0 with more ranks than CPUs */
    int pauses;   /* pause instructions between two polls */
    bool crowded; /* more ranks than usable CPUs: others need the CPU that we wait on */
    /* Of these, where a cgroup has less CPU time than its ranks would take: waiting uses it up. */
    bool rationed;
    /* Shared by the ranks of a crowd: 1 + the CPU that each was last seen on; 0: on none yet.
     * NULL: nobody looks. */
    int32_t *seen;
    int stall_ms; /* a wait longer than this is reported once; 0: never */
    bool stalled; /* it was */
    /* Shared by the ranks: nonzero when one has reported a stall for all; NULL: each for itself. */
    uint32_t *stall_said;
    /* For messages: the process of each of the first `pids` ranks; 0: not known, or elsewhere. */
    const int32_t *pid;
    int pids;
    const char *name; /* for messages: "MPI_COMM_WORLD", "a communicator of 3 ranks" */
};

struct collx_algorithm {
    const char *name;  /* the policy word */
    const char *help;  /* one line */
    const char *needs; /* one line: what it takes to run */
    enum collx_kind kind;
    /* It combines rank 0, 1, 2, … from the left, whatever the call, and wherever the ranks are. */
    bool rank_order;
    const struct collx_param *params; /* NULL: none */

    /* Pure.  0, or COLLX_EUNFIT and one line in `why`.  NULL: it can run everywhere. */
    int (*query)(const struct collx_facts *facts, const struct collx_args *args, char *why,
                 size_t size);
    /* Local, for `collx info` and `collx policy explain`: whether this machine has what it takes.
     * In `text` what there is, or, if the result is not 0, what is missing.  NULL: query() knows.
     */
    int (*look)(char *text, size_t size);
    /* Pure.  Bytes of each node's segment that it wants, zeroed; a multiple of COLLX_LINE.  NULL:
     * none. */
    size_t (*space)(const struct collx_facts *facts, const struct collx_args *args);
    /* Local; on rank 0 alone, only where all ranks are on one node, and only where facts.numa_nodes
     * says that it is of use.  `memory` is what attach will be given, mapped but not yet allocated:
     * collx_shm_place() tells where it shall be.  NULL: anywhere. */
    void (*place)(const struct collx_team *team, const struct collx_args *args, void *memory);
    /* Local; on one rank of each node.  `memory` is such a piece, and has been used for something
     * else: zero it, but for what attach() and run() do not expect to be zero, as data that nobody
     * reads before it is written.  NULL: all of it has to be zeroed. */
    void (*clear)(const struct collx_facts *facts, const struct collx_args *args, void *memory);
    /* Local; all ranks call it.  `memory` is the same piece of the shared segment on all ranks of a
     * node, aligned to COLLX_LINE; NULL where it wants none.  Sets slot->run, to code that suits
     * this team, and slot->state.  It may fail for want of memory alone (-ENOMEM); all ranks then
     * agree not to use it.  Mandatory. */
    int (*attach)(struct collx_team *team, const struct collx_args *args, void *memory,
                  struct collx_slot *slot);
    /* Collective: after attach() has worked on all ranks, what it takes to do together, by the
     * lender's gather() and listen().  0, or not 0 and one line in `why`, maybe not on all ranks,
     * which then agree not to use it.  It may set slot->run.  NULL: there is nothing to do. */
    int (*connect)(struct collx_team *team, struct collx_slot *slot, char *why, size_t size);
    /* Whether this call can be taken, from what is equal on all ranks: bytes, op_kind, root, and of
     * a reduction elem_bytes (a Bcast may have other elements on each rank) and whole, at which it
     * has to look if it gives an operation some of the elements at a time.  NULL: all. */
    bool (*takes)(const void *state, const struct collx_call *call);
    /* One line for COLLX_VERBOSE about how it works on this team.  NULL: nothing to say. */
    void (*describe)(const void *state, char *line, size_t size);
    /* Local, without any MPI call.  Mandatory. */
    void (*detach)(void *state);
};

/* Everything that there is, NULL-terminated, in the order of algorithms/meson.build. */
extern const struct collx_algorithm *const collx_algorithms[];

/* Of them all and of how processes work together: the same in two processes that can. */
uint64_t collx_algorithms_hash(void);

/* The algorithm of that name for that collective, or NULL. */
const struct collx_algorithm *collx_algorithm_find(enum collx_kind kind, const char *name);

#endif
