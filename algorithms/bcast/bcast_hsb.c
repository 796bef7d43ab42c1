/* Bcast between nodes along a tree of leaders, whose root is wherever the call's is.  See
 * bcast_nodes.h. */
#include "algorithms/bcast/bcast_nodes.h"

enum { F_OUT, OVER };

static int collx_bcast_hsb_attach(struct collx_team *team, const struct collx_args *args,
                                  void *memory, struct collx_slot *slot)
{
    const struct collx_fanout fanout = {
        .nodes = collx_leaders_count(team),
        .n = (int)args->value[F_OUT],
    };

    return collx_bcast_nodes_attach(team, &fanout, args->value[OVER], memory, slot);
}

static const struct collx_param params[] = {
    [F_OUT] = {"f_out", "children that a node passes data on to", COLLX_HSB_FAN, 2, 1 << 20, NULL},
    [OVER] = COLLX_OVER_PARAM,
    {0},
};

const struct collx_algorithm collx_bcast_hsb = {
    .name = "hsb",
    .help = "in pieces along a tree of leaders of nodes, and through shared memory",
    .needs = "memory that the ranks of a node share; in MPI programs messages of at most 2 GiB",
    .kind = COLLX_BCAST,
    .params = params,
    .space = collx_bcast_nodes_space,
    .attach = collx_bcast_hsb_attach,
    .connect = collx_bcast_nodes_connect,
    .takes = collx_bcast_nodes_takes,
    .describe = collx_bcast_nodes_describe,
    .detach = collx_bcast_nodes_detach,
};
