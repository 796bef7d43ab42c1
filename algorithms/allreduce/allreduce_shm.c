/* Allreduce through shared memory.  The order of combination is always rank 0, 1, 2, …, from the
 * left, whatever the size, so it suits operations that do not commute, and every rank gets the
 * same bits: each element is either combined by everybody in the same way or by one for all.
 *
 * Small.  Round e = 1, 2, …:
 *   1. copy what we contribute into our own share, slot e mod 2, post e beside it
 *   2. in groups: wait for e in each share that we relay, copy it into our group's table, post e
 *   3. wait for e in everybody's share, in our group's table; combine all of them into the result
 *   4. claim our own share's other slot, so that (1) has not to fetch its lines from those who have
 *      read there
 * Two slots are enough: who posts e has finished with (3) of round e - 1, so who has seen e from
 * everybody may overwrite what was read in round e - 1, and does so in round e + 1.  That is as
 * true of what a relay writes: it has seen e from everybody in (3).
 *
 * Two ranks have two slots together, and swap them after each round: each writes e + 1 where it has
 * read e, when it has finished with that, into lines that are in its caches.  So nobody may read
 * its own share: once it is posted, the other one may be there with the next.
 *
 * Flat, and of more than two ranks, vectors of a few lines go in numbered ones (numbered.h): then
 * (1) posts after the first, and (3) copies each share together before it combines.  Two ranks have
 * their lines already and post at once in any case, and need not copy: 512 bytes take 0.16 us then
 * instead of 0.21 where CPUs share a cache, and 0.25 instead of 0.43 far apart.
 *
 * Rounds are counted over all calls, and all ranks count alike.
 *
 * Larger vectors go through shared memory (allreduce_pipe.c, allreduce_pair.c), on the way out past
 * the receivers' caches or not, or, where the kernel allows it, straight between the ranks' buffers
 * (allreduce_single.c); what is fastest the calls find out for each size (long_ways.h).
 */
#include "algorithms/allreduce/allreduce.h"

#include "algorithms/allreduce/allreduce_shares.h"
#include "algorithms/reduction/combine.h"
#include "algorithms/within/long_ways.h"

#include <errno.h>
#include <stdlib.h>

enum {
    /* Bytes for one share that has come in numbered lines: whole ones. */
    GATHERED = (COLLX_NUMBERED_MOST + COLLX_LINE_LEAST - 1) / COLLX_LINE_LEAST * COLLX_LINE_LEAST,
};
_Static_assert(2 * (int)GATHERED <= (int)COLLX_WORK_LEAST,
               "there is room for that of two ranks and more, and for a result behind it");

struct allreduce {
    struct collx_team *team;
    struct collx_shares shares;
    uint64_t round;
    size_t small_bytes; /* up to here small */
    size_t slow_bytes;  /* the same where MPI combines */
    struct collx_allreduce_work work;
    struct collx_copier copier;
    struct collx_allreduce_pipe pipe;
    struct collx_long_ways ways;
};

/* What `rank` contributes, when it is there; `mine` is our own. */
static inline const void *operand(struct allreduce *state, int rank, uint64_t round, size_t bytes,
                                  const void *mine)
{
    struct collx_share *share = collx_share_of(&state->shares, rank, round);

    if (rank == state->team->rank)
        return mine;
    collx_shares_wait(state->team, &state->shares, share, rank, round);
    return collx_share_data(share, bytes);
}

/* Combine what state->work.from has of everybody, unless there has been an error. */
static int combine_all(struct allreduce *state, struct collx_call *call, int error)
{
    struct collx_team *team = state->team;

    if (call->contiguous)
        return collx_combine(team, call, state->work.from, NULL, call->count, call->rbuf);
    /* Behind all that has been gathered. */
    unsigned char *result = state->work.operand + (size_t)(team->size - 1) * state->work.bytes;

    if (!error)
        error = collx_combine(team, call, state->work.from, collx_combine_own(call, 0), call->count,
                              result);
    if (!error)
        error = team->ops->unpack(team->ctx, call, result, call->rbuf, 0, call->count);
    return error;
}

