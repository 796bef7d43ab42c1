/* Ranks that somebody waits for, in words. */
#ifndef COLLX_MISSING_H
#define COLLX_MISSING_H

#include "base/algorithm.h"

/* Ranks that are named; of more it is said that there are others. */
enum { COLLX_MISSING_NAMED = 16, COLLX_MISSING_TEXT = 48 };

/* All zero: nobody is missing. */
struct collx_missing {
    int count;
    size_t length;
    char ranks[COLLX_MISSING_NAMED * COLLX_MISSING_TEXT];
    char text[COLLX_MISSING_NAMED * COLLX_MISSING_TEXT + 32];
};

/* This rank of the team is, too. */
void collx_missing_add(struct collx_missing *missing, const struct collx_team *team, int rank);

/* "rank 3", "ranks 1 (process 4711) 5", "ranks 0 1 … and others".  As long as `missing` is. */
const char *collx_missing_text(struct collx_missing *missing);

#endif
