/* Segments in a window: MPI_Put stores, MPI_Win_flush checks.
 *
 * MPI promises who polls a word no more than that each byte of it is the old one or the new one, in
 * any order.  So a flag is stored byte by byte, from the lowest one on, the next after a flush has
 * completed the last: whatever the reader meets on the way is not ahead of the new epoch.  Bytes
 * that do not change are left out, so almost every store is one put and one flush.
 */
#include "pmpi/rma_net.h"

#include "hw/shm.h"
#include "pmpi/progress.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEG_RMA_KIND 0x616d722d78636c63u /* "clcx-rma" */

enum { WORD = sizeof(uint32_t), PUT_MOST = 1 << 30 };

/* One put and flush between nodes without special hardware: some 20 us. */
const struct collx_seg_caps collx_rma_caps = {
    .line = COLLX_LINE,
    .flags = COLLX_SEG_CHECKED,
    .store_ns = 1000,
    .check_ns = 20000,
};

/* A flag of the remote segment, as this process, its only writer, has stored it. */
struct place {
    unsigned char wanted[WORD]; /* a put reads it until the next flush */
    unsigned char there[WORD];
    bool known;  /* `there` is what is there */
    bool queued; /* a put of it is under way */
    int byte;    /* the one that it is of; bytes count from the lowest */
    struct place *next;
};

/* Data until the next flush. */
struct staged {
    struct staged *next;
    char data[];
};

struct collx_remote {
    struct collx_net *net;
    int rank;
    MPI_Aint offset; /* of the segment in the window */
    bool failed;
    struct place *queue;
    struct staged *staged;
    struct place place[]; /* [lines] */
};

static int rma_make(struct collx_net *net, size_t bytes, struct collx_export **made, void **local,
                    struct collx_seg_address *address, char *why, size_t size)
{
    const size_t rounded = collx_line_up(bytes);

    *made = NULL;
    if (rounded > net->bytes - net->taken) {
        snprintf(why, size, "a window of %zu bytes has no %zu left", net->bytes, bytes);
        return -ENOSPC;
    }
    *made = &net->made;
    *local = net->local + net->taken;
    *address = (struct collx_seg_address){
        {SEG_RMA_KIND, net->id, (uint64_t)net->rank, net->first + net->taken}};
    net->taken += rounded;
    return 0;
}

static int rma_connect(struct collx_net *net, const struct collx_seg_address *address, size_t bytes,
                       struct collx_remote **remote, char *why, size_t size)
{
    const int keep = errno;

    *remote = NULL;
    if (address->word[0] != SEG_RMA_KIND || address->word[1] != net->id) {
        snprintf(why, size, "the address is not one of this window");
        return -EINVAL;
    }
    *remote = calloc(1, sizeof **remote + bytes / COLLX_LINE * sizeof(struct place));
    errno = keep;
    if (!*remote) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    (*remote)->net = net;
    (*remote)->rank = (int)address->word[2];
    (*remote)->offset = (MPI_Aint)address->word[3];
    return 0;
}

static void put(struct collx_remote *remote, size_t offset, const void *data, size_t bytes)
{
    const char *from = data;

    while (bytes && !remote->failed) {
        int some = bytes < PUT_MOST ? (int)bytes : PUT_MOST;
        remote->failed = !remote->net->locked || pmpi.Put(from, some, MPI_BYTE, remote->rank,
                                                          remote->offset + (MPI_Aint)offset, some,
                                                          MPI_BYTE, remote->net->win);
        offset += (size_t)some;
        from += some;
        bytes -= (size_t)some;
    }
}

/* Where the byte of that weight is in a word.  All processes of a window have the same order of
 * bytes: MPI_BYTE would not convert it. */
static int byte_at(int weight)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? weight : WORD - 1 - weight;
}

/* The next byte that has to be put, if there is one. */
static bool put_next_byte(struct collx_remote *remote, struct place *place)
{
    size_t line = (size_t)(place - remote->place);

    while (++place->byte < WORD) {
        int at = byte_at(place->byte);
        if (place->known && place->there[at] == place->wanted[at])
            continue;
        put(remote, collx_seg_flag(line, COLLX_LINE) + (size_t)at, &place->wanted[at], 1);
        return true;
    }
    memcpy(place->there, place->wanted, WORD);
    place->known = true;
    return false;
}

