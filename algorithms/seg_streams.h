/* Messages between nodes through segments: from each node to each other one leads a stream of
 * chunks.
 *
 * A node's segment has an area for each other node, all of whose lines that one alone writes to:
 *
 *     consumed   how many chunks of the opposite stream it has taken out, now and then
 *     farewell   see seg_retired.h
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

#include "algorithms/leaders.h"
#include "hw/segment.h"

/* Both directions between this node and another one. */
struct collx_seg_stream {
    struct collx_remote *remote; /* NULL: this node itself */
    uint32_t sent, arrived;      /* chunks stored into its ring, and those that need no more care */
    uint32_t taken, told; /* chunks taken out of its ring here, and how many of them it knows */
    /* During one transfer. */
    const struct collx_message *out, *in; /* NULL: none */
    uint32_t out_first, in_first;         /* number of the message's first chunk */
    uint32_t out_end, in_end;             /* and of the one after its last */
    bool listed;
};

struct collx_seg_streams {
    struct collx_team *team;
    const struct collx_seg_ops *ops;
    struct collx_net *net;
    struct collx_seg_caps caps;
    struct collx_export *made;
    void *local;
    size_t line, data; /* bytes from line to line, and of data in one */
    size_t lines;      /* of a slot */
    size_t bytes;
    bool used, gone;
    bool lent;     /* the net is, so its lender sees to its end */
    bool data_now; /* what a delivery stores, where that is not both at once: data, or */
    bool flag_now; /* flags */
    int nodes, own;
    const int *leader;               /* [nodes]: which ranks speak for them */
    struct collx_seg_stream *stream; /* [nodes] */
    struct collx_remote **to;        /* [nodes], of a delivery; */
    int *to_node;                    /* who they are */
    uint8_t *state;
    unsigned repeated;    /* checks of this delivery */
    unsigned char *image; /* a line, to work in */
};

/* Its life is that of a struct collx_seg_runner: open, make, connect, transfer again and again,
 * finish, and each node is done with a step before another does the next. */

/* `leaders` has to stay.  As the driver's open(); COLLX_EUNFIT also where lines have no room for
 * data. */
int collx_seg_streams_open(struct collx_seg_streams *streams, const struct collx_leaders *leaders,
                           const struct collx_seg_ops *ops, char *why, size_t size);

/* The same with a driver that is open, of collx_mpi_ops.segments, for nodes that make segments of
 * collx_seg_streams_space() bytes at most. */
int collx_seg_streams_borrow(struct collx_seg_streams *streams, const struct collx_leaders *leaders,
                             const struct collx_seg_ops *ops, struct collx_net *net,
                             const struct collx_seg_caps *caps, char *why, size_t size);
size_t collx_seg_streams_space(int nodes);

/* `line`, `data`: the largest and the smallest line of any node.  0 or -errno. */
int collx_seg_streams_make(struct collx_seg_streams *streams, size_t line, size_t data,
                           struct collx_seg_address *address, char *why, size_t size);

/* 0 or -errno. */
int collx_seg_streams_connect(struct collx_seg_streams *streams,
                              const struct collx_seg_address *(*address)(const void *context,
                                                                         int node),
                              const void *context, char *why, size_t size);

/* As collx_mpi_ops.transfer, but that `rank` is a node, and that there is at most one message to
 * and one from each.  What is sent has arrived when it returns, though nobody may have taken it
 * out. 0, or -ENOTCONN: a node is gone; then it cannot be used any more.  `what`: the collective's
 * name, for messages. */
int collx_seg_streams_transfer(struct collx_seg_streams *streams,
                               const struct collx_message *messages, int count, const char *what);

/* Local, does not wait for other nodes. */
void collx_seg_streams_finish(struct collx_seg_streams *streams);

#endif
