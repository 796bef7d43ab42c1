/* A node's segment, and those of other nodes that it stores into: how they come about, how stores
 * get there for sure, and how they end.
 *
 * Its life: open or borrow, make, connect, deliver again and again, finish.  Every node has
 * to be done with a step before another one does the next, and to know that it went well; how they
 * tell each other is up to the user.
 */
#ifndef COLLX_SEG_LINKS_H
#define COLLX_SEG_LINKS_H

#include "algorithms/between/leaders.h"
#include "hw/segment.h"

/* The addresses of all segments: get(context, node). */
struct collx_seg_addresses {
    const struct collx_seg_address *(*get)(const void *context, int node);
    const void *context;
};

/* Between this node and another one. */
struct collx_seg_link {
    struct collx_remote *remote; /* NULL: nothing is stored there */
    /* Where each leaves the other its last flag, the user's choice: see collx_seg_links_finish().
     * COLLX_SEG_NOWHERE: it does not store there. */
    size_t farewell_at;  /* in its segment, */
    size_t farewell_own; /* and in one's own */
};
#define COLLX_SEG_NOWHERE SIZE_MAX

struct collx_seg_links {
    struct collx_team *team;
    const struct collx_seg_ops *ops;
    struct collx_net *net;
    struct collx_seg_caps caps; /* the driver's here; the user's to make them what all have */
    struct collx_export *made;
    void *local;
    size_t bytes; /* of each node's segment */
    int nodes;
    const int *leader;           /* [nodes], the user's: which ranks speak for them, for messages */
    struct collx_seg_link *link; /* [nodes] */
    struct collx_remote **to;    /* [nodes], of a delivery, */
    uint8_t *state;              /* and what a check says of them */
    uint32_t farewell;           /* what the last flags say; the user's */
    bool used;                   /* for a collective; the user's */
    bool gone;                   /* another node cannot be reached any more */
    bool lent;                   /* the net is, so its lender sees to its end */
};

/* Open the driver.  `leaders` has to stay.  0, or as the driver's open(). */
int collx_seg_links_open(struct collx_seg_links *links, const struct collx_leaders *leaders,
                         const struct collx_seg_ops *ops, char *why, size_t size);

/* The same with a driver that is open, of collx_lender_ops.segments. */
void collx_seg_links_borrow(struct collx_seg_links *links, const struct collx_leaders *leaders,
                            const struct collx_seg_ops *ops, struct collx_net *net,
                            const struct collx_seg_caps *caps);

/* Make this node's segment.  0 or -errno. */
int collx_seg_links_make(struct collx_seg_links *links, size_t bytes,
                         struct collx_seg_address *address, char *why, size_t size);

/* Connect to the segment of `node`, if that has not been done.  0 or -errno. */
int collx_seg_links_connect(struct collx_seg_links *links, int node,
                            const struct collx_seg_addresses *addresses, char *why, size_t size);

/* store(context, i) for each of nodes[count], none of them twice, until all has arrived, with MPI
 * kept going meanwhile; as collx_seg_deliver().  0, or -ENOTCONN with a message: a node is gone,
 * and this is not to be used any more. */
int collx_seg_links_deliver(struct collx_seg_links *links, const int *nodes, unsigned count,
                            void (*store)(void *context, unsigned i), void *context);

/* End what has come about.  Local, does not wait for other nodes; but they may still be in the last
 * collective, and repeat stores that have arrived here.  So this segment stays until all who store
 * to it have said, by a last flag, that they do so no more; see seg_retired.h. */
void collx_seg_links_finish(struct collx_seg_links *links);

#endif
