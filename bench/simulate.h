/* A model of barriers between nodes whose flags are written into each other's memory.
 *
 * It executes the patterns that the schedules are made from, round by round, and gives each node a
 * clock: memory and time grow with the number of nodes, not with their lists. */
#ifndef COLLX_SIMULATE_H
#define COLLX_SIMULATE_H

#include "algorithms/between/pattern.h"

/* Microseconds. */
struct collx_model {
    double write;   /* that a write of a flag holds the CPU */
    double check;   /* that a check takes */
    double covered; /* that it takes longer for each write that it covers */
    double latency; /* from the end of a write until the reader can see the flag */
    double poll;    /* that it takes to see that a flag is there */
    double call;    /* of a barrier besides its steps */
};

/* SCI adapters; docs/sci.md says where each figure comes from. */
extern const struct collx_model collx_model_sci;

struct collx_cost {
    double us; /* from when all nodes come until the last one leaves */
    int rounds;
    int writes, checks; /* of the node that has most */
};

/* 0 or -ENOMEM. */
int collx_simulate(const struct collx_pattern *pattern, const struct collx_model *model,
                   struct collx_cost *cost);

#endif
