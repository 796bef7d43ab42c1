/* How to store into memory that other CPUs read, and to load from it: what this CPU has for it. */
#ifndef COLLX_COPY_WAYS_H
#define COLLX_COPY_WAYS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    /* From here on copies go in whole lines, where the CPU can. */
    COLLX_COPY_WHOLE = 8192,
};

/* Any alignment. */
struct collx_copy_ways {
    /* Into lines that another CPU has. */
    void (*plain)(void *to, const void *from, size_t bytes);
    /* Out of them, or into such as come fast. */
    void (*wide)(void *to, const void *from, size_t bytes);
    /* Past the caches; collx_store_fence() has to follow. */
    void (*stream)(void *to, const void *from, size_t bytes);
    /* From COLLX_COPY_WHOLE bytes on the first two do not fetch the lines that they write, so it
     * does not matter who has them. */
    bool whole_lines;
    /* Lines come back faster from a reader that has stored there (copy.h). */
    bool returnable;
    /* So do the few lines of a message that has a number in each (numbered.h). */
    bool returnable_short;
    /* Where a rank has read it writes soonest, without returns and claims (bcast_ring.h). */
    bool swings;
};

/* What this CPU, COLLX_KERNELS, COLLX_RETURN and COLLX_WHOLE_LINES allow. */
struct collx_copy_ways collx_copy_ways(void);

/* What has been stored past the caches is there for everybody who sees what is stored afterwards:
 * on x86 a release store does not see to that. */
static inline void collx_store_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

#endif
