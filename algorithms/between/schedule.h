/* What one node does in a barrier: a list of steps that it executes from first to last.
 *
 * The list is made once, from a pattern, and knows nothing of how a flag gets from here to there:
 * by a store into a segment, by a one-sided put, or as a message (a write is a send, a wait a
 * receive, and the slot is the tag).
 *
 * Where flags are memory they hold the number of the barrier (its epoch), and a wait is over when
 * the flag has this epoch or a later one: a write may be repeated after the reader has moved on,
 * and a fast node may be in the next barrier already.  It cannot be in the one after that, as it
 * would need this reader for it.
 */
#ifndef COLLX_SCHEDULE_H
#define COLLX_SCHEDULE_H

#include "algorithms/between/pattern.h"

enum collx_step_kind {
    COLLX_STEP_WRITE, /* write flag `slot` of `peer` */
    COLLX_STEP_CHECK, /* find out whether all writes since the check before have arrived; if not,
                         repeat them */
    COLLX_STEP_WAIT,  /* until `peer` has written one's own flag `slot` */
};

struct collx_step {
    enum collx_step_kind kind;
    int round;
    int peer, slot; /* -1: a check has none */
};

struct collx_schedule {
    int node, nodes;
    int slots; /* flags that the node needs; the same number on all nodes */
    int count;
    struct collx_step *steps;
};

/* The schedule of one node.  Local and pure: each node makes its own, and they fit together if all
 * were made from equal patterns.  One check covers all writes of a round.  It stands before the
 * next wait, because a node that waits for others may hear from them only if its writes reached
 * them, and after the last write.  0 or -ENOMEM. */
int collx_schedule_init(struct collx_schedule *schedule, const struct collx_pattern *pattern,
                        int node);
void collx_schedule_finish(struct collx_schedule *schedule);

#endif
