/* Barrier between nodes whose leaders form a tree: the root hears of all, and releases all.  See
 * algorithms/between/pattern.h, and docs/sci.md for how it came about. */
#include "algorithms/between/crossroads.h"
#include "algorithms/between/nodes.h"

#include <stdio.h>

enum { F_IN, F_OUT, OVER };

static int collx_barrier_hsb_attach(struct collx_team *team, const struct collx_args *args,
                                    void *memory, struct collx_slot *slot)
{
    struct collx_pattern pattern;
    char form[64];

    collx_hsb(&pattern, collx_leaders_count(team), (int)args->value[F_IN], (int)args->value[F_OUT]);
    snprintf(form, sizeof form, "a tree of up to %d children in, %d out, in %d rounds",
             pattern.hsb.fan[0], pattern.hsb.fan[1], pattern.rounds);
    return collx_nodes_attach_pattern(team, &pattern, form, args->value[OVER], memory, slot);
}

static const struct collx_param params[] = {
    [F_IN] = {"f_in", "children that a node waits for", COLLX_HSB_FAN, 2, 1 << 20, NULL},
    [F_OUT] = {"f_out", "children that a node releases", COLLX_HSB_FAN, 2, 1 << 20, NULL},
    [OVER] = COLLX_OVER_PARAM,
    {0},
};

const struct collx_algorithm collx_barrier_hsb = {
    .name = "hsb",
    .help = "ranks check in with their node's leader; leaders do so along a tree, and back",
    .needs = "memory that the ranks of a node share",
    .kind = COLLX_BARRIER,
    .params = params,
    .space = collx_nodes_space,
    .attach = collx_barrier_hsb_attach,
    .connect = collx_nodes_connect,
    .describe = collx_nodes_describe,
    .detach = collx_nodes_detach,
};
