#include "algorithms/combine.h"

#include <stdlib.h>
#include <string.h>

/* By MPI's own reduction, on elements laid out as MPI has them. */
static int combine_by_mpi(struct collx_team *team, struct collx_call *call,
                          unsigned char *const *from, int64_t count, unsigned char *result)
{
    const struct collx_mpi_ops *ops = team->ops;
    void *base[2] = {NULL, NULL};
    void *left = ops->elements(team->ctx, call, count, &base[0]);
    void *right = ops->elements(team->ctx, call, count, &base[1]);
    int error = left && right ? 0 : ops->no_memory;

    if (!error)
        error = ops->unpack(team->ctx, call, from[0], left, 0, count);
    for (int rank = 1; rank < team->size && !error; rank++) {
        error = ops->unpack(team->ctx, call, from[rank], right, 0, count);
        if (!error)
            error = ops->reduce(team->ctx, call, left, right, count);
        void *swap = left;
        left = right;
        right = swap;
    }
    if (!error)
        error = ops->pack(team->ctx, call, left, 0, count, result);
    free(base[0]);
    free(base[1]);
    return error;
}

int collx_combine(struct collx_team *team, struct collx_call *call, unsigned char *const *from,
                  int64_t count, unsigned char *result)
{
    if (!call->reduce)
        return combine_by_mpi(team, call, from, count, result);
    call->reduce(from[0], from[1], result, (size_t)count);
    for (int rank = 2; rank < team->size; rank++)
        call->reduce(result, from[rank], result, (size_t)count);
    return 0;
}

int collx_combine_alone(struct collx_team *team, struct collx_call *call)
{
    const struct collx_mpi_ops *ops = team->ops;

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
