/* Allreduce of large vectors through shared memory.
 *
 * The vector goes through in chunks g = 1, 2, …, each in three steps, in buffers g mod 2:
 *   A. copy our chunk in (without the slice that we combine ourselves), post copied = g
 *   B. wait for copied = g of all; combine our slice of everybody's chunk, into the result and
 *      into `out`; post reduced = g
 *   C. wait for reduced = g of all; copy the other slices out
 * done in the order C(g-1) A(g+1) B(g), so that each wait is for what the others did a step before.
 * Two buffers are enough: A(g+1) overwrites what was read in everybody's B(g-1), which C(g-1) has
 * waited for; B(g) overwrites what was read in everybody's C(g-2), which comes before their A(g),
 * which B(g) has waited for.
 *
 * Chunks are counted over all calls, and all ranks count alike.
 */
#include "algorithms/allreduce.h"

#include "algorithms/combine.h"

#include <string.h>

enum { CHUNK = 16384 };
_Static_assert(CHUNK <= (int)COLLX_WORK_LEAST, "a slice has room in the work memory");

/* One rank's part of the segment. */
struct collx_pipe_part {
    struct collx_flag copied, reduced;
    unsigned char in[2][CHUNK];
};
_Static_assert(sizeof(struct collx_pipe_part) % COLLX_LINE == 0, "parts are made of whole lines");

size_t collx_allreduce_pipe_space(int ranks)
{
    return (size_t)ranks * sizeof(struct collx_pipe_part) + 2 * CHUNK;
}

void *collx_allreduce_pipe_init(struct collx_allreduce_pipe *pipe, struct collx_team *team,
                                struct collx_allreduce_work *work, void *memory)
{
    *pipe = (struct collx_allreduce_pipe){.team = team, .work = work, .part = memory};
    collx_copier_init(&pipe->copier);
    pipe->out = (unsigned char *)(pipe->part + team->size);
    return pipe->out + 2 * CHUNK;
}

/* Between the buffers of the call and packed bytes; `at` counts elements from the buffer's start.
 */
static int put(struct collx_allreduce_pipe *pipe, struct collx_call *call, int64_t at,
               int64_t count, unsigned char *packed)
{
    if (!call->contiguous)
        return pipe->team->ops->pack(pipe->team->ctx, call, call->sbuf, at, count, packed);
    collx_copy_in(&pipe->copier, packed, (const char *)call->sbuf + (size_t)at * call->elem_bytes,
                  (size_t)count * call->elem_bytes);
    return 0;
}

static int get(struct collx_allreduce_pipe *pipe, struct collx_call *call, int64_t at,
               int64_t count, const unsigned char *packed)
{
    if (!call->contiguous)
        return pipe->team->ops->unpack(pipe->team->ctx, call, packed, call->rbuf, at, count);
    collx_copy_out(&pipe->copier, (char *)call->rbuf + (size_t)at * call->elem_bytes, packed,
                   (size_t)count * call->elem_bytes);
    return 0;
}

/* A */
static int step_copy_in(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                        struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    struct collx_pipe_part *own = &pipe->part[team->rank];
    struct collx_piece slice = collx_piece_slice(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    unsigned char *in = own->in[g & 1];

    int error = put(pipe, call, chunk.first, slice.first, in);
    if (!error)
        error = put(pipe, call, chunk.first + end, chunk.count - end,
                    in + (size_t)end * call->elem_bytes);
    collx_flag_post(team, &own->copied, g);
    return error;
}

/* B */
static int step_combine(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                        struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    struct collx_piece slice = collx_piece_slice(call, chunk, team->rank, team->size);
    size_t first = (size_t)(chunk.first + slice.first);
    size_t offset = (size_t)slice.first * call->elem_bytes;
    unsigned char **from = pipe->work->from;
    unsigned char *own = pipe->part[team->rank].in[g & 1] + offset;
    int error = 0;

    collx_wait_others(team, &pipe->part->copied, sizeof *pipe->part, g, "Allreduce");
    if (slice.count) {
        for (int rank = 0; rank < team->size; rank++)
            from[rank] = pipe->part[rank].in[g & 1] + offset;
        /* Our own operand has not been copied anywhere yet; nobody else needs it. */
        if (call->contiguous)
            from[team->rank] = (unsigned char *)(uintptr_t)call->sbuf + first * call->elem_bytes;
        else
            error = put(pipe, call, (int64_t)first, slice.count, own);
        /* In place, the result must not come before the operand that lies there has been used. */
        bool straight = call->contiguous && (call->sbuf != call->rbuf || team->rank == 0);
        unsigned char *result =
            straight ? (unsigned char *)call->rbuf + first * call->elem_bytes : pipe->work->operand;
        if (!error)
            error = collx_combine(team, call, from, slice.count, result);
        if (!error && !straight)
            error = get(pipe, call, (int64_t)first, slice.count, result);
        collx_copy_in(&pipe->copier, pipe->out + (g & 1) * CHUNK + offset, result,
                      (size_t)slice.count * call->elem_bytes);
    }
    collx_flag_post(team, &pipe->part[team->rank].reduced, g);
    return error;
}

/* C */
static int step_copy_out(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                         struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    struct collx_piece slice = collx_piece_slice(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    const unsigned char *out = pipe->out + (g & 1) * CHUNK;

    collx_wait_others(team, &pipe->part->reduced, sizeof *pipe->part, g, "Allreduce");
    int error = get(pipe, call, chunk.first, slice.first, out);
    if (!error)
        error = get(pipe, call, chunk.first + end, chunk.count - end,
                    out + (size_t)end * call->elem_bytes);
    return error;
}

static struct collx_piece chunk_of(const struct collx_call *call, int64_t chunk_count,
                                   int64_t index)
{
    int64_t first = index * chunk_count, rest = call->count - first;

    return (struct collx_piece){first, rest < chunk_count ? rest : chunk_count};
}

int collx_allreduce_pipe(struct collx_allreduce_pipe *pipe, struct collx_call *call)
{
    const int64_t chunk_count = CHUNK / (int64_t)call->elem_bytes;
    const int64_t chunks = (call->count + chunk_count - 1) / chunk_count;
    const uint64_t g = pipe->chunk;
    int error = 0, failed;

    /* An error does not end it: the others are counting on our steps. */
#define STEP(step, index)                                                                          \
    do {                                                                                           \
        failed = step(pipe, call, chunk_of(call, chunk_count, index), g + 1 + (uint64_t)(index));  \
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
    pipe->chunk = g + (uint64_t)chunks;
    return error;
}
