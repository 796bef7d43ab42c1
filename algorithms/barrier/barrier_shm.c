/* Barrier over flags in shared memory: each is alone on its line, has one writer, and tells how far
 * that one has come.
 *
 * Up to COLLX_RADIX_MAX ranks need one round.  Barrier r = 1, 2, …:
 *   1. post r in our own flag r mod 2
 *   2. wait for r in everybody's
 *   3. claim our flag of the next barrier: nobody looks there any more, and (1) need not fetch its
 *      line from those who have
 * One flag a rank would be enough, but for (3): the others still look at it.  More ranks do the
 * steps of algorithms/barrier/barrier_plan.h: dissemination, or a tree where they sit in several
 * caches or packages and that is cheaper.
 *
 * Dissemination: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988; with
 * a radix: Hoefler et al., "Fast Barrier Synchronization for InfiniBand", 2006, section 3.
 */
#include "algorithms/barrier/barrier_plan.h"
#include "algorithms/within/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What a rank of a larger team has; see barrier_plan.h. */
struct member {
    struct collx_flag flag[2]; /* COLLX_ARRIVED, COLLX_RELEASED */
    /* Barriers that it has entered.  Apart, since a leader posts its flags later than that, and
     * nobody reads it but to say who is late. */
    _Alignas(COLLX_LINE) _Atomic uint64_t entered;
};
_Static_assert(sizeof(struct member) == 3 * COLLX_LINE, "an array of members has three lines each");

/* A step, for this rank in this segment. */
struct step {
    struct collx_flag *flag;
    uint32_t phase;
    bool post; /* it is ours; else wait for it */
};

struct barrier {
    struct collx_team *team;
    struct collx_flag (*flags)[2]; /* of each rank */
    struct collx_flag *own;        /* [2] of those: ours */
    struct collx_flag *other;      /* [2]: of two ranks, the other's */
    uint64_t reached;              /* what our own say */

    /* Of a larger team. */
    struct collx_barrier_plan plan;
    struct member **member; /* of each rank */
    struct step *step;
    int steps;
    uint64_t entered;
};

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    (void)slot, (void)call;
    return 0;
}

/* 3 */
static void claim_next(const struct barrier *barrier)
{
    collx_claim_line(barrier->team, &barrier->own[(barrier->reached + 1) & 1].claimed);
}

static int run_pair(struct collx_slot *slot, struct collx_call *call)
{
    struct barrier *barrier = slot->state;
    struct collx_team *team = barrier->team;
    uint64_t round = ++barrier->reached;

    (void)call;
    collx_flag_post(team, &barrier->own[round & 1], round);                          /* 1 */
    collx_wait_for(team, &barrier->other[round & 1], round, !team->rank, "Barrier"); /* 2 */
    claim_next(barrier);
    return 0;
}

static int run_flat(struct collx_slot *slot, struct collx_call *call)
{
    struct barrier *barrier = slot->state;
    struct collx_team *team = barrier->team;
    uint64_t round = ++barrier->reached;

    (void)call;
    collx_flag_post(team, &barrier->own[round & 1], round); /* 1 */
    collx_wait_others(team, &barrier->flags[0][round & 1], sizeof *barrier->flags, round,
                      "Barrier");
    claim_next(barrier);
    return 0;
}

/* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
static bool is_missing(const void *with, int rank)
{
    const struct barrier *barrier = with;

    return atomic_load_explicit(&barrier->member[rank]->entered, memory_order_relaxed) <
           barrier->entered;
}

static int run_steps(struct collx_slot *slot, struct collx_call *call)
{
    struct barrier *barrier = slot->state;
    const struct step *end = &barrier->step[barrier->steps];

    (void)call;
    atomic_store_explicit(&barrier->member[barrier->team->rank]->entered, ++barrier->entered,
                          memory_order_relaxed);
    for (const struct step *step = barrier->step; step < end; step++) {
        uint64_t value = barrier->reached + step->phase;

        if (step->post)
            collx_flag_post(barrier->team, step->flag, value);
        else if (!collx_spin_for(barrier->team, step->flag, value))
            collx_wait_long(barrier->team,
                            &(struct collx_wait){.flag = step->flag,
                                                 .count = 1,
                                                 .what = "Barrier",
                                                 .missing = is_missing,
                                                 .with = barrier},
                            value);
    }
    barrier->reached += (uint64_t)barrier->plan.phases;
    return 0;
}

static size_t collx_barrier_shm_space(const struct collx_facts *facts,
                                      const struct collx_args *args)
{
    (void)args;
    if (facts->ranks <= COLLX_RADIX_MAX)
        return (size_t)facts->ranks * sizeof *(struct barrier){0}.flags;
    size_t space = (size_t)facts->ranks * sizeof(struct member);
    /* The members on each NUMA node have pages of their own. */
    return facts->numa_nodes > 1 ? space + ((size_t)facts->numa_nodes + 1) * collx_page_up(1)
                                 : space;
}

