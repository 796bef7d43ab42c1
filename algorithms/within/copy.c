#include "algorithms/within/copy.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    /* A timed copy costs 50 ns more. */
    TIME_EVERY = 8,
    /* So many timed copies in a row have to be slow: one may have met a page fault, or lost its
     * CPU. */
    SLOW_COPIES = 3,
    /* Bytes a nanosecond: plain stores over lines that a reader holds were measured at 7 to 12
     * where CPUs share a cache, and at 2 where they are far apart. */
    SLOW = 4,
    /* ns for a store to one line that has been returned, and to see that it is done: measured at 70
     * where CPUs share a cache, and at 180 where they are far apart.  The rate of a copy, then 26
     * and 10 bytes a nanosecond, would not tell: it falls as low if its source is in no cache. */
    FAR = 125,
    STREAM_FOR = 256,
    /* Reads between looks at what returning lines costs, where it has been cheap. */
    RETURN_FOR = 64,
    /* Reads until it is tried again where it is not: at first, and at most. */
    PATIENCE = 16,
    PATIENCE_MOST = 4096,
    /* What returning lines may take where they are the reader's, in ns and bytes a ns: 20 to 60 ns
     * were measured for 1 KiB, 60 to 140 for 8 KiB.  A store that has to ask for its line takes 100
     * and more. */
    RETURN_FIXED = 60,
    RETURN_RATE = 48,
};

void collx_copier_init(struct collx_copier *copier)
{
    *copier = (struct collx_copier){.ways = collx_copy_ways(), .patience = PATIENCE};
    copier->out = copier->ways.wide;
}

/* All stores before this have got their lines when it is over.  An exchange sees to that as a fence
 * does, which ThreadSanitizer does not know. */
static void settle(void)
{
    _Atomic int settled = 0;

    atomic_exchange_explicit(&settled, 1, memory_order_seq_cst);
}

/* Lines that have been returned need no claims, and come fast enough for large stores. */
static void store(const struct collx_copier *copier, void *shared, const void *from, size_t bytes)
{
    if (copier->returned && bytes >= COLLX_COPY_RETURNED)
        copier->ways.wide(shared, from, bytes);
    else
        copier->ways.plain(shared, from, bytes);
}

/* The same; returns whether it would have been better past the caches. */
static bool store_timed(const struct collx_copier *copier, void *shared, const void *from,
                        size_t bytes)
{
    uint64_t begin = collx_clock_ns(), took;

    if (copier->returned) {
        *(volatile char *)shared = *(const char *)from;
        settle();
        took = collx_clock_ns() - begin;
        store(copier, shared, from, bytes);
        return took > FAR;
    }
    store(copier, shared, from, bytes);
    took = collx_clock_ns() - begin;
    return took * SLOW > bytes;
}

void collx_copy_in(struct collx_copier *copier, void *shared, const void *from, size_t bytes)
{
    if (bytes < COLLX_COPY_LARGE || copier->ways.whole_lines) {
        store(copier, shared, from, bytes);
        return;
    }
    if (copier->streaming) {
        copier->streaming--;
        copier->ways.stream(shared, from, bytes);
        collx_store_fence();
        return;
    }
    /* After all that streaming, one that is slow again is enough. */
    if (copier->slow < SLOW_COPIES && ++copier->copies % TIME_EVERY) {
        store(copier, shared, from, bytes);
        return;
    }
    if (!store_timed(copier, shared, from, bytes))
        copier->slow = 0;
    else if (copier->slow == SLOW_COPIES || ++copier->slow == SLOW_COPIES)
        copier->streaming = STREAM_FOR;
}

/* Atomic: a plain store of what is there already is one that a compiler would leave out. */
static void store_back(const void *shared, size_t bytes)
{
    char *line = (char *)(uintptr_t)shared, *end = line + bytes;

    for (; line < end; line += COLLX_LINE_LEAST)
        __atomic_store_n(line, __atomic_load_n(line, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void collx_copy_store_back(struct collx_copier *copier, const void *shared, size_t bytes)
{
    if (copier->reads) {
        copier->reads--;
        if (copier->returns)
            store_back(shared, bytes);
        return;
    }
    uint64_t begin = collx_clock_ns();
    store_back(shared, bytes);
    settle();
    uint64_t took = collx_clock_ns() - begin;
    copier->returns = took <= RETURN_FIXED + bytes / RETURN_RATE;
    if (copier->returns) {
        copier->patience = PATIENCE;
        copier->reads = RETURN_FOR;
    } else {
        copier->reads = copier->patience;
        copier->patience = copier->patience < PATIENCE_MOST ? 2 * copier->patience : PATIENCE_MOST;
    }
}
