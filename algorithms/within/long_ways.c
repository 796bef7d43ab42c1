#include "algorithms/within/long_ways.h"

#include "hw/cma.h"
#include "hw/shm.h"

const char *const collx_single_words[] = {"auto", "never", "always", NULL};

void collx_long_ways_init(struct collx_long_ways *ways, struct collx_team *team, void *rings,
                          void *memory, const struct collx_long_ways_setup *setup)
{
    const bool always = setup->wanted == COLLX_SINGLE_ALWAYS || setup->past == COLLX_SINGLE_ALWAYS;

    *ways = (struct collx_long_ways){.wanted = setup->wanted, .past = setup->past, .rings = rings};
    collx_meeting_init(&ways->meeting, memory);
    collx_single_init(&ways->single, team, (char *)memory + collx_meeting_space(team->size),
                      setup->name);
    collx_tuner_init(&ways->tuner, team, &ways->meeting,
                     always ? COLLX_SINGLE_LEAST : COLLX_SINGLE_TRIED, setup->list, setup->name);
}

/* Whether every rank can read every other's memory: tried.  The same on all ranks. */
static bool possible(struct collx_long_ways *ways)
{
    struct collx_single *single = &ways->single;
    struct collx_team *team = single->team;
    /* Each has a word that no other has; who reads it has reached the right process. */
    const uint64_t own = (uint64_t)single->pid << 32 | (uint32_t)team->rank;
    bool all = true;

    collx_single_open(single, &own, NULL);
    for (int i = 1; i < team->size; i++) {
        int rank = (team->rank + i) % team->size;
        const struct collx_view *view = collx_single_view(single, rank);
        uint64_t word = 0;
        if (collx_cma_read((int)view->pid, &word, view->send, sizeof word) ||
            word != ((uint64_t)view->pid << 32 | (uint32_t)rank))
            all = false;
    }
    collx_meet(team, &ways->meeting, &all, sizeof all, single->name);
    for (int rank = 0; rank < team->size; rank++)
        all = all && *(const bool *)collx_meeting_word(&ways->meeting, rank);
    return all;
}

/* The ways to choose from. */
static unsigned allowed(struct collx_long_ways *ways)
{
    const unsigned through = 1 << COLLX_WAY_SEGMENT, past = 1 << COLLX_WAY_PAST;
    const bool can = ways->wanted != COLLX_SINGLE_NEVER && possible(ways);
    unsigned copies = ~(through | past);

    for (unsigned way = 0; ways->single.team->crowded && ways->tuner.way[way].say; way++)
        if (ways->tuner.way[way].uncrowded)
            copies &= ~(1u << way);
    if (can && ways->wanted == COLLX_SINGLE_ALWAYS)
        return copies;
    if (ways->past == COLLX_SINGLE_ALWAYS)
        return past;
    return through | (ways->past == COLLX_SINGLE_NEVER ? 0 : past) | (can ? copies : 0);
}

unsigned collx_long_ways_begin(struct collx_long_ways *ways, size_t bytes)
{
    if (__builtin_expect(!ways->tried, 0)) {
        /* What is timed must not be the first use of its memory. */
        collx_shm_touch(ways->rings, (size_t)((unsigned char *)ways->single.part - ways->rings));
        ways->tuner.allowed &= allowed(ways);
        ways->tried = true;
    }
    return collx_tuner_begin(&ways->tuner, bytes);
}
