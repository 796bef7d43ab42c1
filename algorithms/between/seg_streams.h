/* Messages between nodes through segments: from each node to each other one leads a stream of
 * chunks.
 *
 * A node's segment has an area for each other node, all of whose lines that one alone writes to:
 *
 *     consumed   how many chunks of the opposite stream it has taken out, now and then
 *     farewell   see seg_links.h
 *     slots      a ring; chunk number i of the stream lies in slot i mod SLOTS
 *
 * Each line of a slot ends with a flag, the chunk's number, and has its data right before it; so
 * one check covers a round's chunks to all nodes, with their flags, and a line that has arrived
 * needs nothing else.  Where lines do not arrive whole (no COLLX_SEG_WHOLE_LINES), a slot is one
 * long line, and it takes two checks: one for the data, then one for the flag.  A slot is
 * written again when the reader has said that it took the chunk out. A repetition of a store that
 * had arrived comes before that: nobody goes on before it is over.
 */
#ifndef COLLX_SEG_STREAMS_H
#define COLLX_SEG_STREAMS_H

#include "algorithms/between/seg_links.h"

/* Both directions between this node and another one. */
struct collx_seg_stream {
    uint32_t sent, arrived; /* chunks stored into its ring, and those that need no more care */
    uint32_t taken, told;   /* chunks taken out of its ring here, and how many of them it knows */
    /* During one transfer. */
    const struct collx_message *out, *in; /* NULL: none */
    uint32_t out_first, in_first;         /* number of the message's first chunk */
    uint32_t out_end, in_end;             /* and of the one after its last */
    bool listed;
};

struct collx_seg_streams {
    struct collx_seg_links *links;
    int own;
    size_t line, data; /* bytes from line to line, and of data in one */
    size_t lines;      /* of a slot */
    bool data_now;     /* what a delivery stores, where that is not both at once: data, or */
    bool flag_now;     /* flags */
    struct collx_seg_stream *stream; /* [nodes] */
    int *to;                         /* [nodes], of a delivery */
    unsigned char *image;            /* a line, to work in */
};

/* Whether streams can go over these links, which are open: 0, or COLLX_EUNFIT and why. */
int collx_seg_streams_fit(const struct collx_seg_links *links, char *why, size_t size);

/* What no segment of theirs is longer than where the driver is lent. */
size_t collx_seg_streams_most(int nodes);

/* Zero streams, and say how they lie in a segment.  `links` have to stay, and their caps are what
 * all nodes have; `own`: which of the nodes this one is; `least`: the smallest line of any.
 * Returns the bytes of a node's segment. */
size_t collx_seg_streams_lay_out(struct collx_seg_streams *streams, struct collx_seg_links *links,
                                 int own, size_t least);

/* Connect to all other nodes; `links` are made.  0 or -errno. */
int collx_seg_streams_connect(struct collx_seg_streams *streams,
                              const struct collx_seg_addresses *addresses, char *why, size_t size);

/* As collx_lender_ops.transfer, but that `rank` is a node, and that there is at most one message to
 * and one from each.  What is sent has arrived when it returns, though nobody may have taken it
 * out. 0, or -ENOTCONN: a node is gone; then it cannot be used any more.  `what`: the collective's
 * name, for messages. */
int collx_seg_streams_transfer(struct collx_seg_streams *streams,
                               const struct collx_message *messages, int count, const char *what);

/* Also if nothing was laid out, if it is zeroed. */
void collx_seg_streams_finish(struct collx_seg_streams *streams);

#endif
