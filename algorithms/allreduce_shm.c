/* Allreduce through shared memory.  The order of combination is always rank 0, 1, 2, …, from the
 * left, whatever the size, so it suits operations that do not commute, and every rank gets the
 * same bits: each element is either combined by everybody in the same way or by one for all.
 *
 * Small.  Round e = 1, 2, …:
 *   1. copy what we contribute into our own slot e mod 2, post e beside it
 *   2. wait for e in everybody's slot, combine all of them into the result
 * Two slots are enough: who posts e has finished reading round e - 1, so who has seen e everywhere
 * may overwrite what was read in round e - 1, and does so in round e + 1.
 *
 * Large.  The vector goes through in chunks g = 1, 2, …, each in three steps, in buffers g mod 2:
 *   A. copy our chunk in (without the slice that we combine ourselves), post copied = g
 *   B. wait for copied = g of all; combine our slice of everybody's chunk, into the result and
 *      into `out`; post reduced = g
 *   C. wait for reduced = g of all; copy the other slices out
 * done in the order C(g-1) A(g+1) B(g), so that each wait is for what the others did a step before.
 * Two buffers are enough: A(g+1) overwrites what was read in everybody's B(g-1), which C(g-1) has
 * waited for; B(g) overwrites what was read in everybody's C(g-2), which comes before their A(g),
 * which B(g) has waited for.
 *
 * Both count on over all calls, and all ranks count alike.
 */
#include "algorithms/combine.h"
#include "algorithms/shm.h"

#include <errno.h>
#include <stdlib.h>

enum {
    SMALL_BYTES = 4096,           /* of one rank */
    SMALL_BYTES_TOGETHER = 16384, /* of all: everybody reads them all */
    CHUNK = 16384,
};

/* One rank's part of the segment. */
struct part {
    struct collx_flag line[2];
    struct collx_flag copied, reduced;
    unsigned char small[2][SMALL_BYTES];
    unsigned char in[2][CHUNK];
};
_Static_assert(sizeof(struct part) % COLLX_LINE == 0, "parts are made of whole lines");

/* The segment: the ranks' parts, then what was combined. */
struct allreduce {
    struct collx_team *team;
    struct part *part;           /* [size] */
    unsigned char (*out)[CHUNK]; /* [2] */
    unsigned char *scratch;      /* [CHUNK], our own */
    unsigned char **from;        /* [size]: everybody's operands */
    uint64_t round;              /* small */
    uint64_t chunk;              /* large */
    struct collx_copier copier;
    size_t small_bytes; /* up to here small; else large */
};

static unsigned char *small_slot(struct allreduce *state, int rank, uint64_t round, size_t bytes)
{
    struct part *part = &state->part[rank];

    return bytes <= COLLX_INLINE ? part->line[round & 1].payload : part->small[round & 1];
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
        memcpy(own, call->sbuf, bytes);
    collx_flag_post(team, &state->part[team->rank].line[round & 1], round);

    if (call->reduce) { /* 2 */
        const void *left = small_slot(state, 0, round, bytes);
        collx_wait_for(team, &state->part[0].line[round & 1], round, 0, "Allreduce");
        for (int rank = 1; rank < team->size; rank++) {
            collx_wait_for(team, &state->part[rank].line[round & 1], round, rank, "Allreduce");
            call->reduce(left, small_slot(state, rank, round, bytes), call->rbuf,
                         (size_t)call->count);
            left = call->rbuf;
        }
        return 0;
    }

    unsigned char result[SMALL_BYTES];
    collx_wait_all(team, &state->part->line[round & 1], sizeof *state->part, round, "Allreduce");
    for (int rank = 0; rank < team->size; rank++)
        state->from[rank] = small_slot(state, rank, round, bytes);
    if (!error)
        error = collx_combine(team, call, state->from, call->count, result);
    if (!error)
        error = team->ops->unpack(team->ctx, call, result, call->rbuf, 0, call->count);
    return error;
}

/* The elements of one chunk, counted from the beginning of the buffer. */
struct piece {
    int64_t first, count;
};

/* The part of a chunk that `rank` combines, counted from the beginning of the chunk; cut where
 * lines end, so that no line has two writers. */
static struct piece slice_of(const struct collx_call *call, struct piece chunk, int rank, int size)
{
    int64_t unit = call->elem_bytes < 64 ? 64 / (int64_t)call->elem_bytes : 1;
    int64_t units = (chunk.count + unit - 1) / unit;
    int64_t first = units * rank / size * unit, end = units * (rank + 1) / size * unit;

    first = first < chunk.count ? first : chunk.count;
    end = end < chunk.count ? end : chunk.count;
    return (struct piece){first, end - first};
}

/* Between the buffers of the call and packed bytes; `at` counts elements from the buffer's start.
 */
static int put(struct allreduce *state, struct collx_call *call, int64_t at, int64_t count,
               unsigned char *packed)
{
    if (!call->contiguous)
        return state->team->ops->pack(state->team->ctx, call, call->sbuf, at, count, packed);
    collx_copy_in(&state->copier, packed, (const char *)call->sbuf + (size_t)at * call->elem_bytes,
                  (size_t)count * call->elem_bytes);
    return 0;
}

