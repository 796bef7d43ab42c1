#include "base/spread.h"

#include <stdlib.h>

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static void sort(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
}

struct collx_spread collx_spread_of(double *values, int n)
{
    if (n == 0)
        return (struct collx_spread){0};
    sort(values, n);
    return (struct collx_spread){.n = n,
                                 .median = (values[(n - 1) / 2] + values[n / 2]) / 2,
                                 .low = values[n / 4],
                                 .high = values[n - 1 - n / 4]};
}

double collx_middle_of(double *values, int n)
{
    double from = 0.25 * n, to = 0.75 * n, sum = 0;

    if (n == 0)
        return 0;
    sort(values, n);
    /* Value i is all that lies from i to i + 1: those at the two ends count in part. */
    for (int i = 0; i < n; i++) {
        double begin = i > from ? i : from, end = i + 1 < to ? i + 1 : to;
        sum += end > begin ? (end - begin) * values[i] : 0;
    }
    return sum / (to - from);
}
