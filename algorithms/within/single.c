#include "algorithms/within/single.h"

#include "algorithms/within/copy_ways.h"
#include "hw/cma.h"

#include <string.h>
#include <unistd.h>

void collx_single_init(struct collx_single *single, struct collx_team *team, void *memory,
                       const char *name)
{
    *single = (struct collx_single){.team = team, .part = memory, .name = name, .pid = getpid()};
}

void collx_single_open(struct collx_single *single, const void *send, const void *receive)
{
    struct collx_flag *own = &single->part[single->team->rank].open;
    const struct collx_view view = {single->pid, (uintptr_t)send, (uintptr_t)receive};

    memcpy(own->payload, &view, sizeof view);
    /* What the program has stored into its buffers past the caches its own CPU sees at once, and it
     * need not wait for it.  Others would read what was there before, or such a store would
     * overwrite what the root of a Bcast has written. */
    collx_store_fence();
    collx_flag_post(single->team, own, ++single->call);
}

/* What a rank waits for: a flag of `rank`, or COLLX_SINGLE_HELPER. */
struct waiting {
    struct collx_single *single;
    int rank;
};

/* Answer the letters that have come for us. */
static void answer(void *with)
{
    const struct waiting *waiting = with;
    struct collx_single *single = waiting->single;
    struct collx_team *team = single->team;

    for (int rank = 0; rank < team->size; rank++) {
        struct collx_single_part *part = &single->part[rank];
        struct collx_letter letter;
        /* Acquire: pairs with the post in ask(); the letter is read after it. */
        uint64_t number = atomic_load_explicit(&part->letter.value, memory_order_acquire);

        /* Relaxed: it was us who answered those that were for us. */
        uint64_t letters = number >> COLLX_OWNER_BITS;
        if ((number ^ letters << COLLX_OWNER_BITS) != (uint64_t)team->rank ||
            atomic_load_explicit(&part->answer.value, memory_order_relaxed) >= letters)
            continue;
        memcpy(&letter, part->letter.payload, sizeof letter);
        memcpy(part->mail, (const void *)(uintptr_t)letter.address, letter.bytes);
        collx_flag_post(team, &part->answer, letters);
    }
}

/* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
static uint64_t relaxed(const struct collx_flag *flag)
{
    return atomic_load_explicit(&flag->value, memory_order_relaxed);
}

/* Most ranks wait for one that waits itself.  The root of a Bcast stays for those that have yet to
 * read, while who has read is at the next call already.  So where somebody has taken fewer steps
 * than we have, all wait for whoever has taken the fewest, and of these for who has not come. */
static bool is_missing(const void *with, int rank)
{
    const struct waiting *waiting = with;
    const struct collx_single *single = waiting->single;
    const struct collx_single_part *part = single->part;

    if (waiting->rank == COLLX_SINGLE_HELPER)
        return atomic_load_explicit(&part[rank].helps, memory_order_relaxed) ==
               single->team->rank + 1;
    const uint64_t step = relaxed(&part[rank].step), open = relaxed(&part[rank].open);
    const bool behind = step < single->step;
    const uint64_t least = behind ? step : single->step;

    if (!behind && rank != waiting->rank)
        return false;
    for (int other = 0; other < single->team->size; other++) {
        uint64_t steps = relaxed(&part[other].step);
        if (steps < least || (behind && steps == least && relaxed(&part[other].open) < open))
            return false;
    }
    return true;
}

void collx_single_wait(struct collx_single *single, struct collx_flag *flag, uint64_t value,
                       int rank)
{
    struct collx_team *team = single->team;

    if (collx_spin_for(team, flag, value))
        return;
    struct waiting waiting = {single, rank};
    collx_wait_long(team,
                    &(struct collx_wait){.flag = flag,
                                         .count = 1,
                                         .what = single->name,
                                         .meanwhile = answer,
                                         .missing = is_missing,
                                         .with = &waiting},
                    value);
}

const struct collx_view *collx_single_view(struct collx_single *single, int rank)
{
    struct collx_flag *open = &single->part[rank].open;

    collx_single_wait(single, open, single->call, rank);
    return (const struct collx_view *)(const void *)open->payload;
}

void collx_single_await(struct collx_single *single, int rank)
{
    collx_single_wait(single, &single->part[rank].step, single->step, rank);
}

void collx_single_await_all(struct collx_single *single)
{
    for (int rank = 0; rank < single->team->size; rank++)
        if (rank != single->team->rank)
            collx_single_await(single, rank);
}

static void ask(struct collx_single *single, int owner, char *to, uint64_t address, size_t bytes)
{
    struct collx_single_part *own = &single->part[single->team->rank];

    for (size_t at = 0; at < bytes; at += COLLX_MAIL) {
        size_t piece = bytes - at < COLLX_MAIL ? bytes - at : COLLX_MAIL;
        struct collx_letter letter = {address + at, piece};

        memcpy(own->letter.payload, &letter, sizeof letter);
        collx_flag_post(single->team, &own->letter,
                        ++single->letters << COLLX_OWNER_BITS | (uint64_t)owner);
        collx_single_wait(single, &own->answer, single->letters, owner);
        memcpy(to + at, own->mail, piece);
    }
}

int collx_single_read(struct collx_single *single, int owner, void *to, uint64_t address,
                      size_t bytes)
{
    const struct collx_view *view =
        (const struct collx_view *)(const void *)single->part[owner].open.payload;

    if (!address)
        return single->team->ops->no_memory;
    if (collx_cma_read((int)view->pid, to, address, bytes))
        ask(single, owner, to, address, bytes);
    return 0;
}
