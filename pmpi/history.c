#include "pmpi/history.h"

#include "hw/spares.h"

#include <stddef.h>
#include <string.h>

enum {
    /* Of so many kinds, those that have been freed last. */
    KINDS = 16,
    /* So many calls must be left to be worth taking over what there is: twice what they gain by. */
    WORTH = 64,
};

struct past {
    uint64_t key;
    uint64_t last;   /* calls of the last one */
    uint64_t waited; /* calls of those that were not set up, since one was, from nothing */
};

/* The latest last. */
static struct past past[KINDS];
static int kinds;
/* The keys of those that have left something, the latest last. */
static uint64_t left[COLLX_SPARES];
static int left_count;

static struct past *find(uint64_t key)
{
    for (int i = kinds - 1; i >= 0; i--)
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
    else if (kinds == KINDS)
        found = past;
    else
        found = &past[kinds++];
    memmove(found, found + 1, (size_t)(&past[kinds] - (found + 1)) * sizeof *found);
    past[kinds - 1] = now;
    return &past[kinds - 1];
}

static int find_left(uint64_t key)
{
    int i = left_count - 1;

    while (i >= 0 && left[i] != key)
        i--;
    return i;
}

static void remove_left(int i)
{
    left_count--;
    memmove(&left[i], &left[i + 1], (size_t)(left_count - i) * sizeof left[0]);
}

void collx_history_freed(uint64_t key, uint64_t calls, bool was_set_up, bool has_left)
{
    struct past *of = find_or_add(key);

    of->last = calls;
    if (!was_set_up)
        of->waited += calls;
    if (!has_left)
        return;
    if (left_count == COLLX_SPARES)
        remove_left(0);
    left[left_count++] = key;
}

void collx_history_set_up(uint64_t key)
{
    struct past *of = find(key);
    const int i = find_left(key);

    if (i >= 0)
        remove_left(i);
    else if (of)
        of->waited = 0;
}

bool collx_history_expects(uint64_t key, uint64_t calls, uint64_t usual)
{
    const struct past *of = find(key);

    return of && of->last >= calls + WORTH && (find_left(key) >= 0 || of->waited + calls >= usual);
}

bool collx_history_any(void)
{
    return kinds;
}
