#include "algorithms/between/nodes.h"

#include "algorithms/within/mates.h"

#include <errno.h>
#include <stdlib.h>

struct nodes {
    struct collx_mates mates;
    uint64_t round;
    const struct collx_nodes_way *way;
    void *with;
};

static int run_member(struct collx_slot *slot, struct collx_call *call)
{
    struct nodes *nodes = slot->state;

    (void)call;
    collx_mates_arrive(&nodes->mates, ++nodes->round);
    return collx_mates_await_release(&nodes->mates, nodes->round, -1);
}

static int run_leader(struct collx_slot *slot, struct collx_call *call)
{
    struct nodes *nodes = slot->state;

    (void)call;
    nodes->round++;
    /* Nobody waits for it; it tells those who do wait that this rank has come. */
    atomic_store_explicit(&nodes->mates.flags->arrived[0].value, nodes->round,
                          memory_order_relaxed);
    collx_mates_await(&nodes->mates, nodes->round);
    int result = nodes->way->meet(nodes->with);
    collx_mates_release(&nodes->mates, nodes->round, result);
    return result;
}

static int run_single(struct collx_slot *slot, struct collx_call *call)
{
    struct nodes *nodes = slot->state;

    (void)call;
    return nodes->way->meet(nodes->with);
}

size_t collx_nodes_space(const struct collx_facts *facts, const struct collx_args *args)
{
    (void)args;
    return collx_mates_space(facts->node_ranks_max);
}

void collx_nodes_detach(void *state)
{
    struct nodes *nodes = state;

    nodes->way->destroy(nodes->with);
    collx_mates_finish(&nodes->mates);
    free(nodes);
}

int collx_nodes_attach(struct collx_team *team, const struct collx_nodes_way *way, void *with,
                       void *memory, struct collx_slot *slot)
{
    struct nodes *nodes = with ? calloc(1, sizeof *nodes) : NULL;

    if (!nodes) {
        if (with)
            way->destroy(with);
        return -ENOMEM;
    }
    *nodes = (struct nodes){.way = way, .with = with};
    if (collx_mates_init(&nodes->mates, team, "Barrier", memory)) {
        collx_nodes_detach(nodes);
        return -ENOMEM;
    }
    slot->state = nodes;
    slot->run = nodes->mates.index ? run_member : nodes->mates.ranks > 1 ? run_leader : run_single;
    return 0;
}

int collx_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why, size_t size)
{
    struct nodes *nodes = slot->state;

    (void)team;
    return nodes->way->connect(nodes->with, why, size);
}

void collx_nodes_describe(const void *state, char *line, size_t size)
{
    const struct nodes *nodes = state;

    nodes->way->describe(nodes->with, line, size);
}
