/* What moving cache lines between the ranks of a node costs: a model, for choosing between ways to
 * do the same thing on machines that nobody has measured, alike on all ranks.
 *
 * Work goes in phases, one after another.  In each, ranks read lines that others have written.  A
 * rank's first line takes a whole transfer, those after it overlap with it in part; the same is
 * true, seen from a line, of the ranks that read it, which get it one after the other; and all
 * lines that cross from one package to another share the link between them.  A phase takes as long
 * as the slowest rank, line or link in it.  docs/algorithms.md has the figures.
 */
#ifndef COLLX_LINES_H
#define COLLX_LINES_H

#include "hw/place.h"

/* How far apart two places are. */
enum collx_distance {
    COLLX_SAME_CACHE,
    COLLX_SAME_PACKAGE,
    COLLX_FAR, /* or nobody knows */
    COLLX_DISTANCES,
};
enum collx_distance collx_place_distance(const struct collx_place *one,
                                         const struct collx_place *other);

/* Nanoseconds. */
struct collx_line_cost {
    int transfer; /* from the post of a line until somebody who polls it sees that */
    int next;     /* until the next one, of the same rank or to another one */
};
extern const struct collx_line_cost collx_line_costs[COLLX_DISTANCES];
extern const int collx_link_cost; /* a line's share of the link between packages */

/* How busy a rank or a line is in a phase: the longest transfer takes its whole time, and all
 * others what comes on top of it. */
struct collx_busy {
    int64_t next; /* of all of them */
    int64_t rest; /* of the longest */
};

/* `count` more transfers over that distance. */
static inline void collx_busy_add(struct collx_busy *busy, enum collx_distance distance, int count)
{
    const struct collx_line_cost *cost = &collx_line_costs[distance];
    int64_t rest = cost->transfer - cost->next;

    busy->next += (int64_t)count * cost->next;
    busy->rest = rest > busy->rest ? rest : busy->rest;
}

/* What they take together, in ns. */
static inline int64_t collx_busy_time(const struct collx_busy *busy)
{
    return busy->next + busy->rest;
}

struct collx_lines;

/* For phases 0 … phases - 1, and as many ranks and lines.  NULL: out of memory. */
struct collx_lines *collx_lines_create(int phases, int ranks, int lines);
/* NULL is fine. */
void collx_lines_destroy(struct collx_lines *lines);

/* In this phase `rank` reads a line that somebody at that distance has written. */
void collx_lines_read(struct collx_lines *lines, int phase, int rank, int line,
                      enum collx_distance distance);

/* What all phases take, in ns. */
int64_t collx_lines_time(const struct collx_lines *lines);
/* How many transfers of lines go from one package to another. */
int64_t collx_lines_far(const struct collx_lines *lines);

#endif
