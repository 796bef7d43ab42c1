#include "algorithms/within/lines.h"

#include <stdlib.h>

/* docs/algorithms.md says where these are from. */
const struct collx_line_cost collx_line_costs[COLLX_DISTANCES] = {
    [COLLX_SAME_CACHE] = {60, 10},
    [COLLX_SAME_PACKAGE] = {130, 20},
    [COLLX_FAR] = {250, 40},
};
const int collx_link_cost = 4;

struct collx_lines {
    int phases, ranks, lines;
    struct collx_busy *rank; /* [phases][ranks] */
    struct collx_busy *line; /* [phases][lines] */
    int64_t *far;            /* [phases] */
};

enum collx_distance collx_place_distance(const struct collx_place *one,
                                         const struct collx_place *other)
{
    if (one->cache >= 0 && one->cache == other->cache)
        return COLLX_SAME_CACHE;
    if (one->package >= 0 && one->package == other->package)
        return COLLX_SAME_PACKAGE;
    return COLLX_FAR;
}

struct collx_lines *collx_lines_create(int phases, int ranks, int lines)
{
    struct collx_lines *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    *self = (struct collx_lines){.phases = phases, .ranks = ranks, .lines = lines};
    self->rank = calloc((size_t)phases * (size_t)ranks, sizeof *self->rank);
    self->line = calloc((size_t)phases * (size_t)lines, sizeof *self->line);
    self->far = calloc((size_t)phases, sizeof *self->far);
    if (self->rank && self->line && self->far)
        return self;
    collx_lines_destroy(self);
    return NULL;
}

void collx_lines_destroy(struct collx_lines *lines)
{
    if (!lines)
        return;
    free(lines->rank);
    free(lines->line);
    free(lines->far);
    free(lines);
}

void collx_lines_read(struct collx_lines *lines, int phase, int rank, int line,
                      enum collx_distance distance)
{
    collx_busy_add(&lines->rank[(size_t)phase * (size_t)lines->ranks + (size_t)rank], distance, 1);
    collx_busy_add(&lines->line[(size_t)phase * (size_t)lines->lines + (size_t)line], distance, 1);
    lines->far[phase] += distance == COLLX_FAR;
}

static int64_t busiest(const struct collx_busy *busy, int count, int64_t most)
{
    for (int i = 0; i < count; i++)
        if (collx_busy_time(&busy[i]) > most)
            most = collx_busy_time(&busy[i]);
    return most;
}

int64_t collx_lines_time(const struct collx_lines *lines)
{
    int64_t time = 0;

    for (int phase = 0; phase < lines->phases; phase++) {
        int64_t most = lines->far[phase] * collx_link_cost;
        most = busiest(&lines->rank[(size_t)phase * (size_t)lines->ranks], lines->ranks, most);
        most = busiest(&lines->line[(size_t)phase * (size_t)lines->lines], lines->lines, most);
        time += most;
    }
    return time;
}

int64_t collx_lines_far(const struct collx_lines *lines)
{
    int64_t all = 0;

    for (int phase = 0; phase < lines->phases; phase++)
        all += lines->far[phase];
    return all;
}
