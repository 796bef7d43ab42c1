#include "algorithms/between/pattern.h"

#include <stdbool.h>

/* Nodes are numbered level by level, and the levels are filled one after the other: with the fan f
 * the children of node x are f x + 1 .. f x + f. */

enum { IN, OUT };

static int parent(const struct collx_pattern *pattern, int node, int tree)
{
    return (node - 1) / pattern->hsb.fan[tree];
}

/* Which of its parent's children a node is. */
static int place(const struct collx_pattern *pattern, int node, int tree)
{
    return (node - 1) % pattern->hsb.fan[tree];
}

static bool on_level(const struct collx_pattern *pattern, int node, int tree, int level)
{
    const int *first = pattern->hsb.first[tree];

    return node >= first[level] && node < first[level + 1];
}

/* In this round the level below `level` and `level` meet. */
static int upper_level(const struct collx_pattern *pattern, int round, int *tree)
{
    int collecting = pattern->hsb.levels[IN];

    *tree = round < collecting ? IN : OUT;
    return *tree == IN ? collecting - 1 - round : round - collecting;
}

/* The flag of the pair of a node and its parent.  Those of the children come first in a row, then
 * that of the parent. */
static struct collx_crossing flag_of(const struct collx_pattern *pattern, int child, int tree,
                                     int peer)
{
    int own = place(pattern, child, tree);

    return (struct collx_crossing){
        .peer = peer,
        .slot = tree == IN ? own : pattern->slots - 1,
        .order = tree == IN ? 0 : own,
    };
}

static int to_parent(const struct collx_pattern *pattern, int node, int tree, int level,
                     struct collx_crossing *flag)
{
    if (!on_level(pattern, node, tree, level + 1))
        return 0;
    *flag = flag_of(pattern, node, tree, parent(pattern, node, tree));
    return 1;
}

static int to_children(const struct collx_pattern *pattern, int node, int tree, int level,
                       struct collx_crossing *flag)
{
    long fan = pattern->hsb.fan[tree], first = node * fan + 1;
    int count = 0;

    if (!on_level(pattern, node, tree, level))
        return 0;
    for (long child = first; child < first + fan && child < pattern->nodes; child++)
        flag[count++] = flag_of(pattern, (int)child, tree, (int)child);
    return count;
}

static int hsb_writes(const struct collx_pattern *pattern, int node, int round,
                      struct collx_crossing *flag)
{
    int tree, level = upper_level(pattern, round, &tree);

    return tree == IN ? to_parent(pattern, node, tree, level, flag)
                      : to_children(pattern, node, tree, level, flag);
}

static int hsb_waits(const struct collx_pattern *pattern, int node, int round,
                     struct collx_crossing *flag)
{
    int tree, level = upper_level(pattern, round, &tree);

    return tree == IN ? to_children(pattern, node, tree, level, flag)
                      : to_parent(pattern, node, tree, level, flag);
}

static void plant(struct collx_pattern *pattern, int tree, int fan)
{
    int *first = pattern->hsb.first[tree];
    long next = 1, width = 1;

    fan = fan ? fan : COLLX_HSB_FAN;
    fan = fan < pattern->nodes ? fan : pattern->nodes - 1;
    fan = fan < 2 ? 2 : fan;
    pattern->hsb.fan[tree] = fan;
    for (first[1] = 1; next < pattern->nodes; first[pattern->hsb.levels[tree] + 1] = (int)next) {
        pattern->hsb.levels[tree]++;
        width *= fan;
        next = next + width < pattern->nodes ? next + width : pattern->nodes;
    }
}

void collx_hsb(struct collx_pattern *pattern, int nodes, int f_in, int f_out)
{
    *pattern = (struct collx_pattern){.nodes = nodes, .writes = hsb_writes, .waits = hsb_waits};
    plant(pattern, IN, f_in);
    plant(pattern, OUT, f_out);
    const int *fan = pattern->hsb.fan;
    pattern->rounds = pattern->hsb.levels[IN] + pattern->hsb.levels[OUT];
    pattern->slots = fan[IN] + 1;
    pattern->width = fan[IN] > fan[OUT] ? fan[IN] : fan[OUT];
}
