/* The barrier over wires: read the wire from the board, write the opposite level, wait until the
 * wire from the board follows. */
#include "hw/barrier.h"
#include "hw/board.h"
#include "hw/wires.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLAIM_MS = 500, /* how long participants may be apart when they claim a channel */
    SLEEP_MS = 2,   /* at a time: some ports miss edges */
    SPINS = 200,    /* before others get the CPU */
    TRIES = 16,     /* how often to read until a level counts as steady */
    CONFIG = 63,    /* the byte whose lock is for the wires that configure */
};

struct channel {
    bool attached, claimed, entered, fresh;
    uint32_t level; /* that the board had when this node was released last */
    uint64_t participants;
};

struct collx_bar {
    struct collx_wires wires;
    struct collx_bar_caps caps;
    struct collx_board board;
    struct channel channels[COLLX_WIRES_CHANNELS];
};

/* Of wires that processes share: lock a byte of the node's.  Without, the port is ours alone. */
static int lock(struct collx_bar *bar, unsigned byte, int command, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    int fd;
    int64_t start;

    if (!bar->wires.ops->lock)
        return 0;
    int error = bar->wires.ops->lock(bar->wires.port, &fd, &start);
    range.l_start = start + byte;
    if (!error && fcntl(fd, command, &range))
        error = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
    return error;
}

static int begin_config(struct collx_bar *bar)
{
    int error;

    while ((error = lock(bar, CONFIG, F_OFD_SETLKW, F_WRLCK)) == -EINTR)
        ;
    return error;
}

static void end_config(struct collx_bar *bar)
{
    lock(bar, CONFIG, F_OFD_SETLK, F_UNLCK);
}

static void bar_close(struct collx_bar *bar);

static int identify(struct collx_bar *bar, char *why, size_t size)
{
    const struct collx_wire_spec *spec = &bar->wires.spec;
    int error = begin_config(bar);

    if (!error) {
        error = collx_board_identify(&bar->wires, &bar->board);
        end_config(bar);
    }
    if (!error && bar->board.channels < spec->channels)
        error = -ENODEV;
    if (error == -ENODEV)
        snprintf(why, size,
                 "%s:%s: no board with channels=%u answers; see whether it is on, the cable is in, "
                 "and out= and in= name the pins; `collx hw test` goes through them",
                 bar->wires.ops->name, spec->device, spec->channels);
    else if (error)
        snprintf(why, size, "cannot use %s:%s: %s", bar->wires.ops->name, spec->device,
                 strerror(-error));
    if (!error && spec->nodes > bar->board.nodes) {
        snprintf(why, size,
                 "nodes=%u, but the board has %u sockets; it needs no nodes=", spec->nodes,
                 bar->board.nodes);
        error = -EINVAL;
    }
    return error;
}

/* What an access costs.  Writing what is there already changes nothing. */
static int measure(struct collx_bar *bar)
{
    enum { TIMES = 8 };
    uint32_t levels;
    uint64_t start = collx_clock_ns(), middle;
    int error = 0;

    for (int i = 0; i < TIMES && !error; i++)
        error = collx_wires_set(&bar->wires, 0, 0);
    middle = collx_clock_ns();
    for (int i = 0; i < TIMES && !error; i++)
        error = collx_wires_get(&bar->wires, &levels);
    bar->caps.enter_ns = (unsigned)((middle - start) / TIMES);
    bar->caps.test_ns = (unsigned)((collx_clock_ns() - middle) / TIMES);
    return error;
}

static int bar_open(struct collx_bar **bar, const char *spec, struct collx_bar_caps *caps,
                    char *why, size_t size)
{
    struct collx_bar *new = calloc(1, sizeof *new);

    *bar = NULL;
    if (!new) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    int error = collx_wires_open(&new->wires, spec, why, size);
    if (error) {
        free(new);
        return error;
    }
    unsigned channels = new->wires.spec.channels;
    if (channels)
        error = identify(new, why, size);
    new->caps = (struct collx_bar_caps){
        .channels = channels ? channels : 1,
        .nodes = channels ? new->board.nodes : new->wires.spec.nodes,
        .self = channels ? new->board.self : COLLX_BAR_UNKNOWN,
        .flags = COLLX_BAR_STALE | (channels ? COLLX_BAR_MASKS | COLLX_BAR_WHO : 0) |
                 (new->wires.ops->wait_edge ? COLLX_BAR_SLEEP : 0) |
                 (new->wires.ops->flags &COLLX_WIRES_SHARED ? COLLX_BAR_SHARED : 0),
    };
    if (!error && (error = measure(new)))
        snprintf(why, size, "cannot use %s: %s", spec, strerror(-error));
    if (error) {
        bar_close(new);
        return error;
    }
    *caps = new->caps;
    *bar = new;
    return 0;
}

