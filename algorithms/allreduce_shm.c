/* Allreduce through shared memory.  The order of combination is always rank 0, 1, 2, …, from the
 * left, whatever the size, so it suits operations that do not commute, and every rank gets the
 * same bits: each element is either combined by everybody in the same way or by one for all.
 *
 * Small.  Round e = 1, 2, …:
 *   1. copy what we contribute into our own slot e mod 2, post e beside it
 *   2. wait for e in everybody's slot, combine all of them into the result
 *   3. claim our own slot of the next round, so that (1) has not to fetch its lines from those who
 *      have read there
 * Two slots are enough: who posts e has finished reading round e - 1, so who has seen e everywhere
 * may overwrite what was read in round e - 1, and does so in (3) and in round e + 1.
 *
 * Rounds are counted over all calls, and all ranks count alike.
 *
 * Larger vectors go one of two ways, through shared memory (allreduce_pipe.c) or, where the kernel
 * allows it, straight between the ranks' buffers (allreduce_single.c); which one is faster the
 * calls find out for each size (tuner.h).
 */
#include "algorithms/allreduce.h"

#include "algorithms/combine.h"
#include "algorithms/shm.h"

#include <errno.h>
#include <stdlib.h>

enum {
    SMALL_BYTES = 4096,           /* of one rank */
    SMALL_BYTES_TOGETHER = 16384, /* of all: everybody reads them all */
};

/* One rank's part of the segment, for small vectors. */
struct part {
    struct collx_flag line[2];
    unsigned char small[2][SMALL_BYTES];
};
_Static_assert(sizeof(struct part) % COLLX_LINE == 0, "parts are made of whole lines");

struct allreduce {
    struct collx_team *team;
    struct part *part; /* [size] */
    uint64_t round;
    size_t small_bytes; /* up to here small; else large */
    struct collx_allreduce_work work;
    struct collx_allreduce_pipe pipe;
    struct collx_single single;
};

static unsigned char *small_slot(struct allreduce *state, int rank, uint64_t round, size_t bytes)
{
    struct part *part = &state->part[rank];

    return bytes <= COLLX_INLINE ? part->line[round & 1].payload : part->small[round & 1];
}

/* What `rank` contributes, when it is there; `mine` is our own. */
static inline const void *operand(struct allreduce *state, int rank, uint64_t round, size_t bytes,
                                  const void *mine)
{
    if (rank == state->team->rank)
        return mine;
    collx_wait_for(state->team, &state->part[rank].line[round & 1], round, rank, "Allreduce");
    return small_slot(state, rank, round, bytes);
}

static int run_small(struct allreduce *state, struct collx_call *call)
{
    struct collx_team *team = state->team;
    const size_t bytes = call->bytes;
    const uint64_t round = ++state->round;
    unsigned char *own = small_slot(state, team->rank, round, bytes);
    int error = 0;

    if (!call->contiguous) /* 1 */
        error = team->ops->pack(team->ctx, call, call->sbuf, 0, call->count, own);
    else if (bytes <= COLLX_INLINE)
        collx_copy_small(own, call->sbuf, bytes);
    else
        collx_copy_in(&state->pipe.copier, own, call->sbuf, bytes);
    collx_flag_post(team, &state->part[team->rank].line[round & 1], round);

    if (call->reduce) { /* 2 */
        /* Our own operand is read where it came from: what has just been stored is on its way.  But
         * in place, that may be overwritten before its turn comes. */
        const void *mine = call->sbuf == call->rbuf && team->rank > 1 ? own : call->sbuf;
        const void *left = operand(state, 0, round, bytes, mine);
        for (int rank = 1; rank < team->size; rank++) {
            call->reduce(left, operand(state, rank, round, bytes, mine), call->rbuf,
                         (size_t)call->count);
            left = call->rbuf;
        }
        collx_claim(team, small_slot(state, team->rank, round + 1, bytes), bytes); /* 3 */
        return 0;
    }

    unsigned char result[SMALL_BYTES];
    collx_wait_others(team, &state->part->line[round & 1], sizeof *state->part, round, "Allreduce");
    for (int rank = 0; rank < team->size; rank++)
        state->work.from[rank] = small_slot(state, rank, round, bytes);
    if (!error)
        error = collx_combine(team, call, state->work.from, call->count, result);
    if (!error)
        error = team->ops->unpack(team->ctx, call, result, call->rbuf, 0, call->count);
    return error;
}

