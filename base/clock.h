#ifndef COLLX_CLOCK_H
#define COLLX_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment that is the same for all processes of a node. */
static inline uint64_t collx_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For messages.  In integers, as all that is reckoned within a program's calls: it may have asked
 * for a trap where a floating-point result is not exact. */
static inline unsigned long long collx_clock_seconds(uint64_t ns)
{
    return (ns + 500000000u) / 1000000000u;
}

#endif
