/* Segments of other nodes, mapped through Dolphin's adapters.  A store goes through a stream buffer
 * of the adapter and may be lost; sequences find out. */
#include "hw/segment.h"
#include "hw/shm.h"
#include "hw/sisci.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEG_SISCI_KIND 0x69637369732d7863u /* "cx-sisci" */

enum {
    CONNECT_MS = 100, /* the longest wait for a node that does not answer, before progress */
    IDS = 64,         /* how many numbers to try for a segment until there must be another reason */
    FAILURES_MIN = 64, /* checks; time alone would blame a peer for our not running */
};

struct collx_net {
    const struct collx_sisci *sisci;
    struct collx_remote *remotes;
    uint64_t patience_ns;
    size_t line;
    uint32_t node, adapter, ids;
    enum collx_check check;
    bool one_check;
};

/* A resource of each kind needs a descriptor of its own. */
struct collx_export {
    struct collx_net *net;
    void *descriptor, *segment, *map;
    bool available;
};

struct collx_remote {
    struct collx_net *net;
    struct collx_remote *next, **link; /* of all remotes of the net */
    void *descriptor, *segment, *map, *sequence;
    char *base;
    uint64_t failing_since; /* 0: the last check was good */
    unsigned failures;      /* since then */
    bool dirty;             /* stored to since a check */
    bool lost;              /* a check failed, which has not been said yet */
    bool down;              /* the sequence has to be started again */
};

static int find_node(struct collx_net *net, char *why, size_t size)
{
    int64_t node = collx_option_number(COLLX_OPTION_SISCI_NODE);
    unsigned error = 0, own = 0;
    char text[80];

    net->adapter = (uint32_t)collx_option_number(COLLX_OPTION_SISCI_ADAPTER);
    if (node < 0)
        net->sisci->GetLocalNodeId(net->adapter, &own, 0, &error);
    net->node = node < 0 ? own : (uint32_t)node;
    if (error)
        snprintf(why, size,
                 "cannot use adapter %" PRIu32 " of Dolphin's: %s; COLLX_SISCI_ADAPTER says which "
                 "one to use, dis_diag shows which there are",
                 net->adapter, collx_sisci_text(error, text, sizeof text));
    return error ? COLLX_EUNFIT : 0;
}

static int sisci_open_net(struct collx_net **net, struct collx_seg_caps *caps, char *why,
                          size_t size)
{
    int64_t line = collx_option_number(COLLX_OPTION_SISCI_LINE);

    *net = NULL;
    if (line & (line - 1)) {
        snprintf(why, size, "COLLX_SISCI_LINE is %" PRId64 "; it has to be a power of two", line);
        return COLLX_EUNFIT;
    }
    struct collx_net *new = calloc(1, sizeof *new);
    if (!new) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    int keep = errno;
    int error =
        collx_sisci_acquire(collx_option_text(COLLX_OPTION_SISCI_LIBRARY), &new->sisci, why, size);
    if (!error) {
        error = find_node(new, why, size);
        if (error)
            collx_sisci_release();
    }
    errno = keep;
    if (error) {
        free(new);
        return error;
    }
    new->patience_ns = (uint64_t)collx_option_number(COLLX_OPTION_SISCI_PATIENCE) * 1000000u;
    new->line = (size_t)line;
    new->check = (enum collx_check)collx_option_number(COLLX_OPTION_SISCI_CHECK);
    new->one_check = collx_option_number(COLLX_OPTION_SISCI_ONE_CHECK);
    /* Processes of a node choose from the same numbers. */
    uint64_t facts[] = {(uint64_t)getpid(), collx_clock_ns(), (uint64_t)(uintptr_t) new};
    new->ids = (uint32_t)collx_hash(COLLX_HASH_START, facts, sizeof facts);
    *caps = (struct collx_seg_caps){
        .line = (size_t)line,
        .flags =
            COLLX_SEG_CHECKED | COLLX_SEG_WHOLE_LINES | (new->one_check ? COLLX_SEG_ONE_CHECK : 0),
        /* Measured on SCI: on a D352 by the paper whose barriers these are. */
        .store_ns = 200,
        .check_ns = new->check == COLLX_CHECK_FULL ? 5000 : 4000,
    };
    *net = new;
    return 0;
}

