#include "algorithms/between/fanout.h"

/* The least power of n that is more than `node`: how many have the data when this one gets it. */
static long reached(const struct collx_fanout *fanout, int node)
{
    long power = 1;

    while (power <= node)
        power *= fanout->n;
    return power;
}

int collx_fanout_parent(const struct collx_fanout *fanout, int node)
{
    if (node == 0)
        return -1;
    if (!fanout->rounds)
        return (node - 1) / fanout->n;
    return (int)(node % (reached(fanout, node) / fanout->n));
}

int collx_fanout_children(const struct collx_fanout *fanout, int node, int *child)
{
    const long n = fanout->n, nodes = fanout->nodes;
    int count = 0;

    if (!fanout->rounds) {
        for (long next = node * n + 1; next <= node * n + n && next < nodes; next++)
            child[count++] = (int)next;
        return count;
    }
    for (long stride = reached(fanout, node); node + stride < nodes; stride *= n)
        for (long k = 1; k < n && node + k * stride < nodes; k++)
            child[count++] = (int)(node + k * stride);
    return count;
}
