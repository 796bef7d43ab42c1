/* Allreduce of large vectors through shared memory; and the steps of three ranks and more (of two:
 * allreduce_pair.c).
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
 * which our last call has waited for; and C(g-1), whose flags `reduced` are claimed, before they
 * posted copied = g, which B(g) has.
 *
 * Chunks are counted over all calls, and all ranks count alike.
 */
#include "algorithms/allreduce/allreduce_pipe.h"

#include "algorithms/reduction/combine.h"
#include "base/error.h"
#include "hw/place.h"

#include <string.h>

/* Bytes of a chunk: the more, the fewer waits, which count most where ranks share CPUs; but both
 * buffers of all ranks should fit into a cache. */
enum {
    CHUNK_LEAST = 16384,
    CHUNK_MOST = 131072,
    CHUNKS_TOGETHER = 524288,
    /* Between two ranks whose CPUs write whole lines (copy_ways.h): what has left a cache is
     * written as fast, and the stores of a chunk have to be over before the next begins. */
    CHUNK_WHOLE = 262144,
};

static size_t chunk_bytes(int ranks)
{
    size_t bytes = CHUNKS_TOGETHER / (size_t)ranks / CHUNK_LEAST * CHUNK_LEAST;

    return bytes < CHUNK_LEAST ? CHUNK_LEAST : bytes > CHUNK_MOST ? CHUNK_MOST : bytes;
}

_Static_assert(CHUNK_LEAST % COLLX_LINE == 0 && CHUNK_WHOLE / 2 % COLLX_LINE == 0 &&
                   COLLX_ALLREDUCE_ELEMENT % COLLX_LINE == 0,
               "buffers are made of whole lines");
_Static_assert(CHUNK_WHOLE >= CHUNK_MOST, "two ranks have room for either chunk");

/* Of one buffer of a rank: of two ranks for half a chunk, and a little more, for where it is cut
 * depends on the elements; of more for all of it. */
static size_t room_for(int ranks)
{
    return ranks == 2 ? CHUNK_WHOLE / 2 + COLLX_ALLREDUCE_ELEMENT : chunk_bytes(ranks);
}

/* Of both chunks of results that more than two ranks have. */
static size_t out_for(int ranks)
{
    return ranks == 2 ? 0 : 2 * chunk_bytes(ranks);
}

static unsigned char *out_of(const struct collx_allreduce_pipe *pipe, uint64_t g)
{
    return pipe->out + (g & 1) * pipe->bytes;
}

/* Each rank's part lies on its NUMA node. */
static size_t stride_for(int ranks, int numa_nodes)
{
    return collx_numa_up(sizeof(struct collx_pipe_part) + 2 * room_for(ranks), numa_nodes);
}

/* In the line before it the ranks agree (shm.h). */
static unsigned char *first_part(void *memory, int numa_nodes)
{
    return (unsigned char *)collx_numa_up((uintptr_t)memory + COLLX_LINE, numa_nodes);
}

