/* What the leaders of an Allreduce between nodes do with a chunk. */
#ifndef COLLX_ALLREDUCE_COMBINER_H
#define COLLX_ALLREDUCE_COMBINER_H

#include "algorithms/allreduce/allreduce_nodes.h"

enum {
    COLLX_CHUNK_MOST = 32768,      /* of one rank */
    COLLX_CHUNKS_TOGETHER = 65536, /* of all ranks, where all contributions go to one leader */
};

struct collx_combiner {
    struct collx_team *team;
    struct collx_crossroads *crossroads;
    struct collx_reduction reduction;
    int nodes, own;
    int *node, *index;             /* [size]: of each rank, and which of its node's ranks it is */
    int *ranks;                    /* [nodes]: how many are there */
    int *below;                    /* [nodes]: how many are in its part of the tree */
    int *place;                    /* [nodes]: where a node's contributions lie, in ranks */
    struct collx_message *message; /* [2 nodes] */
    unsigned char *operands;       /* contributions of all ranks */
    unsigned char *outgoing;       /* of this node's ranks, sorted by where they go */
    unsigned char *result;         /* of a slice */
    unsigned char **from;          /* [size] */
};

/* One chunk. */
struct collx_contribution {
    struct collx_call *call;
    int64_t count;                   /* elements */
    const unsigned char *const *own; /* of each rank of this node, packed */
    unsigned char *out; /* the result, packed; may be own[0] where that is the only one */
};

/* Messages that a leader has to do with at once, at most. */
int collx_combiner_messages(const struct collx_team *team);

/* Where `leads` is false there is nothing for this rank to do.  0 or -ENOMEM; in both cases it is
 * to be finished. */
int collx_combiner_init(struct collx_combiner *combiner, struct collx_team *team,
                        struct collx_crossroads *crossroads,
                        const struct collx_reduction *reduction, bool leads);
void collx_combiner_finish(struct collx_combiner *combiner);

/* Elements of a chunk of such a call, at most. */
int64_t collx_combiner_chunk(const struct collx_combiner *combiner, const struct collx_call *call);

/* Whether the operation of such a call gets all its elements at once. */
bool collx_combiner_gives_whole(const struct collx_combiner *combiner,
                                const struct collx_call *call);

/* Collective over leaders.  0 or an MPI error. */
int collx_combiner_combine(struct collx_combiner *combiner,
                           const struct collx_contribution *contribution);

#endif