/* Where the members of a larger team are: those on one NUMA node together.  Into member[rank],
 * unless NULL; or the parts are placed. */
static void lay_out(const struct collx_team *team, void *memory, struct member **member)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);
    const bool spread = numa_nodes > 1;
    uintptr_t next = (uintptr_t)memory;
    int numa = -1;

    do {
        uintptr_t begin = next = collx_numa_up(next, numa_nodes);
        for (int rank = 0; rank < team->size; rank++) {
            if (spread && team->places[rank].numa != numa)
                continue;
            if (member)
                member[rank] = (struct member *)next;
            next += sizeof(struct member);
        }
        if (!member)
            collx_shm_place((void *)begin, collx_page_up(next) - begin, numa);
    } while (spread && collx_places_next_numa(team->places, team->size, &numa));
}

static void collx_barrier_shm_place(const struct collx_team *team, const struct collx_args *args,
                                    void *memory)
{
    (void)args;
    if (team->size > COLLX_RADIX_MAX)
        lay_out(team, memory, NULL);
}

static void collx_barrier_shm_detach(void *state)
{
    struct barrier *barrier = state;

    collx_barrier_plan_finish(&barrier->plan);
    free(barrier->member);
    free(barrier->step);
    free(barrier);
}

/* What this rank of a larger team does. */
static int prepare_steps(struct barrier *barrier, void *memory)
{
    const struct collx_team *team = barrier->team;
    const size_t ranks = (size_t)team->size;
    struct collx_barrier_step *list = malloc(COLLX_BARRIER_STEPS(ranks) * sizeof *list);
    int error = -ENOMEM;

    barrier->member = calloc(ranks, sizeof(struct member *));
    if (list && barrier->member)
        error = collx_barrier_plan_choose(&barrier->plan, team->places, team->size);
    if (!error) {
        lay_out(team, memory, barrier->member);
        barrier->steps = collx_barrier_plan_steps(&barrier->plan, team->rank, list);
        barrier->step = malloc((size_t)barrier->steps * sizeof *barrier->step);
        error = barrier->step ? 0 : -ENOMEM;
    }
    for (int i = 0; !error && i < barrier->steps; i++)
        barrier->step[i] = (struct step){&barrier->member[list[i].rank]->flag[list[i].what],
                                         (uint32_t)list[i].phase, list[i].post};
    free(list);
    return error;
}

static int collx_barrier_shm_attach(struct collx_team *team, const struct collx_args *args,
                                    void *memory, struct collx_slot *slot)
{
    struct barrier *barrier = calloc(1, sizeof *barrier);

    (void)args;
    if (!barrier)
        return -ENOMEM;
    barrier->team = team;
    if (team->size > COLLX_RADIX_MAX) {
        int error = prepare_steps(barrier, memory);
        if (error) {
            collx_barrier_shm_detach(barrier);
            return error;
        }
    } else {
        barrier->flags = memory;
        barrier->own = barrier->flags[team->rank];
        barrier->other = team->size == 2 ? barrier->flags[!team->rank] : NULL;
    }
    slot->state = barrier;
    slot->run = team->size == 1                 ? run_alone
                : team->size == 2               ? run_pair
                : team->size <= COLLX_RADIX_MAX ? run_flat
                                                : run_steps;
    return 0;
}

static void collx_barrier_shm_describe(const void *state, char *line, size_t size)
{
    const struct barrier *barrier = state;

    if (barrier->step)
        collx_barrier_plan_describe(&barrier->plan, line, size);
    else
        snprintf(line, size, "everybody waits for everybody");
}

const struct collx_algorithm collx_barrier_shm = {
    .name = "shm",
    .help = "flags in shared memory; dissemination of radix 8, or a tree shaped by caches",
    .needs = "all ranks on one node",
    .kind = COLLX_BARRIER,
    .query = collx_query_one_node,
    .space = collx_barrier_shm_space,
    .place = collx_barrier_shm_place,
    .attach = collx_barrier_shm_attach,
    .describe = collx_barrier_shm_describe,
    .detach = collx_barrier_shm_detach,
};
