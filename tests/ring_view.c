#include "tests/ring_view.h"

#include "algorithms/bcast/bcast_ring.h"

#include <limits.h>
#include <stdlib.h>

/* Two ranks, each with its view of one ring; in one thread. */
struct pair {
    struct collx_team team[2];
    struct collx_ring ring[2];
    void *memory, *buf;
    size_t bytes;
};

/* For messages of `bytes` bytes. */
static void pair_init(struct pair *pair, unsigned slots, unsigned most, bool lined, size_t bytes,
                      bool swings)
{
    const size_t space = collx_ring_space(2, slots, most, lined);

    *pair = (struct pair){
        .memory = aligned_alloc(COLLX_LINE, space), .buf = calloc(1, bytes), .bytes = bytes};
    if (!pair->memory || !pair->buf)
        abort();
    memset(pair->memory, 0, space);
    for (int rank = 0; rank < 2; rank++) {
        pair->team[rank] = (struct collx_team){.rank = rank, .size = 2};
        collx_ring_init(&pair->ring[rank], pair->memory, 2, slots, most, lined);
        pair->ring[rank].swings = swings;
    }
}

static void pair_finish(struct pair *pair)
{
    free(pair->memory);
    free(pair->buf);
}

/* One message; the root goes first, so nobody waits. */
static void pair_pass(struct pair *pair, int root)
{
    for (int i = 0; i < 2; i++) {
        const int rank = i ? !root : root;
        collx_ring_pass(&pair->team[rank], &pair->ring[rank], root, pair->buf, pair->bytes);
    }
}

bool ring_view_hears(size_t bytes, bool returns)
{
    struct pair pair;

    pair_init(&pair, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false, bytes, false);
    /* Rank 1 does as it is told, and does not look what that costs; rank 0 has to find out. */
    pair.ring[1].copier.ways.returnable = true;
    pair.ring[1].copier.reads = UINT_MAX;
    pair.ring[1].copier.returns = returns;
    pair.ring[0].copier.returned = !returns;
    while (pair.ring[0].chunk <= COLLX_LARGE_SLOTS)
        pair_pass(&pair, 0);
    pair_finish(&pair);
    return pair.ring[0].copier.returned;
}

int ring_view_round(size_t bytes)
{
    struct pair pair;
    int count = 0;

    pair_init(&pair, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true, bytes, false);
    do {
        pair_pass(&pair, 0);
        count++;
    } while (!pair.ring[0].all_done);
    pair_finish(&pair);
    return count - 1;
}

/* How many lines of the slot are claimed; they are no more then. */
static int take_claims(struct collx_ring *ring, unsigned at)
{
    int count = (int)atomic_exchange(&ring->slot[at].claimed, 0);

    for (int i = 0; ring->lines && i < COLLX_NUMBERED_LINES; i++)
        count += (int)atomic_exchange(&ring->lines[at].line[i].claimed, 0);
    return count;
}

/* Likewise of all slots. */
static int take_all_claims(struct collx_ring *ring)
{
    int count = 0;

    for (unsigned at = 0; at < ring->slots; at++)
        count += take_claims(ring, at);
    return count;
}

int ring_view_claims(size_t bytes, int apart, bool crowded, bool swings)
{
    struct pair pair;
    struct collx_ring *ring = &pair.ring[0];
    uint64_t first;
    int lines;

    pair_init(&pair, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true, bytes, swings);
    pair.team[0].crowded = pair.team[1].crowded = crowded;
    pair_pass(&pair, 0);
    first = ring->rooted;
    for (int i = 1; i < apart; i++)
        pair_pass(&pair, 1);
    take_all_claims(ring);
    pair_pass(&pair, 0);
    lines = take_claims(ring, collx_ring_slot(ring, ring->rooted + ring->rooted - first));
    if (take_all_claims(ring))
        lines = -1;
    pair_finish(&pair);
    return lines;
}

int ring_view_claims_ahead(size_t bytes, int more, bool lined)
{
    enum { MESSAGES = 40 };
    struct pair pair;
    int lines;

    if (lined)
        pair_init(&pair, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true, bytes, false);
    else
        pair_init(&pair, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false, bytes, false);
    /* Whatever CPU this is, its lines have to be fetched. */
    for (int rank = 0; rank < 2; rank++)
        pair.ring[rank].copier.ways.whole_lines = pair.ring[rank].copier.ways.returnable = false;
    for (int i = 0; i < MESSAGES; i++) {
        if (i == MESSAGES - 1)
            take_all_claims(&pair.ring[0]);
        /* A copy that was disturbed must not send the next ones past the caches. */
        pair.ring[0].copier.slow = 0;
        collx_ring_pass(&pair.team[0], &pair.ring[0], 0, pair.buf, bytes);
        if (i >= more)
            collx_ring_pass(&pair.team[1], &pair.ring[1], 0, pair.buf, bytes);
    }
    lines = take_all_claims(&pair.ring[0]);
    pair_finish(&pair);
    return lines;
}

void ring_view_swing(const int *roots, int count, size_t bytes, bool small,
                     struct ring_view_message *messages)
{
    struct pair pair;
    struct collx_ring *ring = &pair.ring[1];

    if (small)
        pair_init(&pair, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true, bytes, true);
    else
        pair_init(&pair, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false, bytes, true);
    ring->copier.ways.returnable = ring->copier.returns = true;
    for (int rank = 0; rank < 2; rank++) /* they come so fast that they are not worth it */
        pair.ring[rank].copier.ways.whole_lines = false;
    for (int i = 0; i < count; i++) {
        const uint64_t before = ring->place;
        ring->copier.reads = UINT_MAX;
        pair_pass(&pair, roots[i]);
        messages[i].slot = collx_ring_slot(ring, roots[i] ? ring->place : before);
        messages[i].returned = ring->copier.reads < UINT_MAX;
        messages[i].lined =
            small && collx_numbered_reached(&ring->lines[messages[i].slot].line[0], ring->chunk);
    }
    pair_finish(&pair);
}

struct ring_view_pieces ring_view_cut(unsigned most, size_t before, size_t bytes)
{
    struct pair pair;
    struct collx_ring *ring = &pair.ring[0];

    pair_init(&pair, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false, 1, false);
    ring->most = most;
    ring->longest = COLLX_LONGEST * most;
    collx_ring_next(ring, 0, before);
    const struct collx_ring_cut cut = collx_ring_next(ring, 0, bytes);
    const unsigned first = collx_ring_slot(ring, cut.first);
    pair_finish(&pair);
    return (struct ring_view_pieces){cut.each, (unsigned)cut.chunks, cut.slots, first};
}

void ring_view_copy(void *to, const void *from, size_t bytes)
{
    if (bytes <= COLLX_INLINE)
        collx_copy_small(to, from, bytes);
    else
        collx_copy_short(to, from, bytes);
}
