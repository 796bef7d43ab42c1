#include "tests/numbered_view.h"

#include "algorithms/allreduce/allreduce_shares.h"
#include "algorithms/bcast/bcast_ring.h"

/* Release: as in collx_numbered_put(). */
static void set_second(struct collx_numbered *lines, bool there)
{
    atomic_store_explicit(&lines->line[0].value, there, memory_order_release);
}

static struct collx_ring ring_at(void *memory)
{
    struct collx_ring ring;

    collx_ring_init(&ring, memory, 2, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true);
    return ring;
}

static size_t ring_space(void)
{
    return collx_ring_space(2, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true);
}

static void ring_set_second(struct collx_team *team, void *memory, bool there)
{
    struct collx_ring ring = ring_at(memory);

    (void)team;
    set_second(&ring.lines[collx_ring_slot(&ring, 0)], there);
}

static int ring_pass(struct collx_team *team, void *memory, unsigned char *buf, size_t bytes)
{
    struct collx_ring ring = ring_at(memory);

    if (!collx_ring_lined(team, &ring, bytes))
        return -1;
    collx_ring_pass(team, &ring, 0, (char *)buf, bytes);
    return 0;
}

static const struct collx_groups_plan flat = {.groups = 1};

static size_t shares_space(void)
{
    return collx_shares_space(&flat, 2, 1);
}

static void shares_set_second(struct collx_team *team, void *memory, bool there)
{
    struct collx_shares shares;

    if (!collx_shares_init(&shares, &flat, team, memory))
        set_second(&collx_share_of(&shares, 0, 1)->more, there);
    collx_shares_finish(&shares);
}

static int shares_pass(struct collx_team *team, void *memory, unsigned char *buf, size_t bytes)
{
    struct collx_shares shares;
    int error = collx_shares_init(&shares, &flat, team, memory);

    if (!error && !collx_numbered_suits(team, bytes))
        error = -1;
    if (!error && team->rank == 0)
        collx_shares_put_numbered(team, &shares, 1, buf, bytes);
    else if (!error)
        collx_shares_get_numbered(team, &shares, 0, 1, buf, bytes);
    collx_shares_finish(&shares);
    return error;
}

const struct numbered_view numbered_views[NUMBERED_VIEWS] = {
    {"MPI_Bcast", ring_space, ring_set_second, ring_pass},
    {"MPI_Allreduce", shares_space, shares_set_second, shares_pass},
};