/* Compiled for each, since being flat should cost no look at what else could be. */
static inline __attribute__((always_inline)) int run_small(struct allreduce *state,
                                                           struct collx_call *call, bool in_groups)
{
    struct collx_team *team = state->team;
    struct collx_shares *shares = &state->shares;
    const size_t bytes = call->bytes;
    const uint64_t round = ++state->round;
    struct collx_share *share = collx_share_of(shares, team->rank, round);
    unsigned char *own = collx_share_data(share, bytes);
    unsigned char *mine = (unsigned char *)(uintptr_t)call->sbuf;
    int error = 0;

    if (!call->contiguous) { /* 1 */
        mine = state->work.operand;
        error = team->ops->pack(team->ctx, call, call->sbuf, 0, call->count, mine);
    }
    if (bytes <= COLLX_INLINE)
        collx_copy_small(own, mine, bytes);
    else if (shares->swapped)
        state->copier.ways.wide(own, mine, bytes);
    else
        collx_copy_in(&state->copier, own, mine, bytes);
    collx_flag_post(team, &share->flag, round);
    if (in_groups)
        collx_shares_relay(team, shares, round, bytes); /* 2 */

    if (call->reduce && call->contiguous) { /* 3 */
        /* Our own operand is read where it came from: what has just been stored is on its way.  But
         * in place, that may be overwritten before its turn comes. */
        if (mine == call->rbuf && team->rank > 1)
            mine = own;
        const void *left = operand(state, 0, round, bytes, mine);
        for (int rank = 1; rank < team->size; rank++) {
            call->reduce(left, operand(state, rank, round, bytes, mine), call->rbuf,
                         (size_t)call->count);
            left = call->rbuf;
        }
    } else {
        for (int rank = 0; rank < team->size; rank++)
            state->work.from[rank] =
                (unsigned char *)(uintptr_t)operand(state, rank, round, bytes, mine);
        error = combine_all(state, call, error);
    }
    collx_shares_claim(team, shares, &state->copier, round, bytes); /* 4 */
    return error;
}

/* Where the share of `rank` is copied together. */
static unsigned char *gathered(const struct allreduce *state, int rank)
{
    return state->work.operand + (size_t)rank * GATHERED;
}

static int run_numbered(struct allreduce *state, struct collx_call *call)
{
    struct collx_team *team = state->team;
    struct collx_shares *shares = &state->shares;
    const size_t bytes = call->bytes;
    const uint64_t round = ++state->round;
    unsigned char **from = state->work.from;
    unsigned char *mine = (unsigned char *)(uintptr_t)call->sbuf;
    int error = 0;

    if (!call->contiguous) { /* 1 */
        mine = gathered(state, team->rank);
        error = team->ops->pack(team->ctx, call, call->sbuf, 0, call->count, mine);
    }
    collx_shares_put_numbered(team, shares, round, mine, bytes);
    for (int rank = 0; rank < team->size; rank++) { /* 3 */
        from[rank] = rank == team->rank ? mine : gathered(state, rank);
        if (rank != team->rank)
            collx_shares_get_numbered(team, shares, rank, round, from[rank], bytes);
    }
    /* In place, the result would come before the operand that lies there has been used. */
    if (call->contiguous && mine == call->rbuf && team->rank > 0)
        from[team->rank] = memcpy(gathered(state, team->rank), mine, bytes);
    error = combine_all(state, call, error);
    collx_shares_claim_numbered(team, shares, round, bytes); /* 4 */
    return error;
}

/* One element that there is room for.  To combine it cannot be shared. */
static bool is_one(const struct allreduce *state, const struct collx_call *call)
{
    return call->count == 1 && call->bytes <= state->small_bytes && !state->team->crowded;
}

