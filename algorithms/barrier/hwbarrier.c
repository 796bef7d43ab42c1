#include "algorithms/barrier/hwbarrier.h"

#include "algorithms/between/leaders.h"
#include "algorithms/wait.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "hw/barrier_port.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHANNELS = 64,   /* and nodes, of any board: they are counted in bits */
    TRIALS = 2,      /* one to each level */
    TRIAL_MS = 2000, /* for a board that is wired well, on a machine that is busy */
    SPIN_NS = 32,    /* what a spin of team->spins takes */
    CHEAP_NS = 1000, /* a port that takes longer need not be spared */
};

struct hwbarrier {
    struct collx_leaders leaders;
    struct collx_bar_caps caps;
    uint64_t participants;
    int rank[CHANNELS]; /* of the leader who is that node on the board */
    unsigned self, channel;
    bool opened, attached;
    int error;        /* of the port: it is not used any more */
    uint64_t missing; /* for a report */
    uint64_t barriers;
    struct collx_bar_counts before; /* the first of them */
};

/* What leaders tell of their ports. */
struct port {
    uint32_t nodes, self;
    uint32_t chosen; /* who takes part */
};

/* Of one attempt to get a channel. */
struct wish {
    uint64_t free; /* channels */
    uint32_t dice; /* the first leader's counts */
    uint32_t unused;
};
_Static_assert(sizeof(struct port) == 12 && sizeof(struct wish) == 16, "they travel as bytes");

void *collx_hwbarrier_create(struct collx_team *team)
{
    struct hwbarrier *hw = calloc(1, sizeof *hw);

    if (hw && collx_leaders_init(&hw->leaders, team)) {
        free(hw);
        hw = NULL;
    }
    return hw;
}

static int agree(struct hwbarrier *hw, int error, const char *text, char *why, size_t size)
{
    return collx_leaders_agree(&hw->leaders, "the port", error, text, why, size);
}

/* Which node of the board each leader is.  From what all have heard: 0 or COLLX_EUNFIT, and why, on
 * all ranks. */
static int number_nodes(struct hwbarrier *hw, char *why, size_t size)
{
    struct collx_leaders *leaders = &hw->leaders;
    struct port first = *(const struct port *)collx_leaders_heard(leaders, 0, sizeof first);
    unsigned nodes = (unsigned)leaders->nodes;

    for (int node = 0; node < leaders->nodes; node++) {
        const struct port *port = collx_leaders_heard(leaders, node, sizeof *port);
        /* A board that does not tell who is who needs no numbers: all take part. */
        unsigned self = port->self == COLLX_BAR_UNKNOWN ? (unsigned)node : port->self;

        if (port->nodes != first.nodes || port->chosen != first.chosen) {
            snprintf(why, size, "the ports of ranks %d and %d are wired to different boards",
                     leaders->rank[0], leaders->rank[node]);
            return COLLX_EUNFIT;
        }
        if (self >= CHANNELS || hw->participants >> self & 1) {
            snprintf(why, size,
                     "rank %d is node %u of its board, as another one is: there are more boards "
                     "than one, or a node's port is used twice",
                     leaders->rank[node], self);
            return COLLX_EUNFIT;
        }
        hw->participants |= 1ull << self;
        hw->rank[self] = leaders->rank[node];
        if (node == leaders->own)
            hw->self = self;
    }
    if (!first.chosen && first.nodes != nodes) {
        if (first.nodes)
            snprintf(why, size, "all %u nodes of the board have to take part, and these are %u",
                     first.nodes, nodes);
        else
            snprintf(why, size,
                     "COLLX_HWBARRIER on rank %d has to say by nodes= how many nodes are wired to "
                     "the board",
                     leaders->rank[0]);
        return COLLX_EUNFIT;
    }
    return 0;
}

static int open_ports(struct hwbarrier *hw, char *why, size_t size)
{
    char text[COLLX_LEADERS_TEXT] = "";
    int error = 0;

    if (hw->leaders.leads) {
        error = collx_bar_port_open(&hw->caps, text, sizeof text);
        hw->opened = !error;
    }
    error = agree(hw, error, text, why, size);
    if (error)
        return error;
    struct port own = {hw->caps.nodes, hw->caps.self, hw->caps.flags & COLLX_BAR_MASKS};
    error = collx_leaders_tell(&hw->leaders, &own, sizeof own, why, size);
    return error ? error : number_nodes(hw, why, size);
}

