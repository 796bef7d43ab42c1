#include "pmpi/lend.h"

#include "base/error.h"
#include "base/layout.h"
#include "pmpi/agree.h"
#include "pmpi/comm.h"
#include "pmpi/messages.h"
#include "pmpi/progress.h"
#include "pmpi/rma.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void progress(void *ctx)
{
    (void)ctx;
    collx_progress();
}

static int reduce(void *ctx, const struct collx_call *call, const void *in, void *inout,
                  int64_t count)
{
    (void)ctx;
    /* Algorithms reduce in chunks, far below INT_MAX. */
    return pmpi.Reduce_local(in, inout, (int)count, (MPI_Datatype)call->datatype, (MPI_Op)call->op);
}

/* MPI_Pack counts in int: how many elements may go at once. */
static int batch(const struct collx_call *call, int64_t count)
{
    int64_t most = call->elem_bytes ? ((int64_t)1 << 30) / (int64_t)call->elem_bytes : 1 << 30;

    most = most ? most : 1;
    return (int)(count < most ? count : most);
}

/* Elements at MPI_BOTTOM, which some MPI_Pack take for a forgotten buffer: a message to ourselves
 * does the same.  Its tag is not that of the request in pmpi/progress.c. */
static int transfer_bottom(MPI_Datatype type, int count, char *packed, int bytes, bool packing)
{
    enum { TAG = 1 };
    /* Messages of two threads must not cross. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    MPI_Comm self = collx_self();
    int error;

    pthread_mutex_lock(&lock);
    if (packing)
        error = pmpi.Sendrecv(MPI_BOTTOM, count, type, 0, TAG, packed, bytes, MPI_PACKED, 0, TAG,
                              self, MPI_STATUS_IGNORE);
    else
        error = pmpi.Sendrecv(packed, bytes, MPI_PACKED, 0, TAG, MPI_BOTTOM, count, type, 0, TAG,
                              self, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&lock);
    return error;
}

/* Both ways.  `unpacked` is the address of the buffer's first element. */
static int transfer(const struct collx_call *call, char *unpacked, int64_t first, int64_t count,
                    char *packed, bool packing)
{
    MPI_Datatype type = (MPI_Datatype)call->datatype;
    MPI_Aint lb, extent;
    int error = pmpi.Type_get_extent(type, &lb, &extent);

    while (!error && count) {
        int position = 0, some = batch(call, count);
        int bytes = (int)((size_t)some * call->elem_bytes);
        char *at = unpacked + first * extent;

        if (at == MPI_BOTTOM)
            error = transfer_bottom(type, some, packed, bytes, packing);
        else if (packing)
            error = pmpi.Pack(at, some, type, packed, bytes, &position, collx_self());
        else
            error = pmpi.Unpack(packed, bytes, &position, at, some, type, collx_self());
        first += some;
        count -= some;
        packed += bytes;
    }
    return error;
}

static int pack(void *ctx, const struct collx_call *call, const void *buf, int64_t first,
                int64_t count, void *packed)
{
    (void)ctx;
    if (!call->layout)
        return transfer(call, (char *)(uintptr_t)buf, first, count, packed, true);
    collx_layout_pack(call->layout, buf, (size_t)first * call->elem_bytes,
                      (size_t)count * call->elem_bytes, packed);
    return MPI_SUCCESS;
}

static int unpack(void *ctx, const struct collx_call *call, const void *packed, void *buf,
                  int64_t first, int64_t count)
{
    (void)ctx;
    if (!call->layout)
        return transfer(call, buf, first, count, (char *)(uintptr_t)packed, false);
    collx_layout_unpack(call->layout, packed, buf, (size_t)first * call->elem_bytes,
                        (size_t)count * call->elem_bytes);
    return MPI_SUCCESS;
}

/* Room from the lowest byte of `count` elements to their end; *base and what is returned as of
 * elements(). */
static void *allocate(MPI_Aint low, MPI_Aint high, MPI_Aint extent, int64_t count, void **base)
{
    /* Of all of them; an extent may be negative. */
    const MPI_Aint last = (MPI_Aint)(count - 1) * extent;

    low += last < 0 ? last : 0;
    high += last > 0 ? last : 0;
    /* Elements must be aligned as the program's own: their offset from an aligned address stays. */
    const MPI_Aint shift = low & 15;
    *base = calloc(1, (size_t)(high - low + shift + 16));
    return *base ? (char *)*base + shift - low : NULL;
}

static void *elements(void *ctx, const struct collx_call *call, int64_t count, void **base)
{
    MPI_Datatype type = (MPI_Datatype)call->datatype;
    MPI_Aint lb, extent, true_lb, true_extent;
    void *room = NULL;

    (void)ctx;
    if (pmpi.Type_get_extent(type, &lb, &extent) ||
        pmpi.Type_get_true_extent(type, &true_lb, &true_extent))
        return NULL;

    /* The lowest byte of an element and the end: of its data, and of what the program takes for the
     * whole of it and may assign in one, with gaps before and behind the data.  Not where that is
     * elsewhere, as with data at absolute addresses. */
    const MPI_Aint low = true_lb, high = true_lb + true_extent;
    if (lb <= high && lb + extent >= low)
        room = allocate(lb < low ? lb : low, lb + extent > high ? lb + extent : high, extent, count,
                        base);
    /* Where there is no memory for that, as for the column of a file, nobody assigns it either. */
    return room ? room : allocate(low, high, extent, count, base);
}

static int gather(void *ctx, const void *own, void *all, size_t bytes)
{
    return collx_agree_from_all(ctx, own, all, bytes);
}

static int segments(void *ctx, const char *name, const int *leader, int count, size_t bytes,
                    const struct collx_seg_ops **ops, struct collx_net **net,
                    struct collx_seg_caps *caps, char *why, size_t size)
{
    struct collx_comm *comm = ctx;

    *ops = &collx_segment_rma;
    if (strcmp(name, collx_segment_rma.name) != 0) {
        snprintf(why, size, "there is no driver of this name");
        return COLLX_EUNFIT;
    }
    int error = collx_rma_open(comm, leader, count, bytes, caps, why, size);
    *net = comm->rma;
    return error;
}

const struct collx_lender_ops collx_lent = {
    .prefix = "MPI_",
    .stall_advice = " (COLLX_CHECK=on compares what ranks call)",
    .progress = progress,
    .reduce = reduce,
    .pack = pack,
    .unpack = unpack,
    .pack_most = INT_MAX, /* MPI_Pack counts bytes in int */
    .elements = elements,
    .gather = gather,
    .segments = segments,
    .listen = collx_messages_listen,
    .transfer = collx_messages_transfer,
    .no_memory = MPI_ERR_NO_MEM,
    .unreachable = MPI_ERR_OTHER,
};
