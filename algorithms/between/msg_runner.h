/* Running the schedule of a node over messages: a write is a send, a wait a receive.
 *
 * All of a round goes at once.  A message holds nothing, and which slot it is for is said by its
 * turn: what one node sends to another arrives in order, and both go through their flags for each
 * other in the same order.
 */
#ifndef COLLX_MSG_RUNNER_H
#define COLLX_MSG_RUNNER_H

#include "algorithms/between/schedule.h"
#include "base/algorithm.h"

struct collx_msg_runner {
    struct collx_team *team;
    struct collx_message *message; /* of all rounds, in order */
    int *round;                    /* [rounds], how many are in each */
    int rounds;
    int most; /* in one round: for listen() */
};

/* leader[node] is the rank that speaks for a node.  0 or -ENOMEM. */
int collx_msg_runner_init(struct collx_msg_runner *runner, struct collx_team *team,
                          const struct collx_schedule *schedule, const int *leader);

/* The next barrier; collective over the nodes.  0 or an MPI error. */
int collx_msg_runner_run(struct collx_msg_runner *runner);

void collx_msg_runner_finish(struct collx_msg_runner *runner);

#endif