/* Whether lines are claimed.  Each rank copies what the others combine, about half of the vector at
 * a time. */
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
    struct collx_pipe_part *own = collx_pipe_part(pipe, team->rank);
    struct collx_piece slice = collx_piece_slice(call, chunk, team->rank, team->size);
    int64_t end = slice.first + slice.count;
    unsigned char *in = collx_pipe_in(pipe, team->rank, g);

    int error = collx_pipe_put(pipe, call, chunk.first, slice.first, in, false);
    if (!error)
        error = collx_pipe_put(pipe, call, chunk.first + end, chunk.count - end,
                               in + (size_t)end * call->elem_bytes, false);
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
    struct collx_pipe_part *part = collx_pipe_part(pipe, team->rank);
    unsigned char *own = collx_pipe_in(pipe, team->rank, g) + offset;
    /* In place, the result must not come before the operand that lies there has been used; nor do
     * kernels store past the caches. */
    const bool straight = call->contiguous && (call->sbuf != call->rbuf || team->rank == 0) &&
                          !collx_copy_out_is_past(pipe->copier);
    unsigned char *result =
        straight ? (unsigned char *)call->rbuf + first * call->elem_bytes : pipe->work->operand;
    int error = 0;

    collx_wait_others(team, &collx_pipe_part(pipe, 0)->copied[g & 1], pipe->stride, g, "Allreduce");
    if (slice.count) {
        for (int rank = 0; rank < team->size; rank++)
            from[rank] = collx_pipe_in(pipe, rank, g) + offset;
        /* Our own operand has not been copied anywhere yet; nobody else needs it. */
        const char *there = collx_combine_own(call, (int64_t)first);
        if (call->contiguous)
            from[team->rank] = (unsigned char *)(uintptr_t)call->sbuf + first * call->elem_bytes;
        else if (!there)
            error = collx_pipe_put(pipe, call, (int64_t)first, slice.count, own, false);
        if (!error)
            error = collx_combine(team, call, from, there, slice.count, result);
        collx_copy_in(pipe->copier, out_of(pipe, g) + offset, result,
                      (size_t)slice.count * call->elem_bytes);
        for (int rank = 0; rank < team->size && !team->crowded; rank++)
            if (rank != team->rank)
                collx_return(pipe->copier, &collx_pipe_part(pipe, rank)->copied[g & 1],
                             collx_pipe_in(pipe, rank, g) + offset,
                             (size_t)slice.count * call->elem_bytes);
    }
    collx_post_copied(team, pipe->copier, &part->reduced[g & 1], g, pipe->bytes);
    if (is_claimed(pipe, call)) {
        collx_pipe_claim_flags(pipe, g);
        unsigned char *in = collx_pipe_in(pipe, team->rank, g + 1);
        size_t end = offset + (size_t)slice.count * call->elem_bytes;
        collx_claim(team, in, offset);
        collx_claim(team, in + end, (size_t)chunk.count * call->elem_bytes - end);
    }
    /* Nobody waits for this. */
    if (slice.count && !error && !straight)
        error = collx_pipe_get(pipe, call, (int64_t)first, slice.count, result);
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

    collx_wait_others(team, &collx_pipe_part(pipe, 0)->reduced[g & 1], pipe->stride, g,
                      "Allreduce");
    int error = collx_pipe_get(pipe, call, chunk.first, slice.first, out);
    if (!error)
        error = collx_pipe_get(pipe, call, chunk.first + end, chunk.count - end,
                               out + (size_t)end * call->elem_bytes);
    return error;
}

static const struct collx_pipe_steps steps = {step_copy_in, step_combine, step_copy_out};

size_t collx_allreduce_pipe_space(int ranks, int numa_nodes)
{
    return COLLX_LINE + (numa_nodes > 1 ? collx_page_up(1) : 0) +
           (size_t)ranks * stride_for(ranks, numa_nodes) + out_for(ranks);
}

void *collx_allreduce_pipe_clear(void *memory, int ranks, int numa_nodes)
{
    unsigned char *part = first_part(memory, numa_nodes);

    memset(memory, 0, COLLX_LINE);
    for (int rank = 0; rank < ranks; rank++, part += stride_for(ranks, numa_nodes))
        memset(part, 0, sizeof(struct collx_pipe_part));
    return part + out_for(ranks);
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
                                uint32_t agreed, void *memory)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);

    *pipe = (struct collx_allreduce_pipe){
        .team = team,
        .work = work,
        .copier = copier,
        .parts = first_part(memory, numa_nodes),
        .stride = stride_for(team->size, numa_nodes),
        .bytes = chunk_bytes(team->size),
        .room = room_for(team->size),
        .steps = team->size == 2 ? &collx_pair_steps : &steps,
    };
    if (team->size == 2 && agreed & COLLX_SHM_WHOLE_LINES)
        pipe->bytes = CHUNK_WHOLE;
    pipe->out = pipe->parts + (size_t)team->size * pipe->stride;
    return pipe->out + out_for(team->size);
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

#define STEP(step, index)                                                                          \
    do {                                                                                           \
        failed = pipe->steps->step(pipe, call, chunk_of(call, chunk_count, index),                 \
                                   g + 1 + (uint64_t)(index));                                     \
        error = collx_error_first(error, failed);                                                  \
    } while (0)

    STEP(copy_in, 0);
    for (int64_t i = 0; i < chunks; i++) {
        if (i > 0)
            STEP(copy_out, i - 1);
        if (i + 1 < chunks)
            STEP(copy_in, i + 1);
        STEP(combine, i);
    }
    STEP(copy_out, chunks - 1);
#undef STEP
    pipe->chunk = g + (uint64_t)chunks;
    return error;
}
