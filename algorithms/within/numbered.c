#include "algorithms/within/numbered.h"

static bool reached(const void *with, int i, uint64_t e)
{
    (void)i;
    return collx_numbered_reached(with, e);
}

void collx_numbered_wait(struct collx_team *team, const struct collx_numbered_line *line,
                         uint64_t e, int rank, const char *what)
{
    for (int spin = team->spins; spin > 0; spin--) {
        if (collx_numbered_reached(line, e))
            return;
        collx_poll_gap(team);
    }
    collx_wait_long(team,
                    &(struct collx_wait){.count = 1,
                                         .rank = rank,
                                         .what = what,
                                         .reached = reached,
                                         .with = (void *)(uintptr_t)line},
                    e);
}
