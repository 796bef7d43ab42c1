#include "algorithms/within/groups.h"

#include <errno.h>
#include <stdlib.h>

const char *const collx_groups_words[] = {"auto", "never", "always", NULL};

struct collx_groups_plan collx_groups_choose(const struct collx_place *places, int ranks,
                                             enum collx_groups_wanted wanted,
                                             collx_groups_flat *flat, collx_groups_grouped *grouped)
{
    struct collx_groups_plan chosen = {.groups = 1};

    if (!places || ranks < COLLX_GROUPS_FROM)
        return chosen;
    flat(places, ranks, &chosen);
    chosen.flat_time = chosen.time;
    chosen.flat_far = chosen.far;
    for (int key = 0; key < COLLX_PLACE_KEYS && wanted != COLLX_GROUPS_NEVER; key++) {
        struct collx_groups_plan plan = {.key = (enum collx_place_key)key,
                                         .flat_time = chosen.flat_time,
                                         .flat_far = chosen.flat_far};
        grouped(places, ranks, plan.key, &plan);
        bool divides = plan.groups > 1 && plan.groups < ranks && plan.groups <= COLLX_GROUPS_MOST;
        /* Some figures of the model are assumed: less than a tenth is no reason. */
        bool worth = wanted == COLLX_GROUPS_ALWAYS || plan.time * 10 <= chosen.flat_time * 9;
        if (divides && worth && (chosen.groups == 1 || plan.time < chosen.time))
            chosen = plan;
    }
    return chosen;
}

int collx_groups_init(struct collx_groups *groups, const struct collx_groups_plan *plan,
                      const struct collx_team *team)
{
    const size_t ranks = (size_t)team->size, most = (size_t)plan->groups;
    int *memory = calloc(2 * (ranks + most), sizeof *memory);

    *groups = (struct collx_groups){.of = memory};
    if (!memory)
        return -ENOMEM;
    groups->index = groups->of + ranks;
    groups->first = groups->index + ranks;
    groups->members = groups->first + most;
    for (int rank = 0; rank < team->size; rank++) {
        /* Flat, all are in one group. */
        int first = plan->groups > 1 ? collx_places_first(team->places, rank, plan->key) : 0;
        if (first == rank)
            groups->first[groups->count++] = rank;
        groups->of[rank] = first == rank ? groups->count - 1 : groups->of[first];
        groups->index[rank] = groups->members[groups->of[rank]]++;
    }
    groups->own = groups->of[team->rank];
    return 0;
}

void collx_groups_finish(struct collx_groups *groups)
{
    free(groups->of);
}