static void format_nodes(uint64_t nodes, char *text, size_t size)
{
    size_t used = 0;

    *text = 0;
    for (unsigned node = 0; node < 64; node++)
        if (nodes >> node & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%u", used ? ", " : "", node);
}

/* Until the board agrees, or has been somebody else's all the while: others of a dead job's channel
 * can only have it after one that was in that job, too. */
static int claim(struct collx_bar *bar, unsigned channel, uint64_t participants, char *why,
                 size_t size)
{
    uint64_t start = collx_clock_ns(), mask = 0;
    int error;

    do {
        error = begin_config(bar);
        if (!error) {
            error = collx_board_claim(&bar->wires, &bar->board, channel, participants);
            if (!error)
                error = collx_board_mask(&bar->wires, &bar->board, channel, &mask);
            end_config(bar);
        }
        if (error)
            snprintf(why, size, "the board cannot be asked: %s; `collx hw test` looks into it",
                     strerror(-error));
        if (error || mask == participants)
            return error;
        sched_yield();
    } while (collx_clock_ns() - start < CLAIM_MS * 1000000ull);
    char nodes[200];
    format_nodes(mask, nodes, sizeof nodes);
    if (!mask)
        snprintf(why, size,
                 "the board does not take the claim of channel %u; `collx hw test` looks into it",
                 channel);
    else
        snprintf(
            why, size,
            "channel %u belongs to a job on nodes %s; if that is dead, `collx hw free` on one of "
            "these nodes gives it back",
            channel, nodes);
    return -EBUSY;
}

/* Not arrived: the level of the board, until it stays. */
static int align(struct collx_bar *bar, unsigned channel)
{
    uint32_t wire = 1u << channel, levels, driven;
    int error = collx_wires_get(&bar->wires, &levels);

    for (int i = 0; i < TRIES && !error; i++) {
        driven = levels & wire;
        error = collx_wires_set(&bar->wires, wire, driven);
        if (!error)
            error = collx_wires_settle(&bar->wires);
        if (!error)
            error = collx_wires_get(&bar->wires, &levels);
        if (!error && (levels & wire) == driven)
            return 0;
    }
    return error ? error : -EIO;
}

static int bar_attach(struct collx_bar *bar, unsigned channel, uint64_t participants, unsigned self,
                      char *why, size_t size)
{
    uint64_t all = bar->caps.nodes ? ~0ull >> (64 - bar->caps.nodes) : ~0ull;

    if (channel >= bar->caps.channels || self >= COLLX_WIRES_NODES || !(participants >> self & 1) ||
        participants & ~all) {
        snprintf(why, size, "channel %u, or node %u of these participants, is not on this board",
                 channel, self);
        return -EINVAL;
    }
    if (bar->caps.self != COLLX_BAR_UNKNOWN && bar->caps.self != self) {
        snprintf(why, size, "this node is in socket %u of the board, and should be in %u",
                 bar->caps.self, self);
        return -EINVAL;
    }
    if (!(bar->caps.flags & COLLX_BAR_MASKS) && bar->caps.nodes && participants != all) {
        snprintf(why, size, "on this board all %u nodes take part, or none", bar->caps.nodes);
        return -EINVAL;
    }
    int error = bar->channels[channel].attached ? -EBUSY : lock(bar, channel, F_OFD_SETLK, F_WRLCK);
    if (error) {
        snprintf(why, size, "channel %u of this node is taken by another communicator or job",
                 channel);
        return error;
    }
    bar->channels[channel] = (struct channel){.attached = true, .participants = participants};
    if (bar->caps.flags & COLLX_BAR_MASKS) {
        error = claim(bar, channel, participants, why, size);
        bar->channels[channel].claimed = !error;
    }
    if (!error && (error = align(bar, channel)))
        snprintf(
            why, size,
            "the wire from the board does not keep its level: %s; `collx hw test` looks into it",
            strerror(-error));
    bar->channels[channel].fresh = true;
    return error;
}

/* A channel that this node takes part in, or NULL. */
static struct channel *find(struct collx_bar *bar, unsigned channel)
{
    return channel < COLLX_WIRES_CHANNELS && bar->channels[channel].attached
               ? &bar->channels[channel]
               : NULL;
}

static int bar_enter(struct collx_bar *bar, unsigned channel)
{
    struct channel *c = find(bar, channel);
    uint32_t wire = 1u << channel, levels;
    int error = 0;

    if (!c || c->entered)
        return -EINVAL;
    /* After that the level is known from the last release: one access less. */
    if (c->fresh) {
        error = collx_wires_get(&bar->wires, &levels);
        c->level = levels & wire;
    }
    if (!error)
        error = collx_wires_set(&bar->wires, wire, ~c->level);
    if (!error) {
        c->fresh = false;
        c->entered = true;
    }
    return error;
}

static int bar_test(struct collx_bar *bar, unsigned channel)
{
    struct channel *c = find(bar, channel);
    uint32_t wire = 1u << channel, levels;

    if (!c || !c->entered)
        return -EINVAL;
    int error = collx_wires_get(&bar->wires, &levels);
    if (error)
        return error;
    if ((levels & wire) == c->level)
        return 0;
    c->level = levels & wire;
    c->entered = false;
    return 1;
}

static int bar_wait(struct collx_bar *bar, unsigned channel, int timeout_ms)
{
    uint64_t start = collx_clock_ns(), patience = (uint64_t)timeout_ms * 1000000u;
    int released;

    for (unsigned i = 0; !(released = bar_test(bar, channel)); i++) {
        if (collx_clock_ns() - start >= patience)
            return -ETIMEDOUT;
        if (i < SPINS)
            sched_yield();
        else if (bar->wires.ops->wait_edge)
            bar->wires.ops->wait_edge(bar->wires.port, SLEEP_MS);
        else
            sched_yield();
    }
    return released < 0 ? released : 0;
}

static int bar_settle(struct collx_bar *bar)
{
    return collx_wires_settle(&bar->wires);
}

static int bar_missing(struct collx_bar *bar, unsigned channel, uint64_t *nodes)
{
    const struct channel *c = find(bar, channel);
    uint64_t arrived;
    uint32_t levels;

    *nodes = 0;
    if (!(bar->caps.flags & COLLX_BAR_WHO))
        return -EOPNOTSUPP;
    if (!c || !c->entered)
        return -EINVAL;
    int error = begin_config(bar);
    if (error)
        return error;
    error = collx_board_arrived(&bar->wires, &bar->board, channel, &arrived);
    end_config(bar);
    if (!error)
        error = collx_wires_get(&bar->wires, &levels);
    /* Released since: then nobody is missing, and `arrived` is about the next barrier. */
    if (!error && (levels & 1u << channel) == c->level)
        *nodes = c->participants & ~arrived;
    return error;
}

static int bar_detach(struct collx_bar *bar, unsigned channel)
{
    struct channel *c = find(bar, channel);
    int error = 0;

    if (!c)
        return 0;
    if (c->claimed) {
        error = begin_config(bar);
        if (!error) {
            error = collx_board_claim(&bar->wires, &bar->board, channel, 0);
            end_config(bar);
        }
    }
    lock(bar, channel, F_OFD_SETLK, F_UNLCK);
    *c = (struct channel){.attached = false};
    return error;
}

static int bar_lingers(struct collx_bar *bar, unsigned channel)
{
    uint64_t mask;

    /* Where all take part, all have to come to take it anew. */
    if (!(bar->caps.flags & COLLX_BAR_MASKS))
        return 0;
    int error = begin_config(bar);
    if (error)
        return error;
    error = collx_board_mask(&bar->wires, &bar->board, channel, &mask);
    end_config(bar);
    return error ? error : (int)(mask >> bar->board.self & 1);
}

static void bar_counts(const struct collx_bar *bar, struct collx_bar_counts *counts)
{
    *counts = (struct collx_bar_counts){bar->wires.writes, bar->wires.reads};
}

static void bar_close(struct collx_bar *bar)
{
    if (!bar)
        return;
    for (unsigned channel = 0; channel < bar->caps.channels; channel++)
        bar_detach(bar, channel);
    collx_wires_close(&bar->wires);
    free(bar);
}

const struct collx_bar_ops collx_barrier_wires = {
    .name = "wires",
    .open = bar_open,
    .attach = bar_attach,
    .enter = bar_enter,
    .test = bar_test,
    .wait = bar_wait,
    .settle = bar_settle,
    .missing = bar_missing,
    .detach = bar_detach,
    .lingers = bar_lingers,
    .counts = bar_counts,
    .close = bar_close,
};
