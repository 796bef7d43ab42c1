#include "bench/bench.h"

#include <stdlib.h>

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct spread spread_of(double *values, int n)
{
    if (n == 0)
        return (struct spread){0};
    qsort(values, (size_t)n, sizeof *values, ascending);
    return (struct spread){
        .n = n, .median = values[n / 2], .low = values[n / 4], .high = values[(3 * n) / 4]};
}
