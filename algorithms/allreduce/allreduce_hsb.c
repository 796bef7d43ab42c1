/* Allreduce between nodes whose leaders form a tree.  See allreduce_nodes.h. */
#include "algorithms/allreduce/allreduce_nodes.h"

enum { F_IN, F_OUT, OVER };

static int collx_allreduce_hsb_attach(struct collx_team *team, const struct collx_args *args,
                                      void *memory, struct collx_slot *slot)
{
    const struct collx_reduction reduction = {
        .tree = true, .n = 2, .f_in = (int)args->value[F_IN], .f_out = (int)args->value[F_OUT]};

    return collx_allreduce_nodes_attach(team, &reduction, args->value[OVER], memory, slot);
}

static const struct collx_param params[] = {
    [F_IN] = {"f_in", "children that a node hears from", COLLX_HSB_FAN, 2, 1 << 20, NULL},
    [F_OUT] = {"f_out", "children that a node tells the result", COLLX_HSB_FAN, 2, 1 << 20, NULL},
    [OVER] = COLLX_OVER_PARAM,
    {0},
};

const struct collx_algorithm collx_allreduce_hsb = {
    .name = "hsb",
    .help = "in rank order; contributions go up a tree of leaders of nodes, and the result down",
    .needs = "memory that the ranks of a node share; 1 MiB in all ranks together, elements of at "
             "most 4 KiB",
    .kind = COLLX_ALLREDUCE,
    .rank_order = true,
    .params = params,
    .space = collx_allreduce_nodes_space,
    .attach = collx_allreduce_hsb_attach,
    .connect = collx_allreduce_nodes_connect,
    .takes = collx_allreduce_nodes_takes,
    .describe = collx_allreduce_nodes_describe,
    .detach = collx_allreduce_nodes_detach,
};
