#include "bench/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const struct collx_model collx_model_sci = {
    .write = 0.2,
    .check = 3.8,
    .covered = 0.1,
    .latency = 2.0,
    .poll = 0.05,
    .call = 0.6,
};

struct node {
    double now;
    double began; /* to write, in this round */
    int writes, checks;
};

static void write_all(const struct collx_pattern *pattern, const struct collx_model *model,
                      int round, struct node *nodes, struct collx_crossing *flags)
{
    for (int i = 0; i < pattern->nodes; i++) {
        struct node *node = &nodes[i];
        int writes = pattern->writes(pattern, i, round, flags);

        if (!writes)
            continue;
        node->began = node->now;
        node->now += model->check + writes * (model->write + model->covered);
        node->writes += writes;
        node->checks++;
    }
}

/* A node looks at one flag after the other. */
static void wait_all(const struct collx_pattern *pattern, const struct collx_model *model,
                     int round, struct node *nodes, struct collx_crossing *flags)
{
    for (int i = 0; i < pattern->nodes; i++) {
        int waits = pattern->waits(pattern, i, round, flags);

        for (const struct collx_crossing *flag = flags; flag < flags + waits; flag++) {
            double seen =
                nodes[flag->peer].began + (flag->order + 1) * model->write + model->latency;
            nodes[i].now = fmax(nodes[i].now, seen) + model->poll;
        }
    }
}

int collx_simulate(const struct collx_pattern *pattern, const struct collx_model *model,
                   struct collx_cost *cost)
{
    struct node *nodes = calloc((size_t)pattern->nodes, sizeof *nodes);
    struct collx_crossing *flags = malloc((size_t)pattern->width * sizeof *flags);
    int error = nodes && flags ? 0 : -ENOMEM;

    *cost = (struct collx_cost){.rounds = pattern->rounds};
    for (int round = 0; !error && round < pattern->rounds; round++) {
        write_all(pattern, model, round, nodes, flags);
        wait_all(pattern, model, round, nodes, flags);
    }
    for (int i = 0; !error && i < pattern->nodes; i++) {
        cost->us = fmax(cost->us, nodes[i].now + model->call);
        cost->writes = nodes[i].writes > cost->writes ? nodes[i].writes : cost->writes;
        cost->checks = nodes[i].checks > cost->checks ? nodes[i].checks : cost->checks;
    }
    free(flags);
    free(nodes);
    return error;
}
