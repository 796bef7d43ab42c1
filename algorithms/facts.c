#include "algorithms/facts.h"

#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    const struct collx_member *a = left, *b = right;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->rank - b->rank;
}

void collx_facts_init(struct collx_facts *facts, struct collx_member *members, int ranks, int *node)
{
    int count = 0;

    qsort(members, (size_t)ranks, sizeof *members, compare);
    *facts = (struct collx_facts){.ranks = ranks, .node_ranks_min = ranks, .node = node};
    for (int first = 0, next; first < ranks; first = next) {
        for (next = first; next < ranks && members[next].node == members[first].node; next++)
            node[members[next].rank] = members[first].rank;
        int here = next - first;
        facts->nodes++;
        facts->node_ranks_min = here < facts->node_ranks_min ? here : facts->node_ranks_min;
        facts->node_ranks_max = here > facts->node_ranks_max ? here : facts->node_ranks_max;
    }
    /* From leaders to numbers: a leader comes before those that it leads. */
    for (int rank = 0; rank < ranks; rank++)
        node[rank] = node[rank] == rank ? count++ : node[node[rank]];
}
