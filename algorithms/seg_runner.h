/* Running the schedule of a node over segments: a write is a store into another node's segment,
 * checked and repeated until it has arrived; a wait polls a flag in one's own.
 *
 * Each node has one segment with a line for each slot of the schedule.  What is to be done is
 * worked out once, by collx_seg_runner_connect(); collx_seg_runner_run() does nothing else.
 *
 * The life of one: open, make, connect, run again and again, finish.  Every node has to be done
 * with a step before another one does the next, and to know that it went well; how they tell each
 * other is up to the user.
 */
#ifndef COLLX_SEG_RUNNER_H
#define COLLX_SEG_RUNNER_H

#include "algorithms/schedule.h"
#include "base/algorithm.h"
#include "hw/segment.h"

/* What is waited for in one's own segment. */
struct collx_seg_awaited {
    size_t offset;
    int node;
};

struct collx_seg_round {
    int writes, waits; /* how many; first all writes, then all waits */
};

struct collx_seg_runner {
    struct collx_team *team;
    const struct collx_seg_ops *ops;
    struct collx_net *net;
    struct collx_seg_caps caps;
    struct collx_export *made;
    void *local;
    size_t line, bytes;
    uint32_t epoch; /* of the last run */
    bool used;      /* it has been run */
    bool gone;      /* another node cannot be reached any more */
    bool lent;      /* the net is, so its lender sees to its end */

    struct collx_remote **remote; /* [nodes]; NULL: nothing is written there */
    int nodes;
    const int *leader; /* [nodes], the user's: which ranks speak for the nodes, for messages */

    struct collx_seg_round *round; /* [rounds] */
    int rounds;
    struct collx_remote **to; /* of all writes, in order; */
    size_t *at;               /* and where */
    struct collx_seg_awaited *awaited;
    uint8_t *state; /* of as many remotes as there are nodes */

    /* Where the last message of each node lies: see collx_seg_runner_finish(). */
    size_t *farewell_at;  /* [nodes], in the segments of those who are written to */
    size_t *farewell_own; /* [nodes], in one's own */
};

/* Zero a runner, and open the driver.  `leader` has to stay.  0, or as the driver's open(). */
int collx_seg_runner_open(struct collx_seg_runner *runner, struct collx_team *team,
                          const struct collx_seg_ops *ops, const int *leader, char *why,
                          size_t size);

/* The same with a driver that is open, of collx_mpi_ops.segments. */
void collx_seg_runner_borrow(struct collx_seg_runner *runner, struct collx_team *team,
                             const struct collx_seg_ops *ops, struct collx_net *net,
                             const struct collx_seg_caps *caps, const int *leader);

/* Make this node's segment; `line`: the largest that any node's caps have.  0 or -errno. */
int collx_seg_runner_make(struct collx_seg_runner *runner, const struct collx_schedule *schedule,
                          size_t line, struct collx_seg_address *address, char *why, size_t size);

/* Connect to the segments of those that the schedule writes to; address(context, node) tells where
 * they are.  0 or -errno. */
int collx_seg_runner_connect(struct collx_seg_runner *runner, const struct collx_schedule *schedule,
                             const struct collx_seg_address *(*address)(const void *context,
                                                                        int node),
                             const void *context, char *why, size_t size);

/* The next barrier; collective over the nodes.  0, or -ENOTCONN: a node is gone; then it cannot be
 * run any more.  `what`: the collective's name, for messages. */
int collx_seg_runner_run(struct collx_seg_runner *runner, const char *what);

/* End what has come about.  Local, does not wait for other nodes; but they may still be in the last
 * barrier, and repeat stores that have arrived here.  So this segment stays until all who write to
 * it have said, by a last flag, that they do so no more; see seg_retired.h. */
void collx_seg_runner_finish(struct collx_seg_runner *runner);

#endif