/* Not MPI_Win_flush_all: with MPICH 4.0 over UCX 1.13 it comes back, now and then, before puts of
 * some 100 KiB have left their buffers. */
static void flush(struct collx_remote *remote)
{
    remote->failed =
        remote->failed || !remote->net->locked || pmpi.Win_flush(remote->rank, remote->net->win);
}

static void put_data(struct collx_remote *remote, size_t offset, const void *data, size_t bytes)
{
    struct staged *staged = malloc(sizeof *staged + bytes);

    /* What is not a flag any more. */
    for (size_t line = offset / COLLX_LINE; line < (offset + bytes) / COLLX_LINE; line++)
        remote->place[line].known = false;
    if (!staged) {
        put(remote, offset, data, bytes);
        flush(remote);
        return;
    }
    memcpy(staged->data, data, bytes);
    staged->next = remote->staged;
    remote->staged = staged;
    put(remote, offset, staged->data, bytes);
}

static void rma_store(struct collx_remote *remote, size_t offset, uint32_t value)
{
    const int keep = errno;
    struct place *place = &remote->place[offset / COLLX_LINE];

    if (offset % COLLX_LINE != COLLX_LINE - WORD) {
        put_data(remote, offset, &value, sizeof value);
    } else if (!place->queued) {
        memcpy(place->wanted, &value, WORD);
        place->byte = -1;
        /* Release: pairs with the acquire in collx_seg_read.  MPI keeps the order of puts and
         * flushes; that what we have read is over, which others may overwrite when they see the
         * flag, it need not know of. */
        atomic_thread_fence(memory_order_release);
        if (put_next_byte(remote, place)) {
            place->queued = true;
            place->next = remote->queue;
            remote->queue = place;
        }
    }
    errno = keep;
}

static void rma_copy(struct collx_remote *remote, size_t offset, const void *data, size_t bytes)
{
    const int keep = errno;

    put_data(remote, offset, data, bytes);
    errno = keep;
}

static void free_staged(struct collx_remote *remote)
{
    while (remote->staged) {
        struct staged *staged = remote->staged;
        remote->staged = staged->next;
        free(staged);
    }
}

/* After a flush.  Whether another one is needed. */
static bool put_next_bytes(struct collx_remote *remote)
{
    struct place **at = &remote->queue;

    while (*at) {
        struct place *place = *at;
        if (put_next_byte(remote, place)) {
            at = &place->next;
        } else {
            place->queued = false;
            *at = place->next;
        }
    }
    return remote->queue != NULL;
}

static int rma_check(struct collx_net *net, struct collx_remote *const *remotes, unsigned count,
                     uint8_t *state)
{
    const int keep = errno;
    bool more = true, gone = false;

    (void)net;
    while (more) {
        more = false;
        for (unsigned i = 0; i < count; i++) {
            if (!remotes[i]->queue && !remotes[i]->staged)
                continue;
            flush(remotes[i]);
            if (remotes[i]->failed)
                continue;
            free_staged(remotes[i]);
            more = put_next_bytes(remotes[i]) || more;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        state[i] = remotes[i]->failed ? COLLX_SEG_GONE : COLLX_SEG_ARRIVED;
        gone = gone || remotes[i]->failed;
    }
    errno = keep;
    return gone ? -ENOTCONN : 0;
}

static void rma_progress(struct collx_net *net)
{
    const int keep = errno;

    (void)net;
    collx_progress();
    errno = keep;
}

static void rma_disconnect(struct collx_remote *remote)
{
    if (!remote)
        return;
    /* What was not checked may be on its way, and MPI still reads it. */
    if ((remote->queue || remote->staged) && remote->net->locked)
        pmpi.Win_flush(remote->rank, remote->net->win);
    free_staged(remote);
    free(remote);
}

static void rma_unmake(struct collx_export *made)
{
    (void)made;
}

/* The window goes with its communicator: collx_rma_close(). */
static void rma_close_net(struct collx_net *net)
{
    (void)net;
}

const struct collx_seg_ops collx_segment_rma = {
    .name = "rma",
    .make = rma_make,
    .connect = rma_connect,
    .store = rma_store,
    .copy = rma_copy,
    .check = rma_check,
    .progress = rma_progress,
    .disconnect = rma_disconnect,
    .unmake = rma_unmake,
    .close = rma_close_net,
};
