#include "algorithms/allreduce/allreduce_plan.h"

#include <inttypes.h>
#include <stdio.h>

/* One line of each rank counts: most vectors fit into the line of a flag, and longer ones take the
 * same way. */
static void longest(const struct collx_busy *busy, int64_t *time)
{
    if (collx_busy_time(busy) > *time)
        *time = collx_busy_time(busy);
}

/* So many lines cross between packages meanwhile. */
static void share_link(int far, int64_t *time)
{
    int64_t link = (int64_t)far * collx_link_cost;

    *time = link > *time ? link : *time;
}

/* Everybody reads everybody's.  Each line is read from as many distances as its rank reads from. */
static void flat(const struct collx_place *places, int ranks, struct collx_groups_plan *plan)
{
    for (int rank = 0; rank < ranks; rank++) {
        struct collx_busy busy = {0};
        for (int other = 0; other < ranks; other++) {
            if (other == rank)
                continue;
            enum collx_distance distance = collx_place_distance(&places[rank], &places[other]);
            collx_busy_add(&busy, distance, 1);
            plan->far += distance == COLLX_FAR;
        }
        longest(&busy, &plan->time);
    }
    share_link(plan->far, &plan->time);
}

static bool together(const struct collx_place *places, int one, int other, enum collx_place_key key)
{
    return one == other || collx_place_shared(&places[one], &places[other], key);
}

/* The first ranks of all groups.  Returns how many there are, COLLX_GROUPS_MOST + 1 at most. */
static int find_leaders(const struct collx_place *places, int ranks, enum collx_place_key key,
                        int leader[COLLX_GROUPS_MOST + 1])
{
    int groups = 0;

    for (int rank = 0; rank < ranks && groups <= COLLX_GROUPS_MOST; rank++)
        if (collx_places_first(places, rank, key) == rank)
            leader[groups++] = rank;
    return groups;
}

/* What one rank does: it reads the lines of the outsiders that it relays, then, of the other
 * members of its group, their own lines and those that they relay. */
struct part {
    struct collx_busy outside, inside;
    int far;
};

static struct part part_of(const struct collx_place *places, int ranks, enum collx_place_key key,
                           int rank)
{
    struct part part = {0};
    int members = 0, index = 0, member = 0, outsider = 0;

    for (int other = 0; other < ranks; other++) {
        members += together(places, rank, other, key);
        index += other < rank && together(places, rank, other, key);
    }
    for (int other = 0; other < ranks; other++) {
        enum collx_distance distance = collx_place_distance(&places[rank], &places[other]);
        if (together(places, rank, other, key)) {
            int relayed = (ranks - members + members - 1 - member) / members;
            if (other != rank)
                collx_busy_add(&part.inside, distance, 1 + relayed);
            member++;
        } else if (collx_allreduce_relays(index, members, outsider++)) {
            collx_busy_add(&part.outside, distance, 1);
            part.far += distance == COLLX_FAR;
        }
    }
    return part;
}

static void grouped(const struct collx_place *places, int ranks, enum collx_place_key key,
                    struct collx_groups_plan *plan)
{
    int leader[COLLX_GROUPS_MOST + 1];
    int64_t outside = 0, inside = 0;

    plan->groups = find_leaders(places, ranks, key, leader);
    if (plan->groups > COLLX_GROUPS_MOST)
        return;
    for (int rank = 0; rank < ranks; rank++) {
        const struct part part = part_of(places, ranks, key, rank);
        /* Its own line is read once in each other group: from as far as that group's leader. */
        struct collx_busy line = {0};
        for (int group = 0; group < plan->groups; group++)
            if (!together(places, rank, leader[group], key))
                collx_busy_add(&line, collx_place_distance(&places[rank], &places[leader[group]]),
                               1);
        longest(&part.outside, &outside);
        longest(&line, &outside);
        longest(&part.inside, &inside);
        plan->far += part.far;
    }
    share_link(plan->far, &outside);
    plan->time = outside + inside;
}

struct collx_groups_plan collx_allreduce_plan_choose(const struct collx_place *places, int ranks,
                                                     enum collx_groups_wanted wanted)
{
    return collx_groups_choose(places, ranks, wanted, flat, grouped);
}

void collx_allreduce_plan_describe(const struct collx_groups_plan *plan, char *line, size_t size)
{
    if (plan->groups == 1)
        snprintf(line, size, "small vectors: everybody reads everybody's");
    else
        snprintf(line, size,
                 "small vectors: %d groups, by %s; %d lines cross between packages, not %d; "
                 "some %" PRId64 " ns, not %" PRId64,
                 plan->groups, collx_place_key_name(plan->key), plan->far, plan->flat_far,
                 plan->time, plan->flat_time);
}
