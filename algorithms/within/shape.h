/* Who sits with whom: the ranks of a team as a tree, by the caches, NUMA nodes and packages that
 * they share.
 *
 * On level 0 all ranks are divided into groups; one member of each, the first by rank, leads it.
 * On level 1 these leaders are divided, and so on: caches, then NUMA nodes, then packages, as far
 * as they divide anything.  Those that lead on the last level are the top.  Without levels every
 * rank is the top, which is the flat shape.
 *
 * Pure: without MPI, hwloc or memory that is shared; the same places give the same shape on all
 * ranks.
 */
#ifndef COLLX_SHAPE_H
#define COLLX_SHAPE_H

#include "hw/place.h"

#include <stdbool.h>

enum { COLLX_LEVELS = 8 };

struct collx_shape {
    int ranks;
    int levels;
    /* leader[level][rank], of the group that a rank is in; -1 for those that lead no group of the
     * level below. */
    int *leader[COLLX_LEVELS];
};

/* From the place of each rank.  Groups of more than `fan` members (2 or more) are divided further,
 * by rank, as long as there are levels left.  Where the places divide nothing (all are in one
 * group, or each is a group of its own, or nothing is known) the shape is flat.  0 or -ENOMEM. */
int collx_shape_init(struct collx_shape *shape, const struct collx_place *places, int ranks,
                     int fan);
void collx_shape_finish(struct collx_shape *shape);

/* Whether the rank has a part in this level (levels: in the top). */
static inline bool collx_shape_takes_part(const struct collx_shape *shape, int level, int rank)
{
    return level == 0 || shape->leader[level - 1][rank] == rank;
}

#endif
