#ifndef COLLX_CLOCK_H
#define COLLX_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Nanoseconds since some moment that is the same for all processes of a node. */
static inline uint64_t collx_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* How long somebody has waited who looks at the clock again and again.  All zero: not at all. */
struct collx_waited {
    uint64_t last, ns; /* the latest look; what has been waited until then */
};

/* Look, at `now`.  No more than a second counts between two looks: who was stopped meanwhile, as a
 * job is that a batch system suspends, has not waited, and a clock that is set says nothing. */
static inline uint64_t collx_waited_look(struct collx_waited *waited, uint64_t now)
{
    const int64_t most = 1000000000, since = waited->last ? (int64_t)(now - waited->last) : 0;

    waited->last = now;
    waited->ns += (uint64_t)(since < 0 ? 0 : since < most ? since : most);
    return waited->ns;
}

struct collx_clock_text {
    char text[32];
};

/* For messages: "300 ms", or "30 s" where it is a second or more.  In integers, as all that is
 * reckoned within a program's calls: it may have asked for a trap where a floating-point result is
 * not exact. */
static inline struct collx_clock_text collx_clock_text(uint64_t ns)
{
    const uint64_t unit = ns < 1000000000u ? 1000000u : 1000000000u;
    struct collx_clock_text span;

    snprintf(span.text, sizeof span.text, "%llu %s", (unsigned long long)((ns + unit / 2) / unit),
             unit == 1000000u ? "ms" : "s");
    return span;
}

#endif
