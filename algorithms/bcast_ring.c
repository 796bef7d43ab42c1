#include "algorithms/bcast_ring.h"

static bool reached(const void *with, int i, uint64_t e)
{
    (void)i;
    return collx_ring_line_reached(with, e);
}

void collx_ring_wait_line(struct collx_team *team, const struct collx_ring_line *line, uint64_t e,
                          int root)
{
    for (int spin = team->spins; spin > 0; spin--) {
        if (collx_ring_line_reached(line, e))
            return;
        collx_poll_gap(team);
    }
    collx_wait_long(team,
                    &(struct collx_wait){.count = 1,
                                         .rank = root,
                                         .what = "Bcast",
                                         .reached = reached,
                                         .with = (void *)(uintptr_t)line},
                    e);
}
