/* Allreduce of large vectors through shared memory, of three ranks and more; of two:
 * allreduce_pair.c.
 *
 * The vector goes through in chunks g = 1, 2, …, each in three steps, in buffers g mod 2:
 *   A. copy our chunk in (without the slice that we combine ourselves), post copied = g
 *   B. wait for copied = g of all; combine our slice of everybody's chunk, into the result and
 *      into `out`; return the lines of that slice (copy.h), which nobody else reads; post
 *      reduced = g
 *   C. wait for reduced = g of all; copy the other slices out
 * done in the order C(g-1) A(g+1) B(g), so that each wait is for what the others did a step before.
 * Two buffers are enough: A(g+1) overwrites what was read in everybody's B(g-1), which C(g-1) has
 * waited for; B(g) overwrites what was read in everybody's C(g-2), which comes before their A(g),
 * which B(g) has waited for.  What is returned at a slice's border may be a line of which others
 * read, or return, the rest: each stores bytes of its own slice alone.
 *
 * A short vector, of one chunk, uses the waits to claim what it writes next: after (A) its slice of
 * `out`, after (B) the next call's chunk and flags, of which there are two for that, in turn.
 * Nobody looks there any more: all had done C(g-2) and B(g-1) before they posted reduced = g-1,
 * which our last call has waited for.
 *
 * Chunks are counted over all calls, and all ranks count alike.
 */
#include "algorithms/allreduce.h"

#include "algorithms/combine.h"
#include "algorithms/shm.h"
#include "hw/place.h"

#include <string.h>

/* Bytes of a chunk: the more, the fewer waits, which count most where ranks share CPUs; but both
 * buffers of all ranks should fit into a cache. */
enum { CHUNK_LEAST = 16384, CHUNK_MOST = 131072, CHUNKS_TOGETHER = 524288 };

static size_t chunk_bytes(int ranks)
{
    size_t bytes = CHUNKS_TOGETHER / (size_t)ranks / CHUNK_LEAST * CHUNK_LEAST;

    return bytes < CHUNK_LEAST ? CHUNK_LEAST : bytes > CHUNK_MOST ? CHUNK_MOST : bytes;
}

/* One rank's part of the segment; two chunks lie behind it. */
struct collx_pipe_part {
    struct collx_flag copied[2], reduced[2];
    unsigned char in[];
};
_Static_assert(sizeof(struct collx_pipe_part) == 4 * COLLX_LINE, "chunks begin on a line");
_Static_assert(CHUNK_LEAST % COLLX_LINE == 0, "chunks are made of whole lines");

static struct collx_pipe_part *part_of(const struct collx_allreduce_pipe *pipe, int rank)
{
    return (struct collx_pipe_part *)(pipe->parts + (size_t)rank * pipe->stride);
}

static unsigned char *in_of(const struct collx_allreduce_pipe *pipe, int rank, uint64_t g)
{
    return part_of(pipe, rank)->in + (g & 1) * pipe->bytes;
}

static unsigned char *out_of(const struct collx_allreduce_pipe *pipe, uint64_t g)
{
    return pipe->out + (g & 1) * pipe->bytes;
}

/* Each rank's part lies on its NUMA node. */
static size_t stride_for(int ranks, int numa_nodes)
{
    return collx_numa_up(sizeof(struct collx_pipe_part) + 2 * chunk_bytes(ranks), numa_nodes);
}

static unsigned char *first_part(void *memory, int numa_nodes)
{
    return (unsigned char *)collx_numa_up((uintptr_t)memory, numa_nodes);
}

size_t collx_allreduce_pipe_space(int ranks, int numa_nodes)
{
    return (numa_nodes > 1 ? collx_page_up(1) : 0) + (size_t)ranks * stride_for(ranks, numa_nodes) +
           2 * chunk_bytes(ranks);
}

void collx_allreduce_pipe_place(const struct collx_team *team, void *memory)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);
    const size_t stride = stride_for(team->size, numa_nodes);
    unsigned char *part = first_part(memory, numa_nodes);

    for (int rank = 0; rank < team->size && numa_nodes > 1; rank++, part += stride)
        collx_shm_place(part, stride, team->places[rank].numa);
}

void *collx_allreduce_pipe_init(struct collx_allreduce_pipe *pipe, struct collx_team *team,
                                struct collx_allreduce_work *work, struct collx_copier *copier,
                                void *memory)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);
    size_t bytes = chunk_bytes(team->size);

    *pipe = (struct collx_allreduce_pipe){
        .team = team,
        .work = work,
        .copier = copier,
        .parts = first_part(memory, numa_nodes),
        .stride = stride_for(team->size, numa_nodes),
        .bytes = bytes,
    };
    pipe->out = pipe->parts + (size_t)team->size * pipe->stride;
    return pipe->out + 2 * bytes;
}

