/* Allreduce of large vectors between two ranks.
 *
 * The vector goes in chunks g = 1, 2, …; of each, rank 0 combines the first half for both, and
 * rank 1 the second.  A rank has two buffers, g mod 2, for the half that the other one combines:
 *   A. copy the other's half of our chunk into our buffer, post copied = g
 *   B. wait for the other's copied = g; combine our half with what is in its buffer, into that
 *      buffer; copy the result to where it belongs; post reduced = g
 *   C. wait for the other's reduced = g; copy the other half of the result out of our buffer
 * done in the order C(g-1) A(g+1) B(g), so that each wait is for what the other did a step before.
 * A(g+1) overwrites what the other has had in its hands in B(g-1), which C(g-1) has waited for.
 *
 * Each line goes to the other rank and comes back, and is written where it has just been read: so
 * no store has to wait for its line.  With buffers of their own for the results, as more ranks have
 * (allreduce_pipe.c), a vector takes up to half as long again.
 *
 * Chunks are counted over all calls, and both ranks count alike.
 */
#include "algorithms/allreduce.h"

#include "algorithms/combine.h"
#include "algorithms/shm.h"
#include "hw/place.h"

#include <string.h>

/* Both ranks' buffers fit into a second level cache.  A half is more than that by less than an
 * element, and so is what is cut where a line ends. */
enum { CHUNK = 131072, HALF = CHUNK / 2 + COLLX_ALLREDUCE_ELEMENT };

/* One rank's part of the segment. */
struct collx_pair_part {
    struct collx_flag copied[2], reduced[2];
    unsigned char half[2][HALF]; /* written by both, in turn */
};
_Static_assert(sizeof(struct collx_pair_part) == 4 * COLLX_LINE + 2 * HALF &&
                   HALF % COLLX_LINE == 0,
               "halves begin on a line");

static struct collx_pair_part *part_of(const struct collx_allreduce_pair *pair, int rank)
{
    return (struct collx_pair_part *)(pair->parts + (size_t)rank * pair->stride);
}

size_t collx_allreduce_pair_space(int numa_nodes)
{
    return (numa_nodes > 1 ? collx_page_up(1) : 0) +
           2 * collx_numa_up(sizeof(struct collx_pair_part), numa_nodes);
}

void collx_allreduce_pair_place(const struct collx_team *team, void *memory)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);
    const size_t stride = collx_numa_up(sizeof(struct collx_pair_part), numa_nodes);
    unsigned char *part = (unsigned char *)collx_numa_up((uintptr_t)memory, numa_nodes);

    for (int rank = 0; rank < team->size && numa_nodes > 1; rank++, part += stride)
        collx_shm_place(part, stride, team->places[rank].numa);
}

void *collx_allreduce_pair_init(struct collx_allreduce_pair *pair, struct collx_team *team,
                                struct collx_allreduce_work *work, struct collx_copier *copier,
                                void *memory)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);

    *pair = (struct collx_allreduce_pair){
        .team = team,
        .work = work,
        .copier = copier,
        .parts = (unsigned char *)collx_numa_up((uintptr_t)memory, numa_nodes),
        .stride = collx_numa_up(sizeof(struct collx_pair_part), numa_nodes),
    };
    return pair->parts + 2 * pair->stride;
}

/* Between the buffers of the call and packed bytes. */
static int put(const struct collx_allreduce_pair *pair, struct collx_call *call,
               struct collx_piece piece, unsigned char *packed)
{
    if (!call->contiguous)
        return pair->team->ops->pack(pair->team->ctx, call, call->sbuf, piece.first, piece.count,
                                     packed);
    /* Into lines that are here. */
    pair->copier->ways.wide(packed,
                            (const char *)call->sbuf + (size_t)piece.first * call->elem_bytes,
                            (size_t)piece.count * call->elem_bytes);
    return 0;
}

static int get(const struct collx_allreduce_pair *pair, struct collx_call *call,
               struct collx_piece piece, const unsigned char *packed)
{
    if (!call->contiguous)
        return pair->team->ops->unpack(pair->team->ctx, call, packed, call->rbuf, piece.first,
                                       piece.count);
    collx_copy_out(pair->copier, (char *)call->rbuf + (size_t)piece.first * call->elem_bytes,
                   packed, (size_t)piece.count * call->elem_bytes);
    return 0;
}

/* What `rank` combines of chunk number `i` of a call, counted from the vector's beginning. */
static struct collx_piece half_of(const struct collx_call *call, int64_t i, int rank)
{
    const int64_t most = CHUNK / (int64_t)call->elem_bytes, first = i * most;
    const int64_t rest = call->count - first;
    const struct collx_piece chunk = {first, rest < most ? rest : most};
    struct collx_piece half = collx_piece_slice(call, chunk, rank, 2);

    half.first += first;
    return half;
}

/* A */
static int step_copy_in(struct collx_allreduce_pair *pair, struct collx_call *call, int64_t i,
                        uint64_t g)
{
    struct collx_team *team = pair->team;
    struct collx_pair_part *own = part_of(pair, team->rank);

    int error = put(pair, call, half_of(call, i, !team->rank), own->half[g & 1]);
    collx_flag_post(team, &own->copied[g & 1], g);
    return error;
}

/* B */
static int step_combine(struct collx_allreduce_pair *pair, struct collx_call *call, int64_t i,
                        uint64_t g)
{
    struct collx_team *team = pair->team;
    struct collx_pair_part *own = part_of(pair, team->rank), *other = part_of(pair, !team->rank);
    const struct collx_piece half = half_of(call, i, team->rank);
    unsigned char **from = pair->work->from, *shared = other->half[g & 1];
    int error = 0;

    collx_wait_for(team, &other->copied[g & 1], g, !team->rank, "Allreduce");
    from[!team->rank] = shared;
    from[team->rank] = call->contiguous ? (unsigned char *)(uintptr_t)call->sbuf +
                                              (size_t)half.first * call->elem_bytes
                                        : pair->work->operand;
    if (!call->contiguous)
        error = put(pair, call, half, pair->work->operand);
    if (!error && half.count)
        error = collx_combine(team, call, from, half.count, shared);
    if (!error)
        error = get(pair, call, half, shared);
    collx_flag_post(team, &own->reduced[g & 1], g);
    if (call->bytes <= CHUNK) { /* for the next call, at whose flags nobody looks yet */
        collx_claim_line(team, &own->copied[(g + 1) & 1].claimed);
        collx_claim_line(team, &own->reduced[(g + 1) & 1].claimed);
    }
    return error;
}

/* C */
static int step_copy_out(struct collx_allreduce_pair *pair, struct collx_call *call, int64_t i,
                         uint64_t g)
{
    struct collx_team *team = pair->team;

    collx_wait_for(team, &part_of(pair, !team->rank)->reduced[g & 1], g, !team->rank, "Allreduce");
    return get(pair, call, half_of(call, i, !team->rank), part_of(pair, team->rank)->half[g & 1]);
}

int collx_allreduce_pair(struct collx_allreduce_pair *pair, struct collx_call *call)
{
    const int64_t most = CHUNK / (int64_t)call->elem_bytes;
    const int64_t chunks = (call->count + most - 1) / most;
    const uint64_t g = pair->chunk + 1; /* the first one */
    int error = 0, failed;

    /* An error does not end it: the other one is counting on our steps. */
#define STEP(step, i)                                                                              \
    do {                                                                                           \
        failed = step(pair, call, i, g + (uint64_t)(i));                                           \
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
    pair->chunk += (uint64_t)chunks;
    return error;
}
