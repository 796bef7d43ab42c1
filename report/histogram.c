#include "report/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Block 0 holds 0 … 63 one by one, block b > 0 the values from 64 << (b - 1), in steps of
 * 1 << (b - 1). */
static unsigned block_of(uint64_t value)
{
    return value < COLLX_HISTOGRAM_STEPS ? 0 : 58 - (unsigned)__builtin_clzll(value);
}

static unsigned step_of(uint64_t value, unsigned block)
{
    return (unsigned)(value >> (block ? block - 1 : 0)) % COLLX_HISTOGRAM_STEPS;
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned block, unsigned step)
{
    if (!block)
        return step;
    uint64_t width = 1ull << (block - 1);
    return (COLLX_HISTOGRAM_STEPS + step) * width + width / 2;
}

void collx_histogram_init(struct collx_histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
    histogram->min = UINT64_MAX;
}

static uint64_t *need_block(struct collx_histogram *histogram, unsigned block)
{
    if (!histogram->block[block])
        histogram->block[block] = calloc(COLLX_HISTOGRAM_STEPS, sizeof(uint64_t));
    return histogram->block[block];
}

bool collx_histogram_add(struct collx_histogram *histogram, uint64_t value)
{
    unsigned block = block_of(value);
    uint64_t *counts = need_block(histogram, block);

    if (!counts)
        return false;
    counts[step_of(value, block)]++;
    histogram->count++;
    if (value < histogram->min)
        histogram->min = value;
    if (value > histogram->max)
        histogram->max = value;
    return true;
}

bool collx_histogram_merge(struct collx_histogram *into, const struct collx_histogram *from)
{
    for (unsigned block = 0; block < COLLX_HISTOGRAM_BLOCKS; block++) {
        if (!from->block[block])
            continue;
        uint64_t *counts = need_block(into, block);
        if (!counts)
            return false;
        for (unsigned step = 0; step < COLLX_HISTOGRAM_STEPS; step++)
            counts[step] += from->block[block][step];
    }
    into->count += from->count;
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    return true;
}

uint64_t collx_histogram_quantile(const struct collx_histogram *histogram, double q)
{
    uint64_t wanted = (uint64_t)ceil(q * (double)histogram->count), seen = 0;

    if (!histogram->count)
        return 0;
    if (!wanted)
        wanted = 1;
    for (unsigned block = 0; block < COLLX_HISTOGRAM_BLOCKS; block++)
        for (unsigned step = 0; histogram->block[block] && step < COLLX_HISTOGRAM_STEPS; step++) {
            seen += histogram->block[block][step];
            if (seen < wanted)
                continue;
            uint64_t value = value_of(block, step);
            value = value < histogram->min ? histogram->min : value;
            return value > histogram->max ? histogram->max : value;
        }
    return histogram->max;
}

void collx_histogram_finish(struct collx_histogram *histogram)
{
    for (unsigned block = 0; block < COLLX_HISTOGRAM_BLOCKS; block++)
        free(histogram->block[block]);
}
