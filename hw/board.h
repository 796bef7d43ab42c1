/* What can be asked of a board whose channels are chosen, over the wires that configure it: the
 * frames of hw/fpga/collx_config.v.  All take some hundred port accesses.  0 or -errno. */
#ifndef COLLX_BOARD_H
#define COLLX_BOARD_H

#include "hw/wires.h"

struct collx_board {
    unsigned nodes, channels, self;
};

/* -ENODEV: what answers is not such a board. */
int collx_board_identify(struct collx_wires *wires, struct collx_board *board);
/* The participants of a channel, 0 if it is free, by bits. */
int collx_board_mask(struct collx_wires *wires, const struct collx_board *board, unsigned channel,
                     uint64_t *mask);
/* Which nodes, participants or not, have written the level that is not the channel's. */
int collx_board_arrived(struct collx_wires *wires, const struct collx_board *board,
                        unsigned channel, uint64_t *nodes);
/* Ask for the channel; collx_board_mask() tells what came of it.  A mask without this node leaves
 * the channel. */
int collx_board_claim(struct collx_wires *wires, const struct collx_board *board, unsigned channel,
                      uint64_t mask);

#endif
