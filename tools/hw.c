/* `collx hw`: ports, cables and the board of the hardware barrier. */
#include "tools/hw.h"
#include "tools/tools.h"

#include "base/clock.h"
#include "base/spread.h"
#include "hw/board.h"

#include <argp.h>
#include <stdio.h>

enum { TIMES = 101 };

int collx_hw_measure(struct collx_wires *wires, struct collx_hw_cost *cost)
{
    double writes[TIMES], reads[TIMES];
    uint64_t start;
    uint32_t levels;
    int error = 0;

    for (int i = 0; i < TIMES && !error; i++) {
        start = collx_clock_ns();
        error = collx_wires_set(wires, 0, 0);
        writes[i] = (double)(collx_clock_ns() - start);
        start = collx_clock_ns();
        if (!error)
            error = collx_wires_get(wires, &levels);
        reads[i] = (double)(collx_clock_ns() - start);
    }
    if (error)
        return error;
    *cost = (struct collx_hw_cost){collx_spread_of(writes, TIMES).median,
                                   collx_spread_of(reads, TIMES).median};
    return 0;
}

bool collx_hw_open(struct collx_wires *wires, const char *spec)
{
    char why[512];
    bool good = !collx_wires_open(wires, spec, why, sizeof why);

    if (!good)
        fprintf(stderr, "collx: %s\n", why);
    return good;
}

struct spec {
    const char *text;
};

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct spec *spec = state->input;

    if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "which SPEC?");
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (spec->text)
        argp_error(state, "one SPEC at a time; '%s' is one more", arg);
    spec->text = arg;
    return 0;
}

/* As a participant may take a channel anew, this node does so for itself alone, and leaves it. */
static int free_channel(struct collx_wires *wires, const struct collx_board *board,
                        unsigned channel)
{
    uint64_t self = 1ull << board->self, mask;
    int error = collx_board_mask(wires, board, channel, &mask);

    if (error || !(mask & self)) {
        if (!error)
            printf("channel %u: %s\n", channel,
                   mask ? "other nodes', which have to free it" : "free");
        return error;
    }
    error = collx_board_claim(wires, board, channel, self);
    if (!error)
        error = collx_board_claim(wires, board, channel, 0);
    if (!error)
        error = collx_board_mask(wires, board, channel, &mask);
    if (!error)
        printf("channel %u: %s\n", channel, mask ? "could not be freed" : "is free now");
    return error ? error : mask ? -1 : 0;
}

static int free_main(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse_spec,
        .args_doc = "SPEC",
        .doc =
            "Take the channels of this node back from jobs that have died, on all nodes of these "
            "jobs.\vOnly where no job is using the board on this node: what is alive there would "
            "hang.  For a batch system's epilogue."};
    struct spec spec = {NULL};
    struct collx_wires wires;
    struct collx_board board;
    bool failed = false;

    argp_parse(&argp, argc, argv, 0, NULL, &spec);
    if (!collx_hw_open(&wires, spec.text))
        return COLLX_EXIT_BAD;
    if (!wires.spec.channels || collx_board_identify(&wires, &board)) {
        fprintf(stderr,
                "collx: %s: no board with channels answers; `collx hw test` finds out why\n",
                spec.text);
        failed = true;
    }
    for (unsigned channel = 0; !failed && channel < board.channels; channel++)
        failed = free_channel(&wires, &board, channel) != 0;
    collx_wires_close(&wires);
    return failed ? COLLX_EXIT_BAD : COLLX_EXIT_GOOD;
}

int collx_hw_main(int argc, char **argv)
{
    static const struct collx_command commands[] = {{"free", free_main},
                                                    {"probe", collx_hw_probe_main},
                                                    {"test", collx_hw_test_main},
                                                    {NULL, NULL}};
    struct collx_typed typed;

    collx_typed_find(
        &typed, commands, "collx hw", "probe, test or free?",
        "probe [SPEC...]\ntest SPEC\nfree SPEC",
        "The hardware barrier: find ports, test an installation, free channels.\v"
        "A SPEC is DRIVER:DEVICE,KEY=VALUE,..., such as ppdev:/dev/parport0,channels=4; "
        "hardware.md, beside the other documents, has them all.",
        argc, argv);
    return typed.command->main(typed.argc, typed.argv);
}
