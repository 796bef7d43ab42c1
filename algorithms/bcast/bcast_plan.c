#include "algorithms/bcast/bcast_plan.h"

#include <inttypes.h>
#include <stdio.h>

struct phase {
    int64_t time; /* of the slowest rank or line */
    int far;
};

/* In this phase `reader` reads the lines of a message that somebody there has written; one of them
 * stands for all. */
static void add_reader(struct phase *phase, struct collx_busy *line, const struct collx_place *from,
                       const struct collx_place *reader)
{
    enum collx_distance distance = collx_place_distance(from, reader);
    struct collx_busy rank = {0};

    collx_busy_add(line, distance, 1);
    collx_busy_add(&rank, distance, COLLX_GROUPS_LINES);
    if (collx_busy_time(&rank) > phase->time)
        phase->time = collx_busy_time(&rank);
    if (collx_busy_time(line) > phase->time)
        phase->time = collx_busy_time(line);
    phase->far += distance == COLLX_FAR;
}

static int64_t time_of(const struct phase *phase)
{
    int64_t link = (int64_t)phase->far * COLLX_GROUPS_LINES * collx_link_cost;

    return link > phase->time ? link : phase->time;
}

/* From rank 0, everybody reads. */
static void flat(const struct collx_place *places, int ranks, struct collx_groups_plan *plan)
{
    struct phase phase = {0};
    struct collx_busy line = {0};

    for (int rank = 1; rank < ranks; rank++)
        add_reader(&phase, &line, &places[0], &places[rank]);
    plan->time = time_of(&phase);
    plan->far = phase.far;
}

/* From rank 0 its own group and all leaders read, then of each of these its group. */
static void grouped(const struct collx_place *places, int ranks, enum collx_place_key key,
                    struct collx_groups_plan *plan)
{
    struct phase first = {0}, second = {0};
    struct collx_busy root = {0};

    plan->groups = 1;
    for (int rank = 1; rank < ranks; rank++) {
        int leader = collx_places_first(places, rank, key);
        if (leader == 0 || leader == rank)
            add_reader(&first, &root, &places[0], &places[rank]);
        if (leader != rank)
            continue;
        plan->groups++;
        struct collx_busy line = {0};
        for (int other = rank + 1; other < ranks; other++)
            if (collx_place_shared(&places[rank], &places[other], key))
                add_reader(&second, &line, &places[rank], &places[other]);
    }
    plan->time = time_of(&first) + time_of(&second);
    plan->far = first.far + second.far;
}

struct collx_groups_plan collx_bcast_plan_choose(const struct collx_place *places, int ranks,
                                                 enum collx_groups_wanted wanted)
{
    return collx_groups_choose(places, ranks, wanted, flat, grouped);
}

void collx_bcast_plan_describe(const struct collx_groups_plan *plan, char *line, size_t size)
{
    if (plan->groups == 1)
        snprintf(line, size, "everybody reads from the root");
    else
        snprintf(line, size,
                 "%d groups, by %s; crossings of each line between packages: %d, not %d; "
                 "some %" PRId64 " ns for %d bytes, not %" PRId64,
                 plan->groups, collx_place_key_name(plan->key), plan->far, plan->flat_far,
                 plan->time, COLLX_GROUPS_LINES * 64, plan->flat_time);
}
