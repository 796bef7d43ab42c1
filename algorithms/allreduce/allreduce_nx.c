/* Allreduce between nodes whose leaders are all alike.  See allreduce_nodes.h. */
#include "algorithms/allreduce/allreduce_nodes.h"

enum { N, OVER };

static int collx_allreduce_nx_attach(struct collx_team *team, const struct collx_args *args,
                                     void *memory, struct collx_slot *slot)
{
    const struct collx_reduction reduction = {
        .n = collx_nx_taken((int)args->value[N], collx_leaders_count(team))};

    return collx_allreduce_nodes_attach(team, &reduction, args->value[OVER], memory, slot);
}

static const struct collx_param params[] = {
    [N] = COLLX_NX_PARAM,
    [OVER] = COLLX_OVER_PARAM,
    {0},
};

const struct collx_algorithm collx_allreduce_nx = {
    .name = "nx",
    .help = "in rank order; leaders of nodes pass on all contributions, of long vectors slices",
    .needs = "memory that the ranks of a node share; datatype elements of at most 4 KiB",
    .kind = COLLX_ALLREDUCE,
    .rank_order = true,
    .params = params,
    .space = collx_allreduce_nodes_space,
    .attach = collx_allreduce_nx_attach,
    .connect = collx_allreduce_nodes_connect,
    .takes = collx_allreduce_nodes_takes,
    .describe = collx_allreduce_nodes_describe,
    .detach = collx_allreduce_nodes_detach,
};