static void leave_channel(struct hwbarrier *hw)
{
    if (hw->attached)
        collx_bar_port_detach(hw->channel);
    hw->attached = false;
}

/* The next channel to try, of those that are free everywhere: first the lowest; then any, or two
 * communicators that get into each other's way on different nodes would do so again. */
static int next_channel(const struct hwbarrier *hw, bool first)
{
    const struct collx_leaders *leaders = &hw->leaders;
    const struct wish *wish = collx_leaders_heard(leaders, 0, sizeof *wish);
    unsigned dice = wish->dice;
    uint64_t common = ~0ull;

    for (int node = 0; node < leaders->nodes; node++) {
        wish = collx_leaders_heard(leaders, node, sizeof *wish);
        common &= wish->free;
    }
    if (!common)
        return -1;
    for (unsigned skip = first ? 0 : dice % (unsigned)__builtin_popcountll(common); skip; skip--)
        common &= common - 1;
    return __builtin_ctzll(common);
}

static int get_channel(struct hwbarrier *hw, char *why, size_t size)
{
    uint64_t tried = 0;
    int channel, error;

    snprintf(why, size, "every channel of the board is another communicator's");
    for (;;) {
        struct wish own = {.dice = (uint32_t)(collx_clock_ns() >> 4) ^ (uint32_t)getpid()};
        char text[COLLX_LEADERS_TEXT] = "", none[COLLX_LEADERS_TEXT];

        if (hw->leaders.leads)
            own.free = collx_bar_port_free() & ~tried;
        error = collx_leaders_tell(&hw->leaders, &own, sizeof own, none, sizeof none);
        if (error)
            return error;
        channel = next_channel(hw, !tried);
        if (channel < 0)
            return COLLX_EUNFIT;
        tried |= 1ull << channel;
        hw->channel = (unsigned)channel;
        if (hw->leaders.leads) {
            error =
                collx_bar_port_attach(hw->channel, hw->participants, hw->self, text, sizeof text);
            hw->attached = !error;
        }
        /* Here all meet before the first of them enters, as the board's levels demand. */
        error = agree(hw, error, text, why, size);
        if (error)
            leave_channel(hw);
        if (error != -EBUSY)
            return error;
    }
}

static int await_release(struct hwbarrier *hw)
{
    const uint64_t begin = collx_clock_ns();
    int released;

    while (!(released = collx_bar_port_test(hw->channel))) {
        if (collx_clock_ns() - begin > TRIAL_MS * 1000000ull)
            return -ETIMEDOUT;
        sched_yield();
    }
    return released < 0 ? released : 0;
}

/* A barrier to which the leader of node `late` comes last.  A cable that is out, a pin that is
 * another one, nodes of two boards: all that would let a job wait for ever, or not wait, some day.
 */
static int try_barrier(struct hwbarrier *hw, int late, char *why, size_t size)
{
    const bool leads = hw->leaders.leads, last = late == hw->leaders.own;
    const char *text = "it cannot be read and written";
    int error = leads && !last ? collx_bar_port_enter(hw->channel) : 0;

    error = agree(hw, error, text, why, size);
    if (error)
        return error;
    if (leads && !last) {
        error = collx_bar_port_settle();
        if (!error)
            error = collx_bar_port_test(hw->channel);
        if (error > 0) {
            error = -EPROTO;
            text = "the board released it before the last node had arrived; see whether nodes= "
                   "is right, and by `collx hw test` whether all are wired to one board";
        }
    }
    error = agree(hw, error, text, why, size);
    if (error)
        return error;
    if (leads && last)
        error = collx_bar_port_enter(hw->channel);
    if (leads && !error) {
        error = await_release(hw);
        if (error == -ETIMEDOUT)
            text = "the board did not release it after all had arrived; see by `collx hw test` "
                   "whether all are wired to it";
    }
    return agree(hw, error, text, why, size);
}

