/* Trees among nodes by which data is passed on from a root.  Pure: nodes are counted from the root
 * on, which is 0, so that any node can be it. */
#ifndef COLLX_FANOUT_H
#define COLLX_FANOUT_H

#include <stdbool.h>

struct collx_fanout {
    int nodes, n; /* n >= 2 */
    /* In rounds: whoever has the data passes it on to n - 1 others a round.  Else in levels: to n
     * children, once. */
    bool rounds;
};

/* -1: of the root. */
int collx_fanout_parent(const struct collx_fanout *fanout, int node);

/* Those that get it from `node`, in the order in which they should, into child[nodes].  Returns how
 * many. */
int collx_fanout_children(const struct collx_fanout *fanout, int node, int *child);

#endif
