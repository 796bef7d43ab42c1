/* Bcast in groups of ranks (bcast_plan.h): each group has rings of its own (bcast_ring.h), near to
 * it, in which whoever the root's data comes to first puts it for the others.
 *
 * The leader of a group is the root, in the root's group, and else its first rank.  Chunks are
 * numbered as in a single ring, over all calls on all ranks, and chunk e is in slot e mod SLOTS of
 * every group's ring.  For each chunk
 *
 *   others:  1. wait for e: a leader in the ring of the root's group, a member in that of its own;
 *               copy out
 *   root, and leaders of more than themselves:
 *            2. wait until everybody who may read there has finished with chunk e - SLOTS of the
 *               own group's ring
 *            3. copy the chunk into it, post e beside it
 *   all:     4. post in one's own flag that one has finished with chunk e, in whatever ring
 *
 * Roots, and with them leaders, change from call to call; what keeps a slot from being overwritten
 * too early is that those who may read a group's ring never do: its members, and, of each other
 * group, the first rank.  The latter, its guests, come only for chunks whose root is in this group;
 * everybody counts which was the last of these, so as long as the root is elsewhere, nobody has
 * to look at flags of other groups in (2).  Nor is there a second writer: who writes into a ring
 * is a member of its group, and has posted (4) before another one gets through (2).
 *
 * Nobody waits in a circle: who waits in (1) for chunk e does so for a rank that waits in (2), if
 * at all, for chunks before e.
 */
#ifndef COLLX_BCAST_GROUPS_H
#define COLLX_BCAST_GROUPS_H

#include "algorithms/bcast/bcast_plan.h"
#include "algorithms/bcast/bcast_ring.h"

/* What one kind of messages goes through. */
struct collx_group_rings {
    struct collx_team *team;
    const struct collx_groups *groups;
    struct collx_ring *ring; /* [groups->count]; what changes is counted in our own one only */
    uint64_t guests;         /* the last chunk that guests have come for */
};

struct collx_grouped {
    struct collx_groups groups;
    struct collx_group_rings small, large;
};

/* Bytes in the segment, where `plan` makes groups; a multiple of COLLX_LINE. */
size_t collx_grouped_space(const struct collx_groups_plan *plan, const struct collx_facts *facts);

/* See collx_algorithm.place. */
void collx_grouped_place(const struct collx_groups_plan *plan, const struct collx_team *team,
                         void *memory);

/* `memory`: collx_grouped_space() bytes, the same on all ranks, zeroed.  Returns what follows, or
 * NULL: out of memory; finish it then all the same. */
void *collx_grouped_init(struct collx_grouped *grouped, const struct collx_groups_plan *plan,
                         struct collx_team *team, void *memory);
void collx_grouped_finish(struct collx_grouped *grouped);

/* The ring of our own group. */
static inline struct collx_ring *collx_group_ring_own(const struct collx_group_rings *rings)
{
    return &rings->ring[rings->groups->own];
}

/* A message, from or to `buf`; NULL, of a rank without memory: from or to nowhere. */
void collx_group_rings_pass(struct collx_group_rings *rings, int root, char *buf, size_t bytes);

#endif
