#include "algorithms/within/shape.h"

#include <errno.h>
#include <stdlib.h>

/* Divide those that take part in the next level by one key: leader[rank] becomes the first that has
 * the same.  Whoever's is not known is alone.  Returns the number of groups. */
static int divide(const struct collx_shape *shape, const struct collx_place *places,
                  enum collx_place_key key, int *leader, int *members)
{
    int groups = 0;

    *members = 0;
    for (int rank = 0; rank < shape->ranks; rank++) {
        int own = collx_place_key(&places[rank], key), first = rank;

        leader[rank] = -1;
        if (!collx_shape_takes_part(shape, shape->levels, rank))
            continue;
        for (int other = 0; other < rank && own >= 0; other++) {
            if (leader[other] == other && collx_place_key(&places[other], key) == own) {
                first = other;
                break;
            }
        }
        leader[rank] = first;
        groups += first == rank;
        ++*members;
    }
    return groups;
}

static int size_of(const struct collx_shape *shape, const int *leader, int group)
{
    int size = 1; /* its leader, the first */

    for (int rank = group + 1; rank < shape->ranks; rank++)
        size += leader[rank] == group;
    return size;
}

/* Cut the groups that are larger than `fan` into pieces, as equal as can be, whose first members
 * are what is left of them in leader[].  The members of others are pieces of their own.  Whether
 * there was anything to cut. */
static bool cut(const struct collx_shape *shape, int *leader, int *piece_leader, int fan)
{
    bool any = false;

    for (int group = 0; group < shape->ranks; group++) {
        if (leader[group] != group)
            continue;
        int size = size_of(shape, leader, group), pieces = (size - 1) / fan + 1;
        any |= pieces > 1;
        for (int rank = group, i = 0, first = -1, last = -1; rank < shape->ranks; rank++) {
            if (leader[rank] != group)
                continue;
            int piece = pieces > 1 ? (int)((long)i * pieces / size) : i;
            if (piece != last)
                first = rank;
            last = piece;
            piece_leader[rank] = first;
            i++;
        }
    }
    for (int rank = 0; any && rank < shape->ranks; rank++) {
        if (leader[rank] < 0)
            piece_leader[rank] = -1;
        else if (piece_leader[rank] != rank)
            leader[rank] = -1;
    }
    return any;
}

static int *new_level(const struct collx_shape *shape)
{
    return calloc((size_t)shape->ranks, sizeof(int));
}

/* Make a level of these groups, and before it as many as it takes to have no more than `fan`
 * members in any. */
static int add_level(struct collx_shape *shape, int *leader, int fan)
{
    while (shape->levels < COLLX_LEVELS - 1) {
        int *pieces = new_level(shape);
        if (!pieces) {
            free(leader);
            return -ENOMEM;
        }
        if (!cut(shape, leader, pieces, fan)) {
            free(pieces);
            break;
        }
        shape->leader[shape->levels++] = pieces;
    }
    shape->leader[shape->levels++] = leader;
    return 0;
}

int collx_shape_init(struct collx_shape *shape, const struct collx_place *places, int ranks,
                     int fan)
{
    int error = 0;

    *shape = (struct collx_shape){.ranks = ranks};
    for (int key = 0; key < COLLX_PLACE_KEYS && places && !error && shape->levels < COLLX_LEVELS;
         key++) {
        int members, *leader = new_level(shape);
        if (!leader) {
            error = -ENOMEM;
            break;
        }
        int groups = divide(shape, places, (enum collx_place_key)key, leader, &members);
        if (groups > 1 && groups < members)
            error = add_level(shape, leader, fan);
        else
            free(leader);
    }
    if (error)
        collx_shape_finish(shape);
    return error;
}

void collx_shape_finish(struct collx_shape *shape)
{
    while (shape->levels > 0)
        free(shape->leader[--shape->levels]);
}
