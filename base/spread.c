#include "base/spread.h"

#include <stdlib.h>

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct collx_spread collx_spread_of(double *values, int n)
{
    if (n == 0)
        return (struct collx_spread){0};
    qsort(values, (size_t)n, sizeof *values, ascending);
    return (struct collx_spread){.n = n,
                                 .median = (values[(n - 1) / 2] + values[n / 2]) / 2,
                                 .low = values[n / 4],
                                 .high = values[n - 1 - n / 4]};
}
