#include "tests/ring_view.h"

#include "algorithms/bcast_ring.h"

static struct collx_ring ring_at(void *memory)
{
    struct collx_ring ring;

    collx_ring_init(&ring, memory, 2, COLLX_SMALL_SLOTS, COLLX_SMALL_BYTES, true);
    return ring;
}

size_t ring_view_space(void)
{
    return collx_ring_space(2, COLLX_SMALL_SLOTS, COLLX_SMALL_BYTES, true);
}

void ring_view_begin(struct collx_team *team, void *memory, const unsigned char *from)
{
    struct collx_ring ring = ring_at(memory);

    memcpy(ring.slot[1].payload, from, COLLX_INLINE);
    collx_flag_post(team, &ring.slot[1], 1);
}

int ring_view_pass(struct collx_team *team, void *memory, int root, unsigned char *buf,
                   size_t bytes)
{
    struct collx_ring ring = ring_at(memory);

    if (!collx_ring_lined(team, &ring, bytes))
        return -1;
    collx_ring_pass(team, &ring, root, (char *)buf, bytes);
    return 0;
}
