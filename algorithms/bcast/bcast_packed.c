#include "algorithms/bcast/bcast.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

int collx_bcast_packed(struct collx_team *team, struct collx_call *call,
                       collx_bcast_bytes_fn *run_bytes, void *state)
{
    unsigned char bounce[COLLX_BCAST_BOUNCE];
    unsigned char *packed = call->bytes <= sizeof bounce ? bounce : malloc(call->bytes);
    int error = 0;

    if (!packed) {
        run_bytes(state, call->root, NULL, call->bytes);
        return team->ops->no_memory;
    }
    if (team->rank == call->root)
        error = team->ops->pack(team->ctx, call, call->rbuf, 0, call->count, packed);
    if (error)
        memset(packed, 0, call->bytes);
    int passed = run_bytes(state, call->root, packed, call->bytes);
    error = collx_error_first(error, passed);
    if (!error && team->rank != call->root)
        error = team->ops->unpack(team->ctx, call, packed, call->rbuf, 0, call->count);
    if (packed != bounce)
        free(packed);
    return error;
}