static int run_large(struct allreduce *state, struct collx_call *call)
{
    int error = 0;

    if (call->bytes < collx_long_ways_least(&state->ways))
        return collx_allreduce_pipe(&state->pipe, call);
    switch (collx_long_ways_begin(&state->ways, call->bytes)) {
    case COLLX_WAY_SEGMENT:
        error = collx_allreduce_pipe(&state->pipe, call);
        break;
    case COLLX_WAY_PAST:
        collx_copy_out_past(&state->copier);
        error = collx_allreduce_pipe(&state->pipe, call);
        collx_copy_out_past_end(&state->copier);
        break;
    case COLLX_WAY_SINGLE:
        error = collx_allreduce_single(&state->ways.single, call, &state->work, false);
        break;
    case COLLX_WAY_SINGLE_OTHER:
        error = collx_allreduce_single(&state->ways.single, call, &state->work, true);
    }
    collx_long_ways_end(&state->ways);
    return error;
}

static inline __attribute__((always_inline)) int run(struct allreduce *state,
                                                     struct collx_call *call, bool in_groups)
{
    const bool is_slow = !call->reduce && !call->whole;

    if (__builtin_expect(call->bytes > (is_slow ? state->slow_bytes : state->small_bytes), 0) &&
        !is_one(state, call))
        return run_large(state, call);
    if (!in_groups && collx_numbered_suits(state->team, call->bytes) && !state->shares.swapped)
        return run_numbered(state, call);
    return call->bytes ? run_small(state, call, in_groups) : 0;
}

static int run_flat(struct collx_slot *slot, struct collx_call *call)
{
    return run(slot->state, call, false);
}

static int run_grouped(struct collx_slot *slot, struct collx_call *call)
{
    return run(slot->state, call, true);
}

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    struct allreduce *state = slot->state;

    return collx_combine_alone(state->team, call);
}

/* Parameters. */
enum { SINGLE_COPY, GROUPS, PAST_CACHES };
static const struct collx_param params[] = {
    COLLX_SINGLE_PARAM,
    COLLX_GROUPS_PARAM("small vectors of 9 ranks and more in several caches or packages come to "
                       "each of them once"),
    COLLX_PAST_PARAM,
    {0},
};

static struct collx_groups_plan plan_of(const struct collx_place *places, int ranks,
                                        const struct collx_args *args)
{
    return collx_allreduce_plan_choose(places, ranks,
                                       (enum collx_groups_wanted)args->value[GROUPS]);
}

static size_t collx_allreduce_shm_space(const struct collx_facts *facts,
                                        const struct collx_args *args)
{
    const struct collx_groups_plan plan = plan_of(facts->places, facts->ranks, args);

    if (facts->ranks == 1)
        return 0;
    return collx_shares_space(&plan, facts->ranks, facts->numa_nodes) +
           collx_allreduce_pipe_space(facts->ranks, facts->numa_nodes) +
           collx_long_ways_space(facts->ranks);
}

static void collx_allreduce_shm_clear(const struct collx_facts *facts,
                                      const struct collx_args *args, void *memory)
{
    const struct collx_groups_plan plan = plan_of(facts->places, facts->ranks, args);
    const size_t shares = collx_shares_space(&plan, facts->ranks, facts->numa_nodes);

    memset(memory, 0, shares);
    void *behind =
        collx_allreduce_pipe_clear((char *)memory + shares, facts->ranks, facts->numa_nodes);
    memset(behind, 0, collx_long_ways_space(facts->ranks));
}

static void collx_allreduce_shm_place(const struct collx_team *team, const struct collx_args *args,
                                      void *memory)
{
    const struct collx_groups_plan plan = plan_of(team->places, team->size, args);
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);

    collx_shares_place(&plan, team, memory);
    collx_allreduce_pipe_place(team,
                               (char *)memory + collx_shares_space(&plan, team->size, numa_nodes));
}