static int get(struct allreduce *state, struct collx_call *call, int64_t at, int64_t count,
               const unsigned char *packed)
{
    if (!call->contiguous)
        return state->team->ops->unpack(state->team->ctx, call, packed, call->rbuf, at, count);
    memcpy((char *)call->rbuf + (size_t)at * call->elem_bytes, packed,
           (size_t)count * call->elem_bytes);
    return 0;
}

/* A */
static int step_copy_in(struct allreduce *state, struct collx_call *call, struct piece chunk,
                        uint64_t g)
{
    struct collx_team *team = state->team;
    struct part *own = &state->part[team->rank];
    struct piece slice = slice_of(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    unsigned char *in = own->in[g & 1];

    int error = put(state, call, chunk.first, slice.first, in);
    if (!error)
        error = put(state, call, chunk.first + end, chunk.count - end,
                    in + (size_t)end * call->elem_bytes);
    collx_flag_post(team, &own->copied, g);
    return error;
}

/* B */
static int step_combine(struct allreduce *state, struct collx_call *call, struct piece chunk,
                        uint64_t g)
{
    struct collx_team *team = state->team;
    struct piece slice = slice_of(call, chunk, team->rank, team->size);
    size_t offset = (size_t)slice.first * call->elem_bytes;
    unsigned char *own = state->part[team->rank].in[g & 1] + offset;
    int error = 0;

    collx_wait_all(team, &state->part->copied, sizeof *state->part, g, "Allreduce");
    if (slice.count) {
        for (int rank = 0; rank < team->size; rank++)
            state->from[rank] = state->part[rank].in[g & 1] + offset;
        /* Our own operand has not been copied anywhere yet; nobody else needs it. */
        if (call->contiguous)
            state->from[team->rank] = (unsigned char *)(uintptr_t)call->sbuf +
                                      (size_t)chunk.first * call->elem_bytes + offset;
        else
            error = put(state, call, chunk.first + slice.first, slice.count, own);
        if (!error)
            error = collx_combine(team, call, state->from, slice.count, state->scratch);
        if (!error)
            error = get(state, call, chunk.first + slice.first, slice.count, state->scratch);
        collx_copy_in(&state->copier, state->out[g & 1] + offset, state->scratch,
                      (size_t)slice.count * call->elem_bytes);
    }
    collx_flag_post(team, &state->part[team->rank].reduced, g);
    return error;
}

/* C */
static int step_copy_out(struct allreduce *state, struct collx_call *call, struct piece chunk,
                         uint64_t g)
{
    struct collx_team *team = state->team;
    struct piece slice = slice_of(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    const unsigned char *out = state->out[g & 1];

    collx_wait_all(team, &state->part->reduced, sizeof *state->part, g, "Allreduce");
    int error = get(state, call, chunk.first, slice.first, out);
    if (!error)
        error = get(state, call, chunk.first + end, chunk.count - end,
                    out + (size_t)end * call->elem_bytes);
    return error;
}

static struct piece chunk_of(const struct collx_call *call, int64_t chunk_count, int64_t index)
{
    int64_t first = index * chunk_count, rest = call->count - first;

    return (struct piece){first, rest < chunk_count ? rest : chunk_count};
}

static int run_large(struct allreduce *state, struct collx_call *call)
{
    const int64_t chunk_count = CHUNK / (int64_t)call->elem_bytes;
    const int64_t chunks = (call->count + chunk_count - 1) / chunk_count;
    const uint64_t g = state->chunk;
    int error = 0, failed;

    /* An error does not end it: the others are counting on our steps. */
#define STEP(step, index)                                                                          \
    do {                                                                                           \
        failed = step(state, call, chunk_of(call, chunk_count, index), g + 1 + (uint64_t)(index)); \
        error = error ? error : failed;                                                            \
    } while (0)

    STEP(step_copy_in, 0);
    for (int64_t i = 0; i < chunks; i++) {
        if (i > 0)
            STEP(step_copy_out, i - 1);
        if (i + 1 < chunks)
            STEP(step_copy_in, i + 1);
        STEP(step_combine, i);
    }
    STEP(step_copy_out, chunks - 1);
#undef STEP
    state->chunk = g + (uint64_t)chunks;
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
    return facts->ranks == 1 ? 0 : (size_t)facts->ranks * sizeof(struct part) + 2 * CHUNK;
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
    free(allreduce->scratch);
    free(allreduce->from);
    free(allreduce);
}

static int collx_allreduce_shm_attach(struct collx_team *team, const struct collx_args *args,
                                      void *memory, struct collx_slot *slot)
{
    struct allreduce *state = calloc(1, sizeof *state);

    (void)args;
    if (!state)
        return -ENOMEM;
    state->team = team;
    state->part = memory;
    state->out = (unsigned char(*)[CHUNK])(state->part + team->size);
    state->scratch = malloc(CHUNK);
    state->from = calloc((size_t)team->size, sizeof *state->from);
    if (!state->scratch || !state->from) {
        collx_allreduce_shm_detach(state);
        return -ENOMEM;
    }
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
    .query = collx_allreduce_shm_query,
    .space = collx_allreduce_shm_space,
    .attach = collx_allreduce_shm_attach,
    .takes = collx_allreduce_shm_takes,
    .detach = collx_allreduce_shm_detach,
};
