/* What values that differ from measurement to measurement come to. */
#ifndef COLLX_SPREAD_H
#define COLLX_SPREAD_H

struct collx_spread {
    int n;
    double median, low, high; /* low, high: quartiles */
};

/* Sorts the values; all 0 where there are none. */
struct collx_spread collx_spread_of(double *values, int n);

/* The mean of their middle half: what is far off moves it as little as the median, and it is not
 * bound to the steps of a clock, as that is.  Sorts the values; 0 where there are none. */
double collx_middle_of(double *values, int n);

#endif
