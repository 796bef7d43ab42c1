#include "algorithms/bcast/bcast_nodes.h"

#include "algorithms/bcast/bcast.h"
#include "algorithms/within/copy.h"
#include "algorithms/within/mates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4, PIECE = 16384 };
/* Release e comes when all have arrived at e - SLOTS, and have looked at its result. */
_Static_assert(SLOTS <= (int)COLLX_MATES_RESULTS,
               "a result is not overwritten before all have seen it");

struct bcast {
    struct collx_mates mates;
    struct collx_crossroads crossroads;
    struct collx_fanout fanout;
    struct collx_copier copier;
    unsigned char *slots;          /* shared by the node */
    int *node;                     /* [size], of each rank */
    int *child;                    /* [nodes], in the call that is under way */
    struct collx_message *message; /* [nodes] */
    int own;
    uint64_t piece; /* the last one, so far */
};

/* A call. */
struct way {
    int writer;   /* of the pieces on this node: an index */
    int by;       /* that rank */
    int parent;   /* a node; -1: the root is on this one */
    int children; /* none where one is no leader */
    int error;
};

static struct way find_way(struct bcast *bcast, int root)
{
    const struct collx_mates *mates = &bcast->mates;
    const int nodes = bcast->fanout.nodes, first = bcast->node[root];
    const int place = (bcast->own - first + nodes) % nodes;
    int parent = collx_fanout_parent(&bcast->fanout, place);
    struct way way = {.parent = parent < 0 ? -1 : (parent + first) % nodes};

    while (way.parent < 0 && mates->rank[way.writer] != root)
        way.writer++;
    way.by = mates->rank[way.writer];
    if (mates->index == 0)
        way.children = collx_fanout_children(&bcast->fanout, place, bcast->child);
    for (int i = 0; i < way.children; i++)
        bcast->child[i] = (bcast->child[i] + first) % nodes;
    return way;
}

/* Of a leader: get a piece from its parent (NULL: there is none), and pass another one on (NULL).
 */
static void cross(struct bcast *bcast, struct way *way, void *in, size_t in_bytes, void *out,
                  size_t out_bytes)
{
    int count = 0;

    if (in && way->parent >= 0)
        bcast->message[count++] = (struct collx_message){way->parent, false, in, in_bytes};
    for (int i = 0; i < way->children && out; i++)
        bcast->message[count++] = (struct collx_message){bcast->child[i], true, out, out_bytes};
    if (!count)
        return;
    int error = collx_crossroads_transfer(&bcast->crossroads, bcast->message, count, "Bcast");
    if (error)
        collx_mates_tell(&bcast->mates, error);
    way->error = way->error ? way->error : error;
}

/* `at`: of this piece in one's own buffer; NULL: there is no memory for it. */
static void write_piece(struct bcast *bcast, struct way *way, uint64_t e, unsigned char *slot,
                        unsigned char *at, size_t bytes)
{
    if (way->parent < 0 && slot != at) {
        if (at)
            collx_copy_in(&bcast->copier, slot, at, bytes);
        else
            memset(slot, 0, bytes);
    }
    /* A leader passes on what has been released: what goes wrong then all hear with a later piece.
     */
    if (!way->error)
        way->error = collx_mates_told(&bcast->mates);
    collx_mates_release(&bcast->mates, e, way->error);
    if (way->parent >= 0 && at && slot != at)
        memcpy(at, slot, bytes);
}

static void read_piece(struct bcast *bcast, struct way *way, uint64_t e, const unsigned char *slot,
                       unsigned char *at, size_t bytes)
{
    int error = collx_mates_await_release(&bcast->mates, e, way->by);

    way->error = way->error ? way->error : error;
    if (at)
        collx_copy_out(&bcast->copier, at, slot, bytes);
}

