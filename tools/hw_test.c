/* `collx hw test`: for who has just soldered the cables. */
#include "tools/hw.h"
#include "tools/tools.h"

#include "base/clock.h"
#include "base/parse.h"
#include "hw/barrier.h"
#include "hw/board.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum how { ALONE, PLUG, TOGGLE, WATCH, TOGETHER };
enum { TIMES = 100, PROBE_MS = 20 };

struct request {
    const char *spec;
    enum how how;
    int64_t seconds, times, nodes;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *request = state->input;
    char why[COLLX_WHY_MAX];

    switch (key) {
    case 'p':
    case 't':
    case 'w':
        request->how = key == 'p' ? PLUG : key == 't' ? TOGGLE : WATCH;
        return 0;
    case 'a':
        request->how = TOGETHER;
        if (collx_value_parse(COLLX_NUMBER, arg, 1, COLLX_WIRES_NODES, &request->nodes, why,
                              sizeof why))
            argp_error(state, "--all: %s", why);
        return 0;
    case 's':
        if (collx_value_parse(COLLX_NUMBER, arg, 1, 86400, &request->seconds, why, sizeof why))
            argp_error(state, "--seconds: %s", why);
        return 0;
    case 'n':
        if (collx_value_parse(COLLX_NUMBER, arg, 1, INT32_MAX, &request->times, why, sizeof why))
            argp_error(state, "--times: %s", why);
        return 0;
    case ARGP_KEY_ARG:
        if (request->spec)
            argp_error(state, "one SPEC at a time; '%s' is one more", arg);
        request->spec = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which SPEC?");
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000l};

    fflush(stdout);
    nanosleep(&time, NULL);
}

static bool failed(const char *what, int error)
{
    printf("FAILED: %s: %s\n", what, strerror(-error));
    return false;
}

static uint32_t channels_of(const struct collx_wires *wires)
{
    unsigned channels = wires->spec.channels ? wires->spec.channels : 1;

    return (1u << channels) - 1;
}

/* With a plug that leads each wire back: what is written is what is read. */
static bool test_plug(struct collx_wires *wires, const struct request *request)
{
    uint32_t all = (1u << wires->spec.ins) - 1, levels, wrong = 0;

    printf("A plug at the end of the cable leads wires 0 to %u back; the board is not connected.\n",
           wires->spec.ins - 1);
    for (int64_t i = 0; i < request->times; i++)
        for (uint32_t wire = 0; wire < wires->spec.ins; wire++) {
            uint32_t wanted = i % 2 ? all & ~(1u << wire) : 1u << wire;
            int error = collx_wires_set(wires, all, wanted);
            if (!error)
                error = collx_wires_settle(wires);
            if (!error)
                error = collx_wires_get(wires, &levels);
            if (error)
                return failed("the port", error);
            wrong |= (levels ^ wanted) & all;
        }
    for (unsigned wire = 0; wire < wires->spec.ins; wire++)
        printf("wire %u: %s\n", wire,
               wrong >> wire & 1 ? "FAILED: it does not come back; see plug, cable, out= and in="
                                 : "good");
    return !wrong;
}

/* Change the wire of channel 0 and its fellows once a second: for a voltmeter, or `--watch`. */
static bool test_toggle(struct collx_wires *wires, const struct request *request)
{
    uint32_t all = channels_of(wires), level = 0;

    for (int64_t i = 0; i < request->times; i++) {
        level ^= all;
        int error = collx_wires_set(wires, all, level);
        if (error)
            return failed("the port", error);
        printf("all channels' wires to the board are %d now\n", !!level);
        if (i + 1 < request->times)
            pause_ms(1000);
    }
    return true;
}

static bool test_watch(struct collx_wires *wires, const struct request *request)
{
    uint64_t start = collx_clock_ns(), end = start + (uint64_t)request->seconds * 1000000000u;
    uint32_t before = 0, levels;

    for (bool first = true; collx_clock_ns() < end; first = false) {
        int error = collx_wires_get(wires, &levels);
        if (error)
            return failed("the port", error);
        for (unsigned wire = 0; wire < wires->spec.ins; wire++)
            if (first || ((levels ^ before) >> wire & 1))
                printf("%8.3f s: wire %u from the board is %u\n",
                       (double)(collx_clock_ns() - start) / 1e9, wire, levels >> wire & 1);
        before = levels;
        pause_ms(PROBE_MS);
    }
    return true;
}

