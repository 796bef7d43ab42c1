/* How a Bcast among many ranks goes about a machine (algorithms/within/groups.h;
 * tests/bcast_plan_test.cc).
 *
 * Flat, everybody reads what the root has written.  In groups, only the root's group and one leader
 * of each other group do; the leader writes it again for its own group.
 */
#ifndef COLLX_BCAST_PLAN_H
#define COLLX_BCAST_PLAN_H

#include "algorithms/within/groups.h"

enum {
    /* Of the message that decides: half a KiB, between the short ones, which are most, and a slot
     * of 4 KiB.  The shorter a message, the more groups are worth. */
    COLLX_GROUPS_LINES = 8,
};

struct collx_groups_plan collx_bcast_plan_choose(const struct collx_place *places, int ranks,
                                                 enum collx_groups_wanted wanted);

/* In words, for people. */
void collx_bcast_plan_describe(const struct collx_groups_plan *plan, char *line, size_t size);

#endif