static void sisci_close_net(struct collx_net *net)
{
    if (net)
        collx_sisci_release();
    free(net);
}

static void sisci_unmake(struct collx_export *made)
{
    unsigned ignored = 0;
    int keep = errno;

    if (!made)
        return;
    const struct collx_sisci *sisci = made->net->sisci;
    if (made->available)
        sisci->SetSegmentUnavailable(made->segment, made->net->adapter, 0, &ignored);
    if (made->map)
        sisci->UnmapSegment(made->map, 0, &ignored);
    if (made->segment)
        sisci->RemoveSegment(made->segment, 0, &ignored);
    if (made->descriptor)
        sisci->Close(made->descriptor, 0, &ignored);
    free(made);
    errno = keep;
}

/* SISCI leaves a handle undefined where a call fails. */
#define KEEP(handle, error) ((handle) = (error) ? NULL : (handle))

static unsigned make_segment(struct collx_export *made, size_t bytes, void **local, uint32_t *id)
{
    struct collx_net *net = made->net;
    const struct collx_sisci *sisci = net->sisci;
    unsigned error = 0, tries = 0;

    sisci->Open(&made->descriptor, 0, &error);
    KEEP(made->descriptor, error);
    if (error)
        return error;
    do {
        error = 0;
        *id = net->ids++;
        sisci->CreateSegment(made->descriptor, &made->segment, *id, bytes, NULL, NULL, 0, &error);
    } while (collx_sisci_errno(error) == -EEXIST && ++tries < IDS);
    KEEP(made->segment, error);
    if (!error)
        sisci->PrepareSegment(made->segment, net->adapter, 0, &error);
    if (!error) {
        *local = sisci->MapLocalSegment(made->segment, &made->map, 0, bytes, NULL, 0, &error);
        KEEP(made->map, error);
    }
    if (!error) {
        memset(*local, 0, bytes);
        sisci->SetSegmentAvailable(made->segment, net->adapter, 0, &error);
        made->available = !error;
    }
    return error;
}

static int sisci_make(struct collx_net *net, size_t bytes, struct collx_export **made, void **local,
                      struct collx_seg_address *address, char *why, size_t size)
{
    struct collx_export *new = calloc(1, sizeof *new);
    int keep = errno;
    char text[80];
    uint32_t id;

    *made = new;
    if (!new) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    new->net = net;
    /* Adapters map whole pages. */
    unsigned error = make_segment(new, collx_page_up(bytes), local, &id);
    if (error) {
        snprintf(why, size, "cannot export %zu bytes of memory through adapter %" PRIu32 ": %s",
                 bytes, net->adapter, collx_sisci_text(error, text, sizeof text));
        sisci_unmake(new);
        *made = NULL;
    } else {
        *address = (struct collx_seg_address){{SEG_SISCI_KIND, net->node, id, bytes}};
    }
    errno = keep;
    return collx_sisci_errno(error);
}

static void sisci_disconnect(struct collx_remote *remote)
{
    unsigned ignored = 0;
    int keep = errno;

    if (!remote)
        return;
    const struct collx_sisci *sisci = remote->net->sisci;
    if (remote->link) {
        *remote->link = remote->next;
        if (remote->next)
            remote->next->link = remote->link;
    }
    if (remote->sequence)
        sisci->RemoveSequence(remote->sequence, 0, &ignored);
    if (remote->map)
        sisci->UnmapSegment(remote->map, 0, &ignored);
    if (remote->segment)
        sisci->DisconnectSegment(remote->segment, 0, &ignored);
    if (remote->descriptor)
        sisci->Close(remote->descriptor, 0, &ignored);
    free(remote);
    errno = keep;
}

