/* Barrier over flags in shared memory: dissemination with a wide radix.
 *
 * Each rank has one flag, alone on its line, that tells how far it has come.  Up to RADIX ranks
 * need one round; everybody writes one line and reads all others.  Beyond that, in round k a rank
 * waits for the RADIX-1 ranks j*RADIX^k before it, j = 1 …, which then have heard from the RADIX^k
 * ranks before them:
 *
 *   1. post that I have finished k rounds of this barrier (k = 0: that I have arrived);
 *   2. wait until the ranks that I listen to in round k have finished k rounds too;
 *   3. next round.
 *
 * One flag serves all rounds, since it counts rounds and only grows: a listener asks for "at
 * least". Dissemination: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization",
 * 1988; with a radix: Hoefler et al., "Fast Barrier Synchronization for InfiniBand", 2006,
 * section 3.
 */
#include "algorithms/shm.h"

#include <errno.h>
#include <stdlib.h>

enum { RADIX = 8 };

struct barrier {
    struct collx_team *team;
    struct collx_flag *flags; /* one a rank */
    struct collx_flag *own, *peer;
    uint64_t reached; /* what our own flag says */
};

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    (void)slot, (void)call;
    return 0;
}

static int run_pair(struct collx_slot *slot, struct collx_call *call)
{
    struct barrier *barrier = slot->state;
    uint64_t round = ++barrier->reached;

    (void)call;
    collx_flag_post(barrier->team, barrier->own, round);
    collx_wait_for(barrier->team, barrier->peer, round, !barrier->team->rank, "Barrier");
    return 0;
}

static int run_flat(struct collx_slot *slot, struct collx_call *call)
{
    struct barrier *barrier = slot->state;
    uint64_t round = ++barrier->reached;

    (void)call;
    collx_flag_post(barrier->team, barrier->own, round);
    collx_wait_others(barrier->team, barrier->flags, sizeof *barrier->flags, round, "Barrier");
    return 0;
}

static int run_rounds(struct collx_slot *slot, struct collx_call *call)
{
    struct barrier *barrier = slot->state;
    const int rank = barrier->team->rank, size = barrier->team->size;

    (void)call;
    for (long step = 1; step < size; step *= RADIX) {
        uint64_t round = ++barrier->reached;

        collx_flag_post(barrier->team, barrier->own, round); /* 1 */
        for (int j = 1; j < RADIX && j * step < size; j++) { /* 2 */
            int from = (int)((rank + size - j * step) % size);
            collx_wait_for(barrier->team, &barrier->flags[from], round, from, "Barrier");
        }
    } /* 3 */
    return 0;
}

static int collx_barrier_shm_query(const struct collx_facts *facts, const struct collx_args *args,
                                   char *why, size_t size)
{
    (void)args;
    return collx_query_one_node(facts, why, size);
}

static size_t collx_barrier_shm_space(const struct collx_facts *facts,
                                      const struct collx_args *args)
{
    (void)args;
    return (size_t)facts->ranks * sizeof(struct collx_flag);
}

static int collx_barrier_shm_attach(struct collx_team *team, const struct collx_args *args,
                                    void *memory, struct collx_slot *slot)
{
    struct barrier *barrier = calloc(1, sizeof *barrier);

    (void)args;
    if (!barrier)
        return -ENOMEM;
    barrier->team = team;
    barrier->flags = memory;
    barrier->own = &barrier->flags[team->rank];
    barrier->peer = &barrier->flags[team->size == 2 ? !team->rank : team->rank];
    slot->state = barrier;
    slot->run = team->size == 1       ? run_alone
                : team->size == 2     ? run_pair
                : team->size <= RADIX ? run_flat
                                      : run_rounds;
    return 0;
}

const struct collx_algorithm collx_barrier_shm = {
    .name = "shm",
    .help = "flags in shared memory, dissemination of radix 8",
    .needs = "all ranks on one node",
    .kind = COLLX_BARRIER,
    .query = collx_barrier_shm_query,
    .space = collx_barrier_shm_space,
    .attach = collx_barrier_shm_attach,
    .detach = free,
};
