/* Allreduce by messages, combined in rank order wherever the ranks are: rank 0, 1, 2, … from the
 * left, so that the bits of a result depend on nothing but the operands and how many ranks there
 * are.  It is not made to be fast, but to be there where shared memory is not.
 *
 * Short vectors: all get all operands, by doubling: after round k = 0, 1, … a rank has those of the
 * 2^(k+1) ranks from its own on, round the circle.  Everybody combines them.
 *
 * Long ones go in chunks.  Of each chunk every rank combines one slice: it gets that slice of
 * everybody's operand, combines, and hands the result to everybody.  Both go in size - 1 steps, in
 * step k to the rank that is k further on and from the one that is k before.
 */
#include "algorithms/messages.h"
#include "algorithms/reduction/combine.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORT_BYTES = 65536, /* of all ranks together */
    CHUNK = 1 << 20,
    ELEMENT_MAX = 65536,
};

_Static_assert(SHORT_BYTES <= CHUNK, "short vectors fit into the buffers of long ones");

struct ordered {
    struct collx_team *team;
    unsigned char **from; /* [size]: operands, by rank */
    /* [CHUNK + size * ELEMENT_MAX]: those that came as messages.  A slice is rounded up to whole
     * elements, so all ranks' slices may be more than a chunk. */
    unsigned char *operands;
    unsigned char *packed; /* [CHUNK] */
    unsigned char *result; /* [CHUNK] */
};

/* The rank that is `steps` further on, round the circle. */
static int neighbour(const struct collx_team *team, int steps)
{
    return (team->rank + steps + team->size) % team->size;
}

static int run_short(struct ordered *state, struct collx_call *call)
{
    struct collx_team *team = state->team;
    const size_t bytes = call->bytes;
    int error = 0;

    if (call->contiguous)
        memcpy(state->operands, call->sbuf, bytes);
    else
        error = team->ops->pack(team->ctx, call, call->sbuf, 0, call->count, state->operands);
    /* An error does not end it, here and below: the others are counting on our messages. */
    for (int have = 1; have < team->size; have *= 2) {
        int more = team->size - have < have ? team->size - have : have;
        size_t length = (size_t)more * bytes;
        error = collx_error_first(error,
                                  collx_exchange(team, neighbour(team, -have), state->operands,
                                                 length, neighbour(team, have),
                                                 state->operands + (size_t)have * bytes, length));
    }
    for (int i = 0; i < team->size; i++)
        state->from[neighbour(team, i)] = state->operands + (size_t)i * bytes;
    /* All of `from` is our own copy, so the result may as well go where no operand is. */
    if (!error)
        error = collx_combine(team, call, state->from, NULL, call->count, state->result);
    if (!error && call->contiguous)
        memcpy(call->rbuf, state->result, bytes);
    else if (!error)
        error = team->ops->unpack(team->ctx, call, state->result, call->rbuf, 0, call->count);
    return error;
}

/* A chunk, packed: `in` is what we contribute, `out` is where the result goes, maybe the same. */
struct chunk {
    const unsigned char *in;
    unsigned char *out;
    int64_t count;
};

/* Elements from the beginning of the chunk, or from the first of a slice. */
static int64_t slice_begin(const struct collx_team *team, const struct chunk *chunk, int rank)
{
    return chunk->count * rank / team->size;
}

static size_t slice_bytes(const struct collx_team *team, const struct collx_call *call,
                          const struct chunk *chunk, int rank)
{
    int64_t count = slice_begin(team, chunk, rank + 1) - slice_begin(team, chunk, rank);

    return (size_t)count * call->elem_bytes;
}

static size_t slice_offset(const struct collx_team *team, const struct collx_call *call,
                           const struct chunk *chunk, int rank)
{
    return (size_t)slice_begin(team, chunk, rank) * call->elem_bytes;
}

