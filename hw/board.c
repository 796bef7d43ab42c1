#include "hw/board.h"

#include <errno.h>

enum operation { IDENTIFY, MASK, ARRIVED, CLAIM };
enum { MAGIC = 0xc1 };

static uint32_t clock_wire(const struct collx_wires *wires)
{
    return 1u << (wires->spec.outs - 2);
}

static uint32_t data_wire(const struct collx_wires *wires)
{
    return 1u << (wires->spec.outs - 1);
}

static int put(struct collx_wires *wires, uint32_t mask, uint32_t levels)
{
    int error = collx_wires_set(wires, mask, levels);

    return error ? error : collx_wires_settle(wires);
}

/* Data changes while the clock is low. */
static int put_bit(struct collx_wires *wires, bool bit)
{
    uint32_t clock = clock_wire(wires), data = data_wire(wires);
    int error = put(wires, clock, 0);

    if (!error)
        error = put(wires, data, bit ? data : 0);
    return error ? error : put(wires, clock, clock);
}

/* Data that falls while the clock is high starts a frame, whatever was before.  If that is a frame
 * that a process left one bit short when it was killed, the board takes our first bit for its last;
 * that must not be one that claims a channel for a node. */
static int start(struct collx_wires *wires, enum operation operation, unsigned channel)
{
    const uint32_t data = data_wire(wires);
    int error = put_bit(wires, false);

    if (!error)
        error = put(wires, data, data);
    if (!error)
        error = put(wires, data, 0);
    for (int bit = 1; bit >= 0 && !error; bit--)
        error = put_bit(wires, operation >> bit & 1);
    for (int bit = 3; bit >= 0 && !error; bit--)
        error = put_bit(wires, channel >> bit & 1);
    return error;
}

static int ask(struct collx_wires *wires, enum operation operation, unsigned channel, unsigned bits,
               uint64_t *answer)
{
    uint32_t levels, wire = 1u << (wires->spec.ins - 1);
    int error = start(wires, operation, channel);

    *answer = 0;
    for (unsigned bit = 0; bit < bits && !error; bit++) {
        error = collx_wires_get(wires, &levels);
        if (!error && levels & wire)
            *answer |= 1ull << bit;
        if (!error)
            error = put_bit(wires, false);
    }
    return error;
}

int collx_board_identify(struct collx_wires *wires, struct collx_board *board)
{
    uint64_t answer;
    int error = ask(wires, IDENTIFY, 0, 32, &answer);

    if (error)
        return error;
    *board = (struct collx_board){
        .nodes = answer >> 8 & 0xff, .channels = answer >> 16 & 0xff, .self = answer >> 24 & 0xff};
    return (answer & 0xff) == MAGIC && board->nodes <= COLLX_WIRES_NODES &&
                   board->channels <= COLLX_WIRES_CHANNELS && board->self < board->nodes
               ? 0
               : -ENODEV;
}

int collx_board_mask(struct collx_wires *wires, const struct collx_board *board, unsigned channel,
                     uint64_t *mask)
{
    return ask(wires, MASK, channel, board->nodes, mask);
}

int collx_board_arrived(struct collx_wires *wires, const struct collx_board *board,
                        unsigned channel, uint64_t *nodes)
{
    return ask(wires, ARRIVED, channel, board->nodes, nodes);
}

int collx_board_claim(struct collx_wires *wires, const struct collx_board *board, unsigned channel,
                      uint64_t mask)
{
    int error = start(wires, CLAIM, channel);

    for (unsigned node = 0; node < board->nodes && !error; node++)
        error = put_bit(wires, mask >> node & 1);
    return error;
}
