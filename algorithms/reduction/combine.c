#include "algorithms/reduction/combine.h"

#include "base/layout.h"
#include "hw/shm.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Bytes that MPI combines at a time: with what is copied they stay in a CPU's first cache. */
    BLOCK = 8192,
    /* On the stack: who calls may be a thread that has little of it. */
    SMALL = 512,
    /* No type asks for more. */
    ALIGNED = 16,
};
_Static_assert(BLOCK >= 8192, "who lends no elements() has been told that no smaller ones need it");

/* MPI's reduction takes elements that lie where its own code may load them. */
static bool is_aligned(const struct collx_call *call, const void *at)
{
    const uintptr_t lowest = call->elem_bytes & -call->elem_bytes;

    return !((uintptr_t)at & ((lowest < ALIGNED ? lowest : ALIGNED) - 1));
}

/* An operation of the program's own may write into its left operand, too: the MPI libraries give it
 * copies.  What lies elsewhere others read, or is what the program sends. */
static bool spoils_left(const struct collx_call *call)
{
    return call->op_kind == COLLX_OP_USER;
}

/* By MPI's own reduction, of elements that are packed as MPI has them.  It puts the result where
 * the right operand is: that is copied, to where the result belongs if it is the last one. */
static int combine_block(struct collx_team *team, struct collx_call *call,
                         unsigned char *const *from, size_t at, int64_t count,
                         unsigned char *result, char *const *room)
{
    const size_t bytes = (size_t)count * call->elem_bytes;
    const unsigned char *left = from[0] + at;
    int error = 0;

    if (spoils_left(call) || !is_aligned(call, left))
        left = memcpy(room[0], left, bytes);
    for (int rank = 1; rank < team->size && !error; rank++) {
        const bool last = rank == team->size - 1 && left != result && is_aligned(call, result);
        unsigned char *right = last ? result : (unsigned char *)room[rank & 1];
        if (right != from[rank] + at)
            memcpy(right, from[rank] + at, bytes);
        error = team->ops->reduce(team->ctx, call, left, right, count);
        left = right;
    }
    if (left != result)
        memcpy(result, left, bytes);
    return error;
}

/* Our own elements into a room: gaps as well if that is safe, which takes less. */
static int copy_own(struct collx_team *team, const struct collx_call *call, const char *own,
                    int64_t count, char *room)
{
    ptrdiff_t first;
    size_t span;

    if (collx_layout_spans(call->layout, (size_t)count, &first, &span)) {
        memcpy(room + first, own + first, span);
        return 0;
    }
    void *packed = malloc((size_t)count * call->elem_bytes);
    if (!packed)
        return team->ops->no_memory;
    int error = team->ops->pack(team->ctx, call, own, 0, count, packed);
    error = error ? error : team->ops->unpack(team->ctx, call, packed, room, 0, count);
    free(packed);
    return error;
}

/* The same, of elements that are not laid out so: in two rooms of MPI's layout.  `own` are ours, if
 * not NULL: the left operand may lie where the program has it, but in the right one an operation of
 * the program's own may assign whole elements. */
static int combine_unpacked(struct collx_team *team, struct collx_call *call,
                            unsigned char *const *from, const char *own, size_t at, int64_t count,
                            unsigned char *result, char *const *room)
{
    const struct collx_lender_ops *ops = team->ops;
    const char *left = team->rank == 0 && !spoils_left(call) ? own : NULL;
    int error = 0;

    for (int rank = left ? 1 : 0; rank < team->size && !error; rank++) {
        char *right = room[rank & 1];
        error = own && rank == team->rank
                    ? copy_own(team, call, own, count, right)
                    : ops->unpack(team->ctx, call, from[rank] + at, right, 0, count);
        if (!error && left)
            error = ops->reduce(team->ctx, call, left, right, count);
        left = right;
    }
    return error ? error : ops->pack(team->ctx, call, left, 0, count, result);
}

static int combine_packed(struct collx_team *team, struct collx_call *call,
                          unsigned char *const *from, int64_t count, unsigned char *result)
{
    _Alignas(COLLX_LINE) char small[2][SMALL];
    const size_t all = (size_t)count * call->elem_bytes, block = call->whole ? all : BLOCK;
    char *large = all > SMALL ? malloc(2 * block) : NULL;
    char *const room[2] = {large ? large : small[0], large ? large + block : small[1]};
    const int64_t most = (int64_t)((large ? block : SMALL) / call->elem_bytes);
    /* Without memory for more it takes longer, by fewer elements at a time. */
    int error = most < (call->whole ? count : 1) ? team->ops->no_memory : 0;

    for (int64_t done = 0, some; done < count && !error; done += some) {
        const size_t at = (size_t)done * call->elem_bytes;
        some = count - done < most ? count - done : most;
        error = combine_block(team, call, from, at, some, result + at, room);
    }
    free(large);
    return error;
}

static int combine_by_mpi(struct collx_team *team, struct collx_call *call,
                          unsigned char *const *from, const char *own, int64_t count,
                          unsigned char *result)
{
    const struct collx_lender_ops *ops = team->ops;
    int64_t most = call->whole ? count : (int64_t)(BLOCK / call->elem_bytes), some;
    void *base[2] = {NULL, NULL};
    char *room[2] = {NULL, NULL};
    int error = 0;

    if (call->contiguous && call->elem_bytes <= BLOCK)
        return combine_packed(team, call, from, count, result);
    most = most < 1 ? 1 : most < count ? most : count;
    /* Two ranks' left operand needs none. */
    for (int i = own && team->rank == 0 && team->size == 2 && !spoils_left(call); i < 2; i++) {
        room[i] = ops->elements(team->ctx, call, most, &base[i]);
        error = room[i] ? error : ops->no_memory;
    }
    for (int64_t done = 0; done < count && !error; done += some) {
        const size_t at = (size_t)done * call->elem_bytes;
        some = count - done < most ? count - done : most;
        error = combine_unpacked(team, call, from, own, at, some, result + at, room);
        if (own)
            own += collx_layout_distance(call->layout, some);
    }
    free(base[0]);
    free(base[1]);
    return error;
}

const char *collx_combine_own(const struct collx_call *call, int64_t first)
{
    return !call->reduce && !call->contiguous && call->layout && call->elem_bytes <= BLOCK
               ? (const char *)call->sbuf + collx_layout_distance(call->layout, first)
               : NULL;
}

int collx_combine(struct collx_team *team, struct collx_call *call, unsigned char *const *from,
                  const char *own, int64_t count, unsigned char *result)
{
    if (!call->reduce)
        return combine_by_mpi(team, call, from, own, count, result);
    call->reduce(from[0], from[1], result, (size_t)count);
    for (int rank = 2; rank < team->size; rank++)
        call->reduce(result, from[rank], result, (size_t)count);
    return 0;
}

int collx_combine_alone(struct collx_team *team, struct collx_call *call)
{
    const struct collx_lender_ops *ops = team->ops;

    if (call->sbuf == call->rbuf || !call->bytes)
        return 0;
    if (call->contiguous) {
        memcpy(call->rbuf, call->sbuf, call->bytes);
        return 0;
    }
    void *packed = malloc(call->bytes);
    if (!packed)
        return ops->no_memory;
    int error = ops->pack(team->ctx, call, call->sbuf, 0, call->count, packed);
    if (!error)
        error = ops->unpack(team->ctx, call, packed, call->rbuf, 0, call->count);
    free(packed);
    return error;
}
