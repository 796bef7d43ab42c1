/* Bcast between nodes in the rounds of nx: whoever has the data writes it to n - 1 others a round.
 * See bcast_nodes.h. */
#include "algorithms/bcast/bcast_nodes.h"

enum { N, OVER };

static int collx_bcast_nx_attach(struct collx_team *team, const struct collx_args *args,
                                 void *memory, struct collx_slot *slot)
{
    const int nodes = collx_leaders_count(team);
    const struct collx_fanout fanout = {
        .nodes = nodes, .n = collx_nx_taken((int)args->value[N], nodes), .rounds = true};

    return collx_bcast_nodes_attach(team, &fanout, args->value[OVER], memory, slot);
}

static const struct collx_param params[] = {
    [N] = COLLX_NX_PARAM,
    [OVER] = COLLX_OVER_PARAM,
    {0},
};

const struct collx_algorithm collx_bcast_nx = {
    .name = "nx",
    .help =
        "in pieces between leaders of nodes, to n - 1 others a round, and through shared memory",
    .needs = "memory that the ranks of a node share; in MPI programs messages of at most 2 GiB",
    .kind = COLLX_BCAST,
    .params = params,
    .space = collx_bcast_nodes_space,
    .attach = collx_bcast_nx_attach,
    .connect = collx_bcast_nodes_connect,
    .takes = collx_bcast_nodes_takes,
    .describe = collx_bcast_nodes_describe,
    .detach = collx_bcast_nodes_detach,
};
