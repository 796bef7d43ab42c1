/* From where each rank is to what all ranks know of it. */
#ifndef COLLX_FACTS_H
#define COLLX_FACTS_H

#include "base/algorithm.h"

/* A rank, and an identity of its node: any number that is the same for all that are on it. */
struct collx_member {
    uint64_t node;
    int rank;
};

/* The facts that follow from members[ranks], one for each rank, which are sorted by nodes
 * afterwards; into node[ranks] the numbers of the nodes.  What has to do with places is as if
 * nothing was known.  Pure. */
void collx_facts_init(struct collx_facts *facts, struct collx_member *members, int ranks,
                      int *node);

#endif