static int run_chunk(struct ordered *state, struct collx_call *call, const struct chunk *chunk)
{
    struct collx_team *team = state->team;
    const size_t own = slice_bytes(team, call, chunk, team->rank);
    const size_t own_offset = slice_offset(team, call, chunk, team->rank);
    int error = 0;

    for (int k = 1; k < team->size; k++) {
        int to = neighbour(team, k), from = neighbour(team, -k);
        state->from[from] = state->operands + (size_t)(k - 1) * own;
        error = collx_error_first(
            error,
            collx_exchange(team, to, chunk->in + slice_offset(team, call, chunk, to),
                           slice_bytes(team, call, chunk, to), from, state->from[from], own));
    }
    state->from[team->rank] = (unsigned char *)(uintptr_t)chunk->in + own_offset;
    if (!error && own)
        error = collx_combine(team, call, state->from, NULL, (int64_t)(own / call->elem_bytes),
                              state->result);
    /* What stood there has been sent to those who need it: `in` may be `out`. */
    memcpy(chunk->out + own_offset, state->result, own);
    for (int k = 1; k < team->size; k++) {
        int to = neighbour(team, k), from = neighbour(team, -k);
        error = collx_error_first(error,
                                  collx_exchange(team, to, state->result, own, from,
                                                 chunk->out + slice_offset(team, call, chunk, from),
                                                 slice_bytes(team, call, chunk, from)));
    }
    return error;
}

static int run_long(struct ordered *state, struct collx_call *call)
{
    struct collx_team *team = state->team;
    const int64_t most = CHUNK / (int64_t)call->elem_bytes;
    int error = 0;

    for (int64_t first = 0; first < call->count; first += most) {
        size_t offset = (size_t)first * call->elem_bytes;
        struct chunk chunk = {.count = call->count - first < most ? call->count - first : most};

        if (call->contiguous) {
            chunk.in = (const unsigned char *)call->sbuf + offset;
            chunk.out = (unsigned char *)call->rbuf + offset;
        } else {
            chunk.in = chunk.out = state->packed;
            error = collx_error_first(error, team->ops->pack(team->ctx, call, call->sbuf, first,
                                                             chunk.count, state->packed));
        }
        error = collx_error_first(error, run_chunk(state, call, &chunk));
        if (!call->contiguous && !error)
            error =
                team->ops->unpack(team->ctx, call, state->packed, call->rbuf, first, chunk.count);
    }
    return error;
}

static int collx_allreduce_ordered_run(struct collx_slot *slot, struct collx_call *call)
{
    struct ordered *state = slot->state;

    if (call->bytes == 0)
        return 0;
    if (call->bytes <= SHORT_BYTES / (size_t)state->team->size)
        return run_short(state, call);
    return run_long(state, call);
}

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    struct ordered *state = slot->state;

    return collx_combine_alone(state->team, call);
}

static bool collx_allreduce_ordered_takes(const void *state, const struct collx_call *call)
{
    const struct ordered *ordered = state;

    return call->elem_bytes <= ELEMENT_MAX &&
           (!call->whole || call->bytes <= SHORT_BYTES / (size_t)ordered->team->size);
}

static void collx_allreduce_ordered_detach(void *state)
{
    struct ordered *ordered = state;

    if (!ordered)
        return;
    free(ordered->from);
    free(ordered->operands);
    free(ordered->packed);
    free(ordered->result);
    free(ordered);
}

static int collx_allreduce_ordered_attach(struct collx_team *team, const struct collx_args *args,
                                          void *memory, struct collx_slot *slot)
{
    struct ordered *state = calloc(1, sizeof *state);

    (void)args, (void)memory;
    if (!state)
        return -ENOMEM;
    state->team = team;
    state->from = calloc((size_t)team->size, sizeof *state->from);
    state->operands = malloc(CHUNK + (size_t)team->size * ELEMENT_MAX);
    state->packed = malloc(CHUNK);
    state->result = malloc(CHUNK);
    if (!state->from || !state->operands || !state->packed || !state->result) {
        collx_allreduce_ordered_detach(state);
        return -ENOMEM;
    }
    slot->state = state;
    slot->run = team->size == 1 ? run_alone : collx_allreduce_ordered_run;
    return 0;
}

static int collx_allreduce_ordered_connect(struct collx_team *team, struct collx_slot *slot,
                                           char *why, size_t size)
{
    (void)slot;
    return team->size == 1 ? 0 : collx_listen(team, 2, why, size);
}

const struct collx_algorithm collx_allreduce_ordered = {
    .name = "ordered",
    .help = "in rank order by messages, on any number of nodes; the last resort of order: rank",
    .needs = "datatype elements of at most 64 KiB",
    .kind = COLLX_ALLREDUCE,
    .rank_order = true,
    .attach = collx_allreduce_ordered_attach,
    .connect = collx_allreduce_ordered_connect,
    .takes = collx_allreduce_ordered_takes,
    .detach = collx_allreduce_ordered_detach,
};