/* A collx_bcast_bytes_fn. */
static int run_bytes(void *state, int root, void *buf, size_t bytes)
{
    struct bcast *bcast = state;
    struct collx_mates *mates = &bcast->mates;
    struct way way = find_way(bcast, root);
    const bool writes = mates->index == way.writer, alone = mates->ranks == 1;
    unsigned char *last = NULL; /* the piece that is still to be passed on */
    size_t last_bytes = 0;

    for (size_t first = 0; first < bytes; first += PIECE) {
        const uint64_t e = ++bcast->piece;
        const size_t here = bytes - first < PIECE ? bytes - first : PIECE;
        unsigned char *at = buf ? (unsigned char *)buf + first : NULL;
        /* Nobody looks at the ring of a node that has one rank. */
        unsigned char *slot = alone && at ? at : bcast->slots + e % SLOTS * PIECE;

        if (writes && e > SLOTS)
            collx_mates_await(mates, e - SLOTS);
        if (writes)
            cross(bcast, &way, slot, here, last, last_bytes);
        if (writes)
            write_piece(bcast, &way, e, slot, at, here);
        else
            read_piece(bcast, &way, e, slot, at, here);
        if (writes && way.parent >= 0) {
            last = slot;
            last_bytes = here;
        } else {
            cross(bcast, &way, NULL, 0, slot, here);
        }
        collx_mates_arrive(mates, last ? e - 1 : e);
    }
    if (last) {
        cross(bcast, &way, NULL, 0, last, last_bytes);
        collx_mates_arrive(mates, bcast->piece);
    }
    return way.error;
}

static int run(struct collx_slot *slot, struct collx_call *call)
{
    struct bcast *bcast = slot->state;

    if (bcast->mates.team->size == 1 || call->bytes == 0)
        return 0;
    if (!call->contiguous)
        return collx_bcast_packed(bcast->mates.team, call, run_bytes, bcast);
    return run_bytes(bcast, call->root, call->rbuf, call->bytes);
}

size_t collx_bcast_nodes_space(const struct collx_facts *facts, const struct collx_args *args)
{
    (void)args;
    return collx_mates_space(facts->node_ranks_max) + SLOTS * PIECE;
}

/* Any rank may have it as one element, so only the bytes may decide. */
bool collx_bcast_nodes_takes(const void *state, const struct collx_call *call)
{
    const struct bcast *bcast = state;
    const size_t most = bcast->mates.team->ops->pack_most;

    return !most || call->bytes <= most;
}

void collx_bcast_nodes_detach(void *state)
{
    struct bcast *bcast = state;

    collx_crossroads_finish(&bcast->crossroads);
    collx_mates_finish(&bcast->mates);
    free(bcast->node);
    free(bcast->child);
    free(bcast->message);
    free(bcast);
}

int collx_bcast_nodes_attach(struct collx_team *team, const struct collx_fanout *fanout,
                             int64_t over, void *memory, struct collx_slot *slot)
{
    struct bcast *bcast = calloc(1, sizeof *bcast);
    const size_t nodes = (size_t)collx_leaders_count(team);

    if (!bcast)
        return -ENOMEM;
    bcast->fanout = *fanout;
    bcast->own = collx_team_node(team, team->rank);
    bcast->node = calloc((size_t)team->size, sizeof *bcast->node);
    bcast->child = calloc(nodes, sizeof *bcast->child);
    bcast->message = calloc(nodes + 1, sizeof *bcast->message);
    collx_copier_init(&bcast->copier);
    int error = bcast->node && bcast->child && bcast->message ? 0 : -ENOMEM;
    if (!error)
        error = collx_mates_init(&bcast->mates, team, "Bcast", memory);
    if (!error)
        error = collx_crossroads_init_messages(&bcast->crossroads, team, over, (int)nodes + 1);
    if (error) {
        collx_bcast_nodes_detach(bcast);
        return error;
    }
    for (int rank = 0; rank < team->size; rank++)
        bcast->node[rank] = collx_team_node(team, rank);
    bcast->slots = (unsigned char *)memory + collx_mates_space(bcast->mates.ranks);
    slot->state = bcast;
    slot->run = run;
    return 0;
}

int collx_bcast_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why,
                              size_t size)
{
    struct bcast *bcast = slot->state;

    (void)team;
    return collx_crossroads_connect(&bcast->crossroads, why, size);
}

void collx_bcast_nodes_describe(const void *state, char *line, size_t size)
{
    const struct bcast *bcast = state;
    char way[COLLX_CROSSROADS_TEXT];

    if (bcast->fanout.nodes == 1)
        snprintf(line, size, "through memory that the ranks share");
    else if (bcast->fanout.rounds)
        snprintf(line, size, "each leader passes on to %d other%s a round; %s", bcast->fanout.n - 1,
                 bcast->fanout.n == 2 ? "" : "s",
                 collx_crossroads_describe(&bcast->crossroads, way, sizeof way));
    else
        snprintf(line, size, "each leader passes on to up to %d children; %s", bcast->fanout.n,
                 collx_crossroads_describe(&bcast->crossroads, way, sizeof way));
}
