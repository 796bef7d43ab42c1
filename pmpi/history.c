#include "pmpi/history.h"

#include "hw/spares.h"

#include <stddef.h>
#include <string.h>

enum {
    /* Of so many kinds of communicators, those that have been freed last. */
    PAST = 16,
    /* So many calls must be left to be worth taking over what there is: twice what they gain by. */
    WORTH = 64,
};

struct past {
    uint64_t key;
    uint64_t last;   /* calls of the last one */
    uint64_t waited; /* calls of those that were not set up, since one was, from nothing */
};

/* The latest last. */
static struct past past[PAST];
static int past_count;
/* The keys of those that have left something, the latest last. */
static uint64_t reusable[COLLX_SPARES];
static int reusable_count;

static struct past *find(uint64_t key)
{
    for (int i = past_count - 1; i >= 0; i--)
        if (past[i].key == key)
            return &past[i];
    return NULL;
}

/* It becomes the latest. */
static struct past *find_or_add(uint64_t key)
{
    struct past *found = find(key), now = {.key = key};

    if (found)
        now = *found;
    else if (past_count == PAST)
        found = past;
    else
        found = &past[past_count++];
    memmove(found, found + 1, (size_t)(&past[past_count] - (found + 1)) * sizeof *found);
    past[past_count - 1] = now;
    return &past[past_count - 1];
}

static int find_reusable(uint64_t key)
{
    int i = reusable_count - 1;

    while (i >= 0 && reusable[i] != key)
        i--;
    return i;
}

static void remove_reusable(int i)
{
    reusable_count--;
    memmove(&reusable[i], &reusable[i + 1], (size_t)(reusable_count - i) * sizeof reusable[0]);
}

void collx_history_freed(uint64_t key, uint64_t calls, bool was_set_up, bool has_left)
{
    struct past *of = find_or_add(key);

    of->last = calls;
    if (!was_set_up)
        of->waited += calls;
    if (!has_left)
        return;
    if (reusable_count == COLLX_SPARES)
        remove_reusable(0);
    reusable[reusable_count++] = key;
}

void collx_history_set_up(uint64_t key)
{
    struct past *of = find(key);
    const int i = find_reusable(key);

    if (i >= 0)
        remove_reusable(i);
    else if (of)
        of->waited = 0;
}

bool collx_history_expects(uint64_t key, uint64_t calls, uint64_t usual)
{
    const struct past *of = find(key);

    return of && of->last >= calls + WORTH &&
           (find_reusable(key) >= 0 || of->waited + calls >= usual);
}

bool collx_history_any(void)
{
    return past_count;
}