static int way_connect(void *with, char *why, size_t size)
{
    struct hwbarrier *hw = with;
    int error = open_ports(hw, why, size);

    if (!error)
        error = get_channel(hw, why, size);
    for (int trial = 0; trial < TRIALS && !error; trial++)
        error = try_barrier(hw, trial, why, size);
    collx_leaders_agreed(&hw->leaders);
    if (hw->opened && !error)
        collx_bar_port_counts(&hw->before);
    return error;
}

static int lose(struct hwbarrier *hw, int error)
{
    const struct collx_team *team = hw->leaders.team;

    hw->error = error;
    collx_warn("rank %d of %s can no longer use the port to the hardware barrier: %s. Barriers on "
               "this communicator return an error on its node from now on, and other nodes wait "
               "for it; `collx hw test` looks into the port",
               team->rank, team->name, strerror(-error));
    return team->ops->unreachable;
}

/* Released, or failed. */
static bool is_over(const void *with, int i, uint64_t value)
{
    struct hwbarrier *hw = (struct hwbarrier *)(uintptr_t)with;
    int released = collx_bar_port_test(hw->channel);

    (void)i, (void)value;
    if (released < 0)
        hw->error = released;
    return released;
}

/* Asked for one rank after the other, and some hundred port accesses each time it begins anew. */
static bool is_missing(const void *with, int rank)
{
    struct hwbarrier *hw = (struct hwbarrier *)(uintptr_t)with;

    if (rank == 0 && collx_bar_port_missing(hw->channel, &hw->missing) == -EOPNOTSUPP)
        hw->missing = hw->participants & ~(1ull << hw->self);
    for (uint64_t rest = hw->missing; rest; rest &= rest - 1)
        if (hw->rank[__builtin_ctzll(rest)] == rank)
            return true;
    return false;
}

static int way_meet(void *with)
{
    struct hwbarrier *hw = with;
    struct collx_team *team = hw->leaders.team;
    const bool cheap = hw->caps.test_ns < CHEAP_NS;
    int spins = team->spins / (int)(1 + hw->caps.test_ns / SPIN_NS);

    if (hw->error)
        return team->ops->unreachable;
    hw->barriers++;
    int error = collx_bar_port_enter(hw->channel);
    if (error)
        return lose(hw, error);
    while (spins-- >= 0) {
        if (is_over(hw, 0, 0))
            return hw->error ? lose(hw, hw->error) : 0;
        if (cheap)
            collx_poll_gap(team);
    }
    collx_wait_long(team,
                    &(struct collx_wait){
                        .count = 1,
                        .what = "Barrier",
                        .reached = is_over,
                        .missing = is_missing,
                        .relayed = true,
                        .vague = !(hw->caps.flags & COLLX_BAR_WHO),
                        .with = hw,
                    },
                    0);
    return hw->error ? lose(hw, hw->error) : 0;
}

static void way_describe(const void *with, char *line, size_t size)
{
    const struct hwbarrier *hw = with;

    snprintf(line, size,
             "leaders of %d nodes meet at channel %u of %u of the board; a write to the port takes "
             "%u ns, a read %u",
             hw->leaders.nodes, hw->channel, hw->caps.channels, hw->caps.enter_ns,
             hw->caps.test_ns);
}

/* Of all communicators that use the port; of this one where there is no other. */
static void tell_counts(const struct hwbarrier *hw)
{
    struct collx_bar_counts counts;

    collx_bar_port_counts(&counts);
    collx_warn("rank %d of %s: %" PRIu64 " barriers; the port was written %" PRIu64
               " times meanwhile, and read %" PRIu64 " times",
               hw->leaders.team->rank, hw->leaders.team->name, hw->barriers,
               counts.writes - hw->before.writes, counts.reads - hw->before.reads);
}

static void way_destroy(void *with)
{
    struct hwbarrier *hw = with;

    if (hw->barriers && collx_option_number(COLLX_OPTION_VERBOSE) > 1)
        tell_counts(hw);
    leave_channel(hw);
    if (hw->opened)
        collx_bar_port_close();
    collx_leaders_finish(&hw->leaders);
    free(hw);
}

const struct collx_nodes_way collx_hwbarrier_way = {
    .connect = way_connect,
    .meet = way_meet,
    .describe = way_describe,
    .destroy = way_destroy,
};