static bool collx_allreduce_shm_takes(const void *state, const struct collx_call *call)
{
    const struct allreduce *allreduce = state;

    return call->elem_bytes <= COLLX_ALLREDUCE_ELEMENT &&
           (!call->whole || call->bytes <= allreduce->small_bytes || allreduce->team->size == 1);
}

static void collx_allreduce_shm_detach(void *state)
{
    struct allreduce *allreduce = state;

    if (!allreduce)
        return;
    collx_shares_finish(&allreduce->shares);
    collx_allreduce_work_finish(&allreduce->work);
    free(allreduce);
}

static const struct collx_way list[] = {COLLX_SEGMENT_WAYS, {.say = "by slices"}, {.say = NULL}};
static const struct collx_way list_of_two[] = {
    COLLX_SEGMENT_WAYS,
    {.say = "by slices"},
    {.say = "whole"},
    {.say = NULL},
};

/* What the ranks of a team share, and work in. */
static int prepare(struct allreduce *state, const struct collx_groups_plan *plan,
                   const struct collx_args *args, void *memory)
{
    struct collx_team *team = state->team;

    if (collx_allreduce_work_init(&state->work, team->size) ||
        collx_shares_init(&state->shares, plan, team, memory))
        return -ENOMEM;
    /* Then to combine all of it takes longer than to meet once more. */
    state->slow_bytes = collx_shares_most(team->size, true) / 8;
    void *rings =
        (char *)memory +
        collx_shares_space(plan, team->size, collx_places_numa_nodes(team->places, team->size));
    collx_copier_init(&state->copier);
    const uint32_t agreed = collx_shm_agree(rings, &state->copier.ways);
    state->small_bytes = collx_shares_most(team->size, agreed & COLLX_SHM_RETURNABLE);
    void *behind =
        collx_allreduce_pipe_init(&state->pipe, team, &state->work, &state->copier, agreed, rings);
    collx_long_ways_init(
        &state->ways, team, rings, behind,
        &(struct collx_long_ways_setup){.list = team->size == 2 ? list_of_two : list,
                                        .name = "Allreduce",
                                        .wanted = args->value[SINGLE_COPY],
                                        .past = args->value[PAST_CACHES]});
    return 0;
}

static int collx_allreduce_shm_attach(struct collx_team *team, const struct collx_args *args,
                                      void *memory, struct collx_slot *slot)
{
    const struct collx_groups_plan plan = plan_of(team->places, team->size, args);
    struct allreduce *state = calloc(1, sizeof *state);

    if (!state)
        return -ENOMEM;
    state->team = team;
    state->shares.plan = plan;
    /* One alone has no memory. */
    int error = team->size > 1 ? prepare(state, &plan, args, memory) : 0;
    if (error) {
        collx_allreduce_shm_detach(state);
        return error;
    }
    slot->state = state;
    slot->run = team->size == 1 ? run_alone : plan.groups > 1 ? run_grouped : run_flat;
    return 0;
}

static void collx_allreduce_shm_describe(const void *state, char *line, size_t size)
{
    collx_allreduce_plan_describe(&((const struct allreduce *)state)->shares.plan, line, size);
}

const struct collx_algorithm collx_allreduce_shm = {
    .name = "shm",
    .help = "in rank order through shared memory; long vectors as reduce-scatter and allgather",
    .needs = "all ranks on one node; datatype elements of at most 4 KiB",
    .kind = COLLX_ALLREDUCE,
    .rank_order = true,
    .params = params,
    .query = collx_query_one_node,
    .space = collx_allreduce_shm_space,
    .place = collx_allreduce_shm_place,
    .clear = collx_allreduce_shm_clear,
    .attach = collx_allreduce_shm_attach,
    .takes = collx_allreduce_shm_takes,
    .describe = collx_allreduce_shm_describe,
    .detach = collx_allreduce_shm_detach,
};
