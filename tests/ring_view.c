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
