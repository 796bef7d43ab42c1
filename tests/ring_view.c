#include "tests/ring_view.h"

#include "algorithms/bcast_ring.h"

#include <limits.h>
#include <stdlib.h>

bool ring_view_hears(size_t bytes, bool returns)
{
    const size_t space = collx_ring_space(2, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false);
    struct collx_team team[2] = {{.rank = 0, .size = 2}, {.rank = 1, .size = 2}};
    struct collx_ring ring[2];
    void *memory = aligned_alloc(COLLX_LINE, space), *buf = calloc(1, bytes);

    if (!memory || !buf)
        abort();
    memset(memory, 0, space);
    for (int rank = 0; rank < 2; rank++)
        collx_ring_init(&ring[rank], memory, 2, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false);
    /* Rank 1 does as it is told, and does not look what that costs; rank 0 has to find out. */
    ring[1].copier.reads = UINT_MAX;
    ring[1].copier.returns = returns;
    ring[0].copier.returned = !returns;
    while (ring[0].chunk <= COLLX_LARGE_SLOTS)
        for (int rank = 0; rank < 2; rank++)
            collx_ring_pass(&team[rank], &ring[rank], 0, buf, bytes);
    free(memory);
    free(buf);
    return ring[0].copier.returned;
}

/* How many lines of chunk e are claimed. */
static int claimed(const struct collx_ring *ring, uint64_t e)
{
    const unsigned at = collx_ring_slot(ring, e);
    int count = ring->slot[at].claimed != 0;

    for (int i = 0; i < COLLX_NUMBERED_LINES; i++)
        count += ring->lines[at].line[i].claimed != 0;
    return count;
}

int ring_view_claims(size_t bytes, int apart, bool crowded)
{
    const size_t space = collx_ring_space(2, COLLX_SMALL_SLOTS, COLLX_SMALL_BYTES, true);
    struct collx_team team[2] = {{.rank = 0, .size = 2, .crowded = crowded},
                                 {.rank = 1, .size = 2, .crowded = crowded}};
    struct collx_ring ring[2];
    void *memory = aligned_alloc(COLLX_LINE, space), *buf = calloc(1, bytes);
    const uint64_t second = 1 + (uint64_t)apart, next = second + (uint64_t)apart;
    int lines;

    if (!memory || !buf)
        abort();
    memset(memory, 0, space);
    for (int rank = 0; rank < 2; rank++)
        collx_ring_init(&ring[rank], memory, 2, COLLX_SMALL_SLOTS, COLLX_SMALL_BYTES, true);
    while (ring[0].chunk < second) {
        const bool mine = ring[0].chunk == 0 || ring[0].chunk == second - 1;
        for (int i = 0; i < 2; i++) {
            const int rank = mine ? i : !i; /* the root first: nobody waits */
            collx_ring_pass(&team[rank], &ring[rank], !mine, buf, bytes);
        }
        /* Those of the second are what is looked at. */
        for (unsigned at = 0; ring[0].chunk < second && at < COLLX_SMALL_SLOTS; at++) {
            ring[0].slot[at].claimed = 0;
            for (int i = 0; i < COLLX_NUMBERED_LINES; i++)
                ring[0].lines[at].line[i].claimed = 0;
        }
    }
    lines = claimed(&ring[0], next);
    for (uint64_t e = next + 1; e < next + COLLX_SMALL_SLOTS; e++)
        if (claimed(&ring[0], e))
            lines = -1;
    free(memory);
    free(buf);
    return lines;
}