static unsigned start(struct collx_remote *remote)
{
    unsigned error = 0;
    unsigned state = remote->net->sisci->StartSequence(remote->sequence, 0, &error);

    return error ? (unsigned)COLLX_SISCI_NOT_RETRIABLE : state;
}

static unsigned connect_segment(struct collx_remote *remote, unsigned node, unsigned id,
                                size_t bytes)
{
    const struct collx_sisci *sisci = remote->net->sisci;
    unsigned error = 0;

    sisci->Open(&remote->descriptor, 0, &error);
    KEEP(remote->descriptor, error);
    if (!error) {
        sisci->ConnectSegment(remote->descriptor, &remote->segment, node, id, remote->net->adapter,
                              NULL, NULL, CONNECT_MS, 0, &error);
        KEEP(remote->segment, error);
    }
    if (!error) {
        remote->base =
            sisci->MapRemoteSegment(remote->segment, &remote->map, 0, bytes, NULL, 0, &error);
        KEEP(remote->map, error);
    }
    if (!error) {
        sisci->CreateMapSequence(remote->map, &remote->sequence, 0, &error);
        KEEP(remote->sequence, error);
    }
    return error;
}

static int sisci_connect(struct collx_net *net, const struct collx_seg_address *address,
                         size_t bytes, struct collx_remote **remote, char *why, size_t size)
{
    unsigned node = (unsigned)address->word[1], id = (unsigned)address->word[2];
    struct collx_remote *new;
    int keep = errno;
    char text[80];

    *remote = NULL;
    if (address->word[0] != SEG_SISCI_KIND || address->word[3] != bytes) {
        snprintf(why, size, "the address is not one of sisci, or of a segment of another size");
        return -EINVAL;
    }
    new = calloc(1, sizeof *new);
    if (!new) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    new->net = net;
    unsigned error = connect_segment(new, node, id, collx_page_up(bytes));
    if (error) {
        snprintf(why, size,
                 "cannot reach segment %u of node %u through adapter %" PRIu32
                 ": %s; dis_diag shows whether that node is connected",
                 id, node, net->adapter, collx_sisci_text(error, text, sizeof text));
        sisci_disconnect(new);
    } else {
        /* If it does not start now, that is a connection to be restored like any other. */
        new->down = start(new) != COLLX_SISCI_OK;
        new->next = net->remotes;
        new->link = &net->remotes;
        if (new->next)
            new->next->link = &new->next;
        net->remotes = new;
        *remote = new;
    }
    errno = keep;
    return collx_sisci_errno(error);
}

/* Release, here and below: what this process has read before stays before, on its side.  On the way
 * to the other side only the words of one line keep their order. */
static void sisci_store(struct collx_remote *remote, size_t offset, uint32_t value)
{
    __atomic_store_n((uint32_t *)(remote->base + offset), value, __ATOMIC_RELEASE);
    remote->dirty = true;
}

static void sisci_copy(struct collx_remote *remote, size_t offset, const void *data, size_t bytes)
{
    const size_t line = remote->net->line;
    const char *from = data;
    uint32_t word;

    /* Upwards: the last word of a line, which sends it, is stored last. */
    for (size_t end = offset + bytes; offset < end; offset += sizeof word, from += sizeof word) {
        size_t next = offset + sizeof word;
        uint32_t *to = (uint32_t *)(remote->base + offset);

        memcpy(&word, from, sizeof word);
        if (next == end || next % line == 0)
            __atomic_store_n(to, word, __ATOMIC_RELEASE);
        else
            __atomic_store_n(to, word, __ATOMIC_RELAXED);
    }
    remote->dirty = true;
}

/* All that was stored through this sequence, or through any of the net, is on its way. */
static void send(struct collx_net *net, struct collx_remote *remote)
{
    if (net->check == COLLX_CHECK_BARRIER)
        net->sisci->StoreBarrier(remote->sequence, 0);
    else if (net->check == COLLX_CHECK_FLUSH)
        net->sisci->Flush(remote->sequence, 0);
}

