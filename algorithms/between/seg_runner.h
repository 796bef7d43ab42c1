/* Running the schedule of a node over segments: a write is a store into another node's segment,
 * checked and repeated until it has arrived; a wait polls a flag in one's own.
 *
 * Each node has one segment with a line for each slot of the schedule.  What is to be done is
 * worked out once, by collx_seg_runner_connect(); collx_seg_runner_run() does nothing else.
 */
#ifndef COLLX_SEG_RUNNER_H
#define COLLX_SEG_RUNNER_H

#include "algorithms/between/schedule.h"
#include "algorithms/between/seg_links.h"

/* What is waited for in one's own segment. */
struct collx_seg_awaited {
    size_t offset;
    int node;
};

struct collx_seg_round {
    int writes, waits; /* how many; first all writes, then all waits */
};

struct collx_seg_runner {
    struct collx_seg_links *links;
    uint32_t epoch;                /* of the last run */
    struct collx_seg_round *round; /* [rounds] */
    int rounds;
    int *to;    /* of all writes, in order, the nodes; */
    size_t *at; /* and where */
    struct collx_seg_awaited *awaited;
};

/* Bytes of a node's segment. */
size_t collx_seg_runner_space(int slots, size_t line);

/* Zero a runner, and connect to those that the schedule writes to.  `links` are made, and have to
 * stay.  0 or -errno; collx_seg_runner_finish() in either case. */
int collx_seg_runner_connect(struct collx_seg_runner *runner, struct collx_seg_links *links,
                             const struct collx_schedule *schedule,
                             const struct collx_seg_addresses *addresses, char *why, size_t size);

/* The next barrier; collective over the nodes.  0, or -ENOTCONN: a node is gone; then it cannot be
 * run any more.  `what`: the collective's name, for messages. */
int collx_seg_runner_run(struct collx_seg_runner *runner, const char *what);

/* Before its links are finished.  Zeroed is fine. */
void collx_seg_runner_finish(struct collx_seg_runner *runner);

#endif