/* Barriers of this node and whoever takes part elsewhere: `mask` is of a board with channels. */
static bool run_barriers(struct collx_bar *bar, unsigned channel, const struct request *request,
                         const char *if_late)
{
    const struct collx_bar_ops *ops = &collx_barrier_wires;
    struct collx_bar_counts before, after;
    uint64_t start = 0;

    for (int64_t i = 0; i <= request->times; i++) {
        if (i == 1) { /* the first one waits for others to be started */
            start = collx_clock_ns();
            ops->counts(bar, &before);
        }
        int error = ops->enter(bar, channel);
        if (!error)
            error = ops->wait(bar, channel, (int)request->seconds * 1000);
        if (error == -ETIMEDOUT) {
            printf("FAILED: barrier %" PRId64 " of channel %u is not over after %" PRId64
                   " s: %s\n",
                   i, channel, request->seconds, if_late);
            return false;
        }
        if (error)
            return failed("the port", error);
    }
    double ns = (double)(collx_clock_ns() - start) / (double)request->times;
    ops->counts(bar, &after);
    printf("channel %u: good; a barrier takes %.2f us, %.1f writes and %.1f reads\n", channel,
           ns / 1e3, (double)(after.writes - before.writes) / (double)request->times,
           (double)(after.reads - before.reads) / (double)request->times);
    return true;
}

/* A board with channels can be tested from one node: it is all alone in each of them. */
static bool test_alone(const struct request *request)
{
    const struct collx_bar_ops *ops = &collx_barrier_wires;
    struct collx_bar_caps caps;
    struct collx_bar *bar;
    bool good = true;
    char why[512];

    if (ops->open(&bar, request->spec, &caps, why, sizeof why)) {
        printf("FAILED: %s\n", why);
        return false;
    }
    if (!(caps.flags & COLLX_BAR_MASKS)) {
        printf("On this board one node alone cannot pass. --plug tests its port and cable, and "
               "--all=N, on all nodes at the same time, the whole.\n");
        ops->close(bar);
        return false;
    }
    printf("A board with %u channels for %u nodes answers; this is node %u. A write takes %u ns, a "
           "read %u ns.\n",
           caps.channels, caps.nodes, caps.self, caps.enter_ns, caps.test_ns);
    for (unsigned channel = 0; channel < caps.channels; channel++) {
        if (ops->attach(bar, channel, 1ull << caps.self, caps.self, why, sizeof why)) {
            printf("channel %u: FAILED: %s\n", channel, why);
            good = false;
        } else {
            good &= run_barriers(bar, channel, request,
                                 "the wires of this channel, to the board or from it, do not get "
                                 "through; see cable, out= and in=");
        }
        ops->detach(bar, channel);
    }
    ops->close(bar);
    return good;
}

/* All nodes of the board that there are, each of them running this. */
static bool test_together(const struct request *request)
{
    const struct collx_bar_ops *ops = &collx_barrier_wires;
    struct collx_bar_caps caps;
    struct collx_bar *bar;
    char why[512], late[512];
    uint64_t missing;

    if (ops->open(&bar, request->spec, &caps, why, sizeof why)) {
        printf("FAILED: %s\n", why);
        return false;
    }
    unsigned self = caps.self == COLLX_BAR_UNKNOWN ? 0 : caps.self;
    bool good = !ops->attach(bar, 0, ~0ull >> (64 - request->nodes), self, why, sizeof why);
    if (!good) {
        printf("FAILED: %s\n", why);
    } else {
        printf("Waiting for the other nodes: start this on all of them within %" PRId64 " s.\n",
               request->seconds / 2);
        /* Meanwhile all of them take the level that is there: nobody has begun. */
        pause_ms(request->seconds * 500);
        snprintf(late, sizeof late,
                 "the wire of some node does not get through, or the test does not run there; "
                 "test each cable alone");
        good = run_barriers(bar, 0, request, late);
        if (!good && !ops->missing(bar, 0, &missing))
            for (unsigned node = 0; node < request->nodes; node++)
                if (missing >> node & 1)
                    printf("node %u has not arrived\n", node);
    }
    ops->close(bar);
    return good;
}

int collx_hw_test_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"plug", 'p', NULL, 0,
         "Port and cable alone: at its end is a plug that leads each wire back", 0},
        {"toggle", 't', NULL, 0, "Change the wires to the board once a second, for a voltmeter", 0},
        {"watch", 'w', NULL, 0, "Say when wires from the board change", 0},
        {"all", 'a', "N", 0, "Barriers of nodes 0 to N-1 of the board, which all run this", 0},
        {"seconds", 's', "N", 0, "How long to wait, or to watch (default: 10)", 0},
        {"times", 'n', "N", 0, "How many barriers or changes (default: 100)", 0},
        {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "SPEC",
        .doc =
            "Test an installation, node by node.  Without options: the board and all its channels "
            "from this node alone, which takes a board with channels.\v"
            "Not while a job uses the port.  Step by step: hardware.md, beside the other "
            "documents."};
    struct request request = {.how = ALONE, .seconds = 10, .times = TIMES};
    bool good;

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (request.how == ALONE || request.how == TOGETHER) {
        good = request.how == ALONE ? test_alone(&request) : test_together(&request);
    } else {
        struct collx_wires wires;
        if (!collx_hw_open(&wires, request.spec))
            return COLLX_EXIT_BAD;
        good = request.how == PLUG     ? test_plug(&wires, &request)
               : request.how == TOGGLE ? test_toggle(&wires, &request)
                                       : test_watch(&wires, &request);
        collx_wires_close(&wires);
    }
    return good ? COLLX_EXIT_GOOD : COLLX_EXIT_BAD;
}
