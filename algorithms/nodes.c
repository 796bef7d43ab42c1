#include "algorithms/nodes.h"

#include "algorithms/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the memory of a node. */
struct local {
    struct collx_flag released; /* beside it: what to return */
    struct collx_flag arrived[];
};
_Static_assert(offsetof(struct local, arrived) == sizeof(struct collx_flag), "all are alike");

struct nodes {
    struct collx_team *team;
    struct local *local;
    uint64_t round;
    int *rank; /* [ranks] of this node, the leader first */
    int ranks;
    int index; /* which of these one is */
    const struct collx_nodes_way *way;
    void *with;
};

/* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
static bool has_arrived(const struct nodes *nodes, int i)
{
    return atomic_load_explicit(&nodes->local->arrived[i].value, memory_order_relaxed) >=
           nodes->round;
}

/* Those of this node alone: the leader knows about others, and speaks for itself. */
static bool is_missing(const void *with, int rank)
{
    const struct nodes *nodes = with;

    for (int i = 0; i < nodes->ranks; i++)
        if (nodes->rank[i] == rank)
            return !has_arrived(nodes, i);
    return false;
}

static int run_member(struct collx_slot *slot, struct collx_call *call)
{
    struct nodes *nodes = slot->state;
    struct collx_team *team = nodes->team;
    struct collx_flag *released = &nodes->local->released;
    int result;

    (void)call;
    nodes->round++;
    collx_flag_post(team, &nodes->local->arrived[nodes->index], nodes->round);
    if (!collx_spin_for(team, released, nodes->round))
        collx_wait_long(team,
                        &(struct collx_wait){.flag = released,
                                             .count = 1,
                                             .what = "Barrier",
                                             .missing = is_missing,
                                             .with = nodes},
                        nodes->round);
    memcpy(&result, released->payload, sizeof result);
    return result;
}

static void wait_for_members(struct nodes *nodes)
{
    const struct collx_wait wait = {.flag = &nodes->local->arrived[1],
                                    .stride = sizeof(struct collx_flag),
                                    .count = nodes->ranks - 1,
                                    .what = "Barrier",
                                    .missing = is_missing,
                                    .with = nodes};

    for (int i = 1; i < nodes->ranks; i++)
        if (!collx_spin_for(nodes->team, &nodes->local->arrived[i], nodes->round)) {
            collx_wait_long(nodes->team, &wait, nodes->round);
            return;
        }
}

static int run_leader(struct collx_slot *slot, struct collx_call *call)
{
    struct nodes *nodes = slot->state;

    (void)call;
    nodes->round++;
    /* Nobody waits for it; it tells those who do wait that this rank has come. */
    atomic_store_explicit(&nodes->local->arrived[0].value, nodes->round, memory_order_relaxed);
    wait_for_members(nodes);
    int result = nodes->way->meet(nodes->with);
    memcpy(nodes->local->released.payload, &result, sizeof result);
    collx_flag_post(nodes->team, &nodes->local->released, nodes->round);
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
    return sizeof(struct local) + (size_t)facts->node_ranks_max * sizeof(struct collx_flag);
}

void collx_nodes_detach(void *state)
{
    struct nodes *nodes = state;

    nodes->way->destroy(nodes->with);
    free(nodes->rank);
    free(nodes);
}

static int number_of(const struct collx_team *team, int rank)
{
    return team->node ? team->node[rank] : 0;
}

int collx_nodes_attach(struct collx_team *team, const struct collx_nodes_way *way, void *with,
                       void *memory, struct collx_slot *slot)
{
    struct nodes *nodes = with ? calloc(1, sizeof *nodes) : NULL;
    const int own = number_of(team, team->rank);

    if (!nodes) {
        if (with)
            way->destroy(with);
        return -ENOMEM;
    }
    *nodes = (struct nodes){
        .team = team,
        .local = memory,
        .rank = calloc((size_t)team->size, sizeof *nodes->rank),
        .way = way,
        .with = with,
    };
    if (!nodes->rank) {
        collx_nodes_detach(nodes);
        return -ENOMEM;
    }
    for (int rank = 0; rank < team->size; rank++)
        if (number_of(team, rank) == own) {
            nodes->index = rank == team->rank ? nodes->ranks : nodes->index;
            nodes->rank[nodes->ranks++] = rank;
        }
    slot->state = nodes;
    slot->run = nodes->index ? run_member : nodes->ranks > 1 ? run_leader : run_single;
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