static void failed(struct collx_remote *remote)
{
    remote->lost = true;
    if (!remote->failures++)
        remote->failing_since = collx_clock_ns();
}

static bool ask(struct collx_net *net, struct collx_remote *remote)
{
    unsigned flags = net->check == COLLX_CHECK_FULL ? 0 : net->sisci->no_store_barrier, error = 0;
    unsigned state = net->sisci->CheckSequence(remote->sequence, flags, &error);

    if (error || (state != COLLX_SISCI_OK && state != COLLX_SISCI_RETRIABLE))
        remote->down = true;
    return !error && state == COLLX_SISCI_OK;
}

static bool has_to_be_asked(const struct collx_remote *remote)
{
    return remote->dirty && !remote->lost && !remote->down;
}

static void settle(struct collx_remote *remote, bool good)
{
    remote->dirty = false;
    if (!good)
        failed(remote);
    else
        remote->failures = 0;
}

static void check_each(struct collx_net *net, struct collx_remote *const *remotes, unsigned count)
{
    /* First all barriers, then all checks: the stores are under way at the same time. */
    for (unsigned i = 0; i < count; i++)
        if (has_to_be_asked(remotes[i]))
            send(net, remotes[i]);
    for (unsigned i = 0; i < count; i++)
        if (has_to_be_asked(remotes[i]))
            settle(remotes[i], ask(net, remotes[i]));
}

/* By the sequence of any remote that has one in order.  It says nothing about which one failed: all
 * are told, also those that are not asked for now. */
static void check_all(struct collx_net *net, struct collx_remote *const *remotes, unsigned count)
{
    unsigned i = 0;

    while (i < count && !has_to_be_asked(remotes[i]))
        i++;
    if (i == count)
        return;
    send(net, remotes[i]);
    bool good = ask(net, remotes[i]);
    for (struct collx_remote *remote = net->remotes; remote; remote = remote->next)
        if (has_to_be_asked(remote) || remote == remotes[i])
            settle(remote, good);
}

static void restore(struct collx_remote *remote)
{
    remote->down = start(remote) != COLLX_SISCI_OK;
    /* Whatever was stored meanwhile went nowhere. */
    if (remote->dirty || remote->down) {
        remote->dirty = false;
        failed(remote);
    }
}

static uint8_t answer(struct collx_remote *remote, uint64_t patience_ns)
{
    bool lost = remote->lost;

    if ((lost || remote->down) && remote->failures >= FAILURES_MIN &&
        collx_clock_ns() - remote->failing_since >= patience_ns)
        return COLLX_SEG_GONE;
    if (remote->down)
        return COLLX_SEG_BUSY;
    remote->lost = false;
    return lost ? COLLX_SEG_LOST : COLLX_SEG_ARRIVED;
}

static int sisci_check(struct collx_net *net, struct collx_remote *const *remotes, unsigned count,
                       uint8_t *state)
{
    int keep = errno, missing = 0;
    bool gone = false;

    for (unsigned i = 0; i < count; i++)
        if (remotes[i]->down)
            restore(remotes[i]);
    if (net->one_check)
        check_all(net, remotes, count);
    else
        check_each(net, remotes, count);
    for (unsigned i = 0; i < count; i++) {
        state[i] = answer(remotes[i], net->patience_ns);
        missing += state[i] != COLLX_SEG_ARRIVED;
        gone |= state[i] == COLLX_SEG_GONE;
    }
    errno = keep;
    return gone ? -ENOTCONN : missing;
}

const struct collx_seg_ops collx_segment_sisci = {
    .name = "sisci",
    .open = sisci_open_net,
    .make = sisci_make,
    .connect = sisci_connect,
    .store = sisci_store,
    .copy = sisci_copy,
    .check = sisci_check,
    .disconnect = sisci_disconnect,
    .unmake = sisci_unmake,
    .close = sisci_close_net,
};