static int run_large(struct allreduce *state, struct collx_call *call)
{
    int error;

    if (call->bytes < state->single.least)
        return collx_allreduce_pipe(&state->pipe, call);
    switch (collx_single_begin(&state->single, call->bytes)) {
    case 0:
        error = collx_allreduce_pipe(&state->pipe, call);
        break;
    case 1:
        error = collx_allreduce_single(&state->single, call, &state->work, false);
        break;
    default:
        error = collx_allreduce_single(&state->single, call, &state->work, true);
    }
    collx_single_end(&state->single);
    return error;
}

static int collx_allreduce_shm_run(struct collx_slot *slot, struct collx_call *call)
{
    struct allreduce *state = slot->state;

    if (__builtin_expect(call->bytes <= state->small_bytes, 1))
        return call->bytes ? run_small(state, call) : 0;
    return run_large(state, call);
}

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    struct allreduce *state = slot->state;

    return collx_combine_alone(state->team, call);
}

static int collx_allreduce_shm_query(const struct collx_facts *facts, const struct collx_args *args,
                                     char *why, size_t size)
{
    (void)args;
    return collx_query_one_node(facts, why, size);
}

static size_t collx_allreduce_shm_space(const struct collx_facts *facts,
                                        const struct collx_args *args)
{
    (void)args;
    if (facts->ranks == 1)
        return 0;
    return (size_t)facts->ranks * sizeof(struct part) + collx_allreduce_pipe_space(facts->ranks) +
           collx_single_space(facts->ranks);
}

static bool collx_allreduce_shm_takes(const void *state, const struct collx_call *call)
{
    (void)state;
    return call->elem_bytes <= SMALL_BYTES;
}

static void collx_allreduce_shm_detach(void *state)
{
    struct allreduce *allreduce = state;

    if (!allreduce)
        return;
    collx_allreduce_work_finish(&allreduce->work);
    free(allreduce);
}

static const char *const ways[] = {"through the segment", "by slices", NULL};
static const char *const ways_of_two[] = {"through the segment", "by slices", "whole", NULL};

static int collx_allreduce_shm_attach(struct collx_team *team, const struct collx_args *args,
                                      void *memory, struct collx_slot *slot)
{
    struct allreduce *state = calloc(1, sizeof *state);

    if (!state)
        return -ENOMEM;
    state->team = team;
    if (collx_allreduce_work_init(&state->work, team->size)) {
        free(state);
        return -ENOMEM;
    }
    state->part = memory;
    memory = state->part + team->size;
    void *behind = collx_allreduce_pipe_init(&state->pipe, team, &state->work, memory);
    collx_single_init(&state->single, team, memory, behind, args->value[0],
                      team->size == 2 ? ways_of_two : ways, "Allreduce");
    state->small_bytes = SMALL_BYTES_TOGETHER / (size_t)team->size;
    if (state->small_bytes > SMALL_BYTES)
        state->small_bytes = SMALL_BYTES;
    if (state->small_bytes < COLLX_INLINE)
        state->small_bytes = COLLX_INLINE;
    slot->state = state;
    slot->run = team->size == 1 ? run_alone : collx_allreduce_shm_run;
    return 0;
}

const struct collx_algorithm collx_allreduce_shm = {
    .name = "shm",
    .help = "in rank order through shared memory; long vectors as reduce-scatter and allgather",
    .needs = "all ranks on one node; datatype elements of at most 4 KiB",
    .kind = COLLX_ALLREDUCE,
    .rank_order = true,
    .params = collx_single_params,
    .query = collx_allreduce_shm_query,
    .space = collx_allreduce_shm_space,
    .attach = collx_allreduce_shm_attach,
    .takes = collx_allreduce_shm_takes,
    .detach = collx_allreduce_shm_detach,
};