/* Between the buffers of the call and packed bytes; `at` counts elements from the buffer's start.
 */
static int put(struct collx_allreduce_pipe *pipe, struct collx_call *call, int64_t at,
               int64_t count, unsigned char *packed)
{
    if (!call->contiguous)
        return pipe->team->ops->pack(pipe->team->ctx, call, call->sbuf, at, count, packed);
    collx_copy_in(pipe->copier, packed, (const char *)call->sbuf + (size_t)at * call->elem_bytes,
                  (size_t)count * call->elem_bytes);
    return 0;
}

static int get(struct collx_allreduce_pipe *pipe, struct collx_call *call, int64_t at,
               int64_t count, const unsigned char *packed)
{
    if (!call->contiguous)
        return pipe->team->ops->unpack(pipe->team->ctx, call, packed, call->rbuf, at, count);
    collx_copy_out(pipe->copier, (char *)call->rbuf + (size_t)at * call->elem_bytes, packed,
                   (size_t)count * call->elem_bytes);
    return 0;
}

/* Whether lines are claimed.  Each rank copies what the others combine: of two ranks half of the
 * vector, of more about as much at a time. */
static bool is_claimed(const struct collx_allreduce_pipe *pipe, const struct collx_call *call)
{
    return call->bytes <= pipe->bytes &&
           collx_copy_claims(pipe->copier, call->bytes, call->bytes / 2);
}

/* A */
static int step_copy_in(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                        struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    struct collx_pipe_part *own = part_of(pipe, team->rank);
    struct collx_piece slice = collx_piece_slice(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    unsigned char *in = in_of(pipe, team->rank, g);

    int error = put(pipe, call, chunk.first, slice.first, in);
    if (!error)
        error = put(pipe, call, chunk.first + end, chunk.count - end,
                    in + (size_t)end * call->elem_bytes);
    collx_post_copied(team, pipe->copier, &own->copied[g & 1], g, pipe->bytes);
    if (is_claimed(pipe, call))
        collx_claim(team, out_of(pipe, g) + (size_t)slice.first * call->elem_bytes,
                    (size_t)slice.count * call->elem_bytes);
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
    struct collx_pipe_part *part = part_of(pipe, team->rank);
    unsigned char *own = in_of(pipe, team->rank, g) + offset;
    /* In place, the result must not come before the operand that lies there has been used; nor do
     * kernels store past the caches. */
    const bool straight = call->contiguous && (call->sbuf != call->rbuf || team->rank == 0) &&
                          !collx_copy_out_is_past(pipe->copier);
    unsigned char *result =
        straight ? (unsigned char *)call->rbuf + first * call->elem_bytes : pipe->work->operand;
    int error = 0;

    collx_wait_others(team, &part_of(pipe, 0)->copied[g & 1], pipe->stride, g, "Allreduce");
    if (slice.count) {
        for (int rank = 0; rank < team->size; rank++)
            from[rank] = in_of(pipe, rank, g) + offset;
        /* Our own operand has not been copied anywhere yet; nobody else needs it. */
        if (call->contiguous)
            from[team->rank] = (unsigned char *)(uintptr_t)call->sbuf + first * call->elem_bytes;
        else
            error = put(pipe, call, (int64_t)first, slice.count, own);
        if (!error)
            error = collx_combine(team, call, from, slice.count, result);
        collx_copy_in(pipe->copier, out_of(pipe, g) + offset, result,
                      (size_t)slice.count * call->elem_bytes);
        for (int rank = 0; rank < team->size && !team->crowded; rank++)
            if (rank != team->rank)
                collx_return(pipe->copier, &part_of(pipe, rank)->copied[g & 1],
                             in_of(pipe, rank, g) + offset, (size_t)slice.count * call->elem_bytes);
    }
    collx_post_copied(team, pipe->copier, &part->reduced[g & 1], g, pipe->bytes);
    if (is_claimed(pipe, call)) {
        collx_claim_line(team, &part->copied[(g + 1) & 1].claimed);
        collx_claim_line(team, &part->reduced[(g + 1) & 1].claimed);
        unsigned char *in = in_of(pipe, team->rank, g + 1);
        size_t end = offset + (size_t)slice.count * call->elem_bytes;
        collx_claim(team, in, offset);
        collx_claim(team, in + end, (size_t)chunk.count * call->elem_bytes - end);
    }
    /* Nobody waits for this. */
    if (slice.count && !error && !straight)
        error = get(pipe, call, (int64_t)first, slice.count, result);
    return error;
}

/* C */
static int step_copy_out(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                         struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    struct collx_piece slice = collx_piece_slice(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    const unsigned char *out = out_of(pipe, g);

    collx_wait_others(team, &part_of(pipe, 0)->reduced[g & 1], pipe->stride, g, "Allreduce");
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
    const int64_t chunk_count = (int64_t)(pipe->bytes / call->elem_bytes);
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
