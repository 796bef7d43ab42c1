#include "algorithms/bcast/bcast_ring.h"

#include <stdlib.h>
#include <string.h>

size_t collx_ring_space(int ranks, unsigned slots, unsigned bytes, bool lined)
{
    const size_t lines = lined ? sizeof(struct collx_numbered) : 0;

    return (slots + (size_t)ranks) * sizeof(struct collx_flag) + slots * (lines + bytes);
}

void *collx_ring_init(struct collx_ring *ring, void *memory, int ranks, unsigned slots,
                      unsigned bytes, bool lined)
{
    *ring = (struct collx_ring){.slots = slots,
                                .bytes = bytes,
                                .step = lined ? COLLX_SMALL_STEP : 1,
                                .most = COLLX_LARGE_BYTES,
                                .longest = COLLX_LARGE_BYTES,
                                .last_root = -1};
    collx_copier_init(&ring->copier);
    ring->slot = memory;
    ring->done = (struct collx_flag *)(ring->slot + slots);
    ring->lines = lined ? (struct collx_numbered *)(ring->done + ranks) : NULL;
    ring->data =
        lined ? (unsigned char *)(ring->lines + slots) : (unsigned char *)(ring->done + ranks);
    return ring->data + (size_t)slots * bytes;
}

void *collx_ring_clear(void *memory, int ranks, unsigned slots, unsigned bytes, bool lined)
{
    const size_t space = collx_ring_space(ranks, slots, bytes, lined);

    memset(memory, 0, space - (size_t)slots * bytes);
    return (char *)memory + space;
}

/* What a rank waits for, in words for a message. */
struct waiting {
    const struct collx_team *team;
    struct collx_ring *ring;
    uint64_t need; /* the root makes room by waiting until all have finished with this chunk */
    uint64_t e;    /* the chunk that is waited for */
    int root;
    int turn; /* from the last root to this one; 0: it stays the same, or nobody knows */
};

/* Most ranks wait for one that waits itself: the root, for those that are a whole ring behind. */
static bool is_missing(const void *with, int rank)
{
    const struct waiting *waiting = with;
    struct collx_ring *ring = waiting->ring;

    /* What is known is kept: to look disturbs those who post. */
    if (waiting->need > ring->all_done)
        ring->all_done = collx_ring_done(ring, waiting->team->size);
    if (waiting->need <= ring->all_done)
        return rank == waiting->root;
    /* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
    return atomic_load_explicit(&ring->done[rank].value, memory_order_relaxed) < waiting->need;
}

/* Roots take turns in many a loop of short messages: then each is as far from the one before. */
static int root_after(const void *with, int i)
{
    const struct waiting *waiting = with;
    const int size = waiting->team->size;

    return waiting->turn ? (int)((waiting->root + (int64_t)i * waiting->turn) % size) : -1;
}

/* There are chunks that it has not taken out.  In a loop of short messages the next root may be
 * among those; chunks of a long one go on coming, and who yields misses some. */
static bool is_behind(const void *with, int rank)
{
    const struct waiting *waiting = with;

    /* Relaxed, likewise. */
    return atomic_load_explicit(&waiting->ring->done[rank].value, memory_order_relaxed) + 1 <
           waiting->e;
}

void collx_ring_wait_long(struct collx_team *team, struct collx_ring *ring, unsigned at,
                          unsigned slots, uint64_t e, int root)
{
    /* Of two, there is but the root. */
    const uint64_t need = team->size > 2 ? collx_ring_last(ring, at, slots) : 0;
    const int turn = ring->last_root < 0 ? 0 : (root - ring->last_root + team->size) % team->size;
    struct waiting waiting = {team, ring, need, e, root, turn};

    collx_wait_long(team,
                    &(struct collx_wait){.flag = &ring->slot[at],
                                         .count = 1,
                                         .what = "Bcast",
                                         .missing = is_missing,
                                         .behind = ring->lines ? is_behind : NULL,
                                         .after = ring->lines ? root_after : NULL,
                                         .with = &waiting},
                    e);
}

int collx_ring_pass_gapped(struct collx_team *team, struct collx_ring *ring, int root,
                           const struct collx_layout *layout, void *buf, size_t bytes)
{
    const struct collx_ring_cut cut = collx_ring_next(ring, root, bytes);
    char *packed = malloc(cut.each);

    collx_ring_pass_chunks(team, ring, root, &cut, buf, bytes, layout, packed);
    free(packed);
    return packed ? 0 : team->ops->no_memory;
}
