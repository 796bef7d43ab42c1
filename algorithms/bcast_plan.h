/* How a Bcast among many ranks goes about a machine: pure, and without memory of its own, so that
 * the space for it is known, alike on all ranks, before anybody has any (tests/shape_test.cc).
 *
 * Flat, everybody reads what the root has written.  In groups, by the caches, NUMA nodes or
 * packages that ranks share, only the root's group and one leader of each other group do; the
 * leader writes it again for its own group.
 */
#ifndef COLLX_BCAST_PLAN_H
#define COLLX_BCAST_PLAN_H

#include "algorithms/lines.h"

/* The parameter `groups`. */
enum collx_groups_wanted { COLLX_GROUPS_AUTO, COLLX_GROUPS_NEVER, COLLX_GROUPS_ALWAYS };

enum {
    COLLX_GROUPS_FROM = 9,  /* ranks */
    COLLX_GROUPS_MOST = 16, /* each takes two rings: a third of a MiB */
    /* Of the message that decides: half a KiB, between the short ones, which are most, and a slot
     * of 4 KiB.  The shorter a message, the more groups are worth. */
    COLLX_GROUPS_LINES = 8,
};

struct collx_bcast_plan {
    int groups;               /* 1: flat */
    enum collx_place_key key; /* what the ranks of a group share; the first of them leads */
    int64_t time;             /* ns, by the model of algorithms/lines.h */
    int far;                  /* how often a line goes from one package to another */
    int64_t flat_time;        /* the same, flat */
    int flat_far;
};

/* AUTO: in groups where the model says that it is cheaper by a tenth at least; ALWAYS: in the
 * cheapest groups that there are, if any.  Up to 8 ranks, and where `places` is NULL: flat. */
struct collx_bcast_plan collx_bcast_plan_choose(const struct collx_place *places, int ranks,
                                                enum collx_groups_wanted wanted);

/* In words, for people. */
void collx_bcast_plan_describe(const struct collx_bcast_plan *plan, char *line, size_t size);

#endif
