#include "algorithms/within/mates.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(offsetof(struct collx_mates_flags, arrived) == sizeof(struct collx_flag),
               "all are alike");

int collx_mates_init(struct collx_mates *mates, struct collx_team *team, const char *what,
                     void *memory)
{
    const int own = collx_team_node(team, team->rank);

    *mates = (struct collx_mates){.team = team, .what = what, .flags = memory};
    mates->rank = calloc((size_t)team->size, sizeof *mates->rank);
    for (int rank = 0; mates->rank && rank < team->size; rank++)
        if (collx_team_node(team, rank) == own) {
            mates->index = rank == team->rank ? mates->ranks : mates->index;
            mates->rank[mates->ranks++] = rank;
        }
    return mates->rank ? 0 : -ENOMEM;
}

void collx_mates_finish(struct collx_mates *mates)
{
    free(mates->rank);
    mates->rank = NULL;
}

/* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
static bool has_arrived(const struct collx_mates *mates, int i)
{
    return atomic_load_explicit(&mates->flags->arrived[i].value, memory_order_relaxed) >=
           mates->awaited;
}

/* Those of this node alone: the leader knows about others, and speaks for itself. */
static bool is_missing(const void *with, int rank)
{
    const struct collx_mates *mates = with;

    for (int i = 0; i < mates->ranks; i++)
        if (mates->rank[i] == rank)
            return !has_arrived(mates, i);
    return false;
}

/* Oneself is none that one waits for. */
static void wait_for_some(struct collx_mates *mates, int first, int count, uint64_t value)
{
    struct collx_flag *flag = &mates->flags->arrived[first];
    const struct collx_wait wait = {.flag = flag,
                                    .stride = sizeof *flag,
                                    .count = count,
                                    .what = mates->what,
                                    .missing = is_missing,
                                    .with = mates};

    mates->awaited = value;
    for (int i = 0; i < count; i++)
        if (!collx_spin_for(mates->team, &flag[i], value)) {
            collx_wait_long(mates->team, &wait, value);
            return;
        }
}

void collx_mates_await(struct collx_mates *mates, uint64_t value)
{
    wait_for_some(mates, 0, mates->index, value);
    wait_for_some(mates, mates->index + 1, mates->ranks - mates->index - 1, value);
}

int collx_mates_await_release(struct collx_mates *mates, uint64_t value, int by)
{
    struct collx_flag *released = &mates->flags->released;
    int result;

    mates->awaited = value;
    if (!collx_spin_for(mates->team, released, value))
        collx_wait_long(mates->team,
                        &(struct collx_wait){.flag = released,
                                             .count = 1,
                                             .rank = by,
                                             .what = mates->what,
                                             .missing = by < 0 ? is_missing : NULL,
                                             .relayed = by >= 0,
                                             .with = mates},
                        value);
    memcpy(&result, collx_mates_result(mates, value), sizeof result);
    return result;
}
