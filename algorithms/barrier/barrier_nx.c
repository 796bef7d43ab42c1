/* Barrier between nodes whose leaders are all alike: in each round they write to n - 1 others.  See
 * algorithms/between/pattern.h, and docs/sci.md for how it came about. */
#include "algorithms/between/crossroads.h"
#include "algorithms/between/nodes.h"

#include <stdio.h>

enum { N, MODE, OVER };
enum { DISSEMINATION, EXCHANGE };

static const char *const mode_words[] = {
    [DISSEMINATION] = "dissemination", [EXCHANGE] = "exchange", NULL};

static int collx_barrier_nx_attach(struct collx_team *team, const struct collx_args *args,
                                   void *memory, struct collx_slot *slot)
{
    const int nodes = collx_leaders_count(team), n = (int)args->value[N];
    struct collx_pattern pattern;
    char form[64];

    if (args->value[MODE] == EXCHANGE)
        collx_nx_exchange(&pattern, nodes, n);
    else
        collx_nx_dissemination(&pattern, nodes, n);
    snprintf(form, sizeof form, "%s in groups of %d, in %d round%s", mode_words[args->value[MODE]],
             pattern.nx.n, pattern.rounds, pattern.rounds == 1 ? "" : "s");
    return collx_nodes_attach_pattern(team, &pattern, form, args->value[OVER], memory, slot);
}

static const struct collx_param params[] = {
    [N] = COLLX_NX_PARAM,
    [MODE] = {"mode",
              "to whom nodes write: dissemination needs the fewest rounds for any number of "
              "nodes, exchange two more where it is not a power of n",
              DISSEMINATION, DISSEMINATION, EXCHANGE, mode_words},
    [OVER] = COLLX_OVER_PARAM,
    {0},
};

const struct collx_algorithm collx_barrier_nx = {
    .name = "nx",
    .help = "ranks check in with their node's leader; leaders write flags to n - 1 others a round",
    .needs = "memory that the ranks of a node share",
    .kind = COLLX_BARRIER,
    .params = params,
    .space = collx_nodes_space,
    .attach = collx_barrier_nx_attach,
    .connect = collx_nodes_connect,
    .describe = collx_nodes_describe,
    .detach = collx_nodes_detach,
};
