/* A histogram of durations from which quantiles are told with bounded memory.
 *
 * Log-linear: every power of two is cut into 64 buckets, so a quantile is wrong by less than 1 %,
 * and by nothing below 128 ns.  Memory is taken only for powers of two that occur. */
#ifndef COLLX_REPORT_HISTOGRAM_H
#define COLLX_REPORT_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    COLLX_HISTOGRAM_STEPS = 64, /* buckets a power of two */
    COLLX_HISTOGRAM_BLOCKS = 59,
};

struct collx_histogram {
    uint64_t count, min, max; /* exact; min is UINT64_MAX while empty */
    uint64_t *block[COLLX_HISTOGRAM_BLOCKS];
};

void collx_histogram_init(struct collx_histogram *histogram);
/* False: out of memory. */
bool collx_histogram_add(struct collx_histogram *histogram, uint64_t value);
bool collx_histogram_merge(struct collx_histogram *into, const struct collx_histogram *from);
/* The smallest value that the part `q` (0 … 1) of all values does not exceed; 0 when empty. */
uint64_t collx_histogram_quantile(const struct collx_histogram *histogram, double q);
void collx_histogram_finish(struct collx_histogram *histogram);

#endif
