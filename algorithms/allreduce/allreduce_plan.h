/* How an Allreduce of small vectors among many ranks goes about a machine
 * (algorithms/within/groups.h; tests/allreduce_plan_test.cc).
 *
 * Flat, everybody reads what everybody else has written.  In groups, what others contribute comes
 * to a group once: each outsider's line is read by one member, its relay, who writes it again for
 * its own group.
 */
#ifndef COLLX_ALLREDUCE_PLAN_H
#define COLLX_ALLREDUCE_PLAN_H

#include "algorithms/within/groups.h"

struct collx_groups_plan collx_allreduce_plan_choose(const struct collx_place *places, int ranks,
                                                     enum collx_groups_wanted wanted);

/* The outsiders of a group, counted from 0 in the order of the ranks, are dealt out to its members:
 * whether member `index` of `members` is the relay of number `outsider`. */
static inline bool collx_allreduce_relays(int index, int members, int outsider)
{
    return outsider % members == index;
}

/* In words, for people. */
void collx_allreduce_plan_describe(const struct collx_groups_plan *plan, char *line, size_t size);

#endif
