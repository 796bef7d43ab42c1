/* Copying into shared memory that other ranks will read next.
 *
 * The lines are still in the readers' caches, so a plain store first has to fetch them back.
 * Between CPUs that share a cache that is cheap, and the data stays where the reader finds it.
 * Between CPUs far apart it costs ten times the copy; then it is better to store past the caches.
 * How far apart they are changes on machines that move processes, or whole virtual machines, about,
 * so now and then a copy is timed.  Each rank decides for itself: where its stores go is nobody
 * else's business.
 *
 * A C library's memcpy is made for memory that nobody else holds.  Into lines that another CPU has,
 * small stores one after the other are faster (each of its large ones waits for its line), and out
 * of them large loads: 1 KiB takes 160 ns between two ranks instead of 300.
 *
 * Lines that are known to be written next are better claimed before, while there is nothing else to
 * do: a barrier of two ranks takes 0.11 us then instead of 0.17, a Bcast of 4 KiB 0.8 instead of
 * 1.05.
 *
 * On some CPUs a line that another one has written moves to the one that reads it, which can then
 * store there at once, and fetching it back takes long, unless the reader has stored there: then it
 * takes as little as reading did (AMD's, measured on a Zen 4).  So a reader returns what it has
 * read: it stores to each line what is there.  64 KiB then take 1.8 us to write instead of 10
 * between CPUs at one cache, and 6 instead of 37 between others.  On an Emerald Rapids such stores
 * cost the reader as little, but lines that have been stored to take longer to fetch, so it goes by
 * whose CPU it is (copy_ways.h); and by how long the stores take, which is tried now and then.
 *
 * A CPU that can write whole lines without fetching them (copy_ways.h) needs none of that for long
 * copies.
 */
#ifndef COLLX_COPY_H
#define COLLX_COPY_H

#include "algorithms/within/copy_ways.h"

#include <stdbool.h>

enum {
    COLLX_LINE_LEAST = 64, /* no CPU has shorter ones */
    /* From here on copies may go past the caches. */
    COLLX_COPY_LARGE = 4096,
    /* From here on lines are worth returning. */
    COLLX_COPY_RETURNED = 1024,
    /* The longest messages whose memory is claimed before the next call of their size: more would
     * push out of a CPU's first cache what the program has there.  Lines that have been
     * returned come fast without, and claims of them hold up those who still read others. */
    COLLX_CLAIM_MOST = 32768,
    COLLX_CLAIM_RETURNED = 4096,
};

/* What one rank has found out. */
struct collx_copier {
    unsigned copies;    /* large ones so far */
    unsigned slow;      /* timed ones in a row that were slow */
    unsigned streaming; /* large copies to go past the caches before plain ones are tried again */
    bool returns;       /* we return what we read, it costs nothing here */
    bool returned;      /* so do those who read what we write; to be set by the user */
    unsigned reads;     /* until it is tried, or looked at, again */
    unsigned patience;  /* reads between two tries, as long as they fail */
    void (*out)(void *to, const void *shared, size_t bytes); /* one of the ways */
    struct collx_copy_ways ways;
};

void collx_copier_init(struct collx_copier *copier);

/* The flag that is posted afterwards orders the copy: it ends with a store fence where it needs
 * one.  Any alignment. */
void collx_copy_in(struct collx_copier *copier, void *shared, const void *from, size_t bytes);

/* Take lines of shared memory back from those who have read them: this rank will write there next.
 * It is only begun, nothing waits for it, and nothing but time depends on it: what is in the lines
 * stays as it is, and others may read and write there all the same. */
static inline void collx_copy_claim(void *shared, size_t bytes)
{
    for (char *line = (char *)shared, *end = line + bytes; line < end; line += COLLX_LINE_LEAST)
#if defined(__x86_64__)
        /* __builtin_prefetch takes lines for reading only, if it may not assume a CPU later than
         * 2010.  Earlier ones do nothing here. */
        __asm__ volatile("prefetchw %0" ::"m"(*line));
#else
        __builtin_prefetch(line, 1);
#endif
}

/* Whether copies of `bytes` bytes fetch the lines that they write: not past the caches, nor in
 * whole lines. */
static inline bool collx_copy_fetches(const struct collx_copier *copier, size_t bytes)
{
    return bytes < COLLX_COPY_LARGE ||
           (copier->ways.whole_lines ? bytes < COLLX_COPY_WHOLE : !copier->streaming);
}

/* Whether to claim what the next message of `bytes` bytes, in copies of `each`, is written to. */
static inline bool collx_copy_claims(const struct collx_copier *copier, size_t bytes, size_t each)
{
    return bytes <= (copier->returned ? COLLX_CLAIM_RETURNED : COLLX_CLAIM_MOST) &&
           collx_copy_fetches(copier, each);
}

/* From shared memory that another rank has just written.  Any alignment. */
static inline void collx_copy_out(const struct collx_copier *copier, void *to, const void *shared,
                                  size_t bytes)
{
    copier->out(to, shared, bytes);
}

/* Between these two what is copied out goes past the caches.  Results that are too long for them
 * would be fetched into them for nothing, to be overwritten, and push out what else is there: with
 * eight ranks on two CPUs a Bcast of 16 MiB takes half the time so. */
static inline void collx_copy_out_past(struct collx_copier *copier)
{
    copier->out = copier->ways.stream;
}

static inline void collx_copy_out_past_end(struct collx_copier *copier)
{
    copier->out = copier->ways.wide;
    /* The program may tell another thread, on another CPU, that the results are here. */
    collx_store_fence();
}

static inline bool collx_copy_out_is_past(const struct collx_copier *copier)
{
    return copier->out != copier->ways.wide;
}

/* As collx_copy_return(), however few bytes these are; where lines are returnable.  It stores to
 * one byte in each line, as far into it as `shared` is. */
void collx_copy_store_back(struct collx_copier *copier, const void *shared, size_t bytes);

/* Return what has been copied out, before the post that lets its writer write there again; its
 * writer says whether it is worth it (collx_copy_fetches).  What is there stays; but nobody may
 * write there, and only its writer may read there, at the same time. */
static inline void collx_copy_return(struct collx_copier *copier, const void *shared, size_t bytes)
{
    if (copier->ways.returnable && bytes >= COLLX_COPY_RETURNED)
        collx_copy_store_back(copier, shared, bytes);
}

#endif
