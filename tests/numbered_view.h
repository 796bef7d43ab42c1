/* What goes in lines that have a number each (algorithms/within/numbered.h), from rank 0 to rank 1
 * of two, for tests in C++. */
#ifndef COLLX_TESTS_NUMBERED_VIEW_H
#define COLLX_TESTS_NUMBERED_VIEW_H

#include "base/algorithm.h"

/* One that sends such lines, and has not yet. */
struct numbered_view {
    const char *name; /* of the collective, as in messages */
    /* Bytes of its memory, zeroed. */
    size_t (*space)(void);
    /* Whether the second line of rank 0's first message is there: its number, or 0. */
    void (*set_second)(struct collx_team *team, void *memory, bool there);
    /* All of it, from `buf` of rank 0 to that of rank 1.  Not 0: it would not go in such lines. */
    int (*pass)(struct collx_team *team, void *memory, unsigned char *buf, size_t bytes);
};

enum { NUMBERED_VIEWS = 2 };
extern const struct numbered_view numbered_views[NUMBERED_VIEWS];

#endif
