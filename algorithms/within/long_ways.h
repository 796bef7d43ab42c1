/* How long messages go: through the segment, so that the results stay in the receivers' caches or
 * past these, or in a single copy (single.h).  The calls choose (tuner.h).
 */
#ifndef COLLX_LONG_WAYS_H
#define COLLX_LONG_WAYS_H

#include "algorithms/within/single.h"
#include "algorithms/within/tuner.h"

enum {
    /* Bytes below which a system call takes longer than the copy that it spares. */
    COLLX_SINGLE_LEAST = 4096,
    /* Below, it is not even tried, unless the policy demands it, and never with what an algorithm
     * takes for small: it has not been seen to win, and keeps all ranks in the call until the last
     * one is done, which the trial cannot see. */
    COLLX_SINGLE_TRIED = 65536,
    /* Likewise with more ranks than CPUs, where what one rank leaves in a cache is there for the
     * next one on its CPU. */
    COLLX_SINGLE_CROWDED = 1 << 20,
    /* Likewise results past the caches: up to here a CPU's own have room for them. */
    COLLX_PAST_LEAST = 1 << 20,
};

/* The first ways of every list, those through the segment; from COLLX_WAY_SINGLE on come single
 * copies.  A program that reads what has gone past the caches waits longer than if it had stayed in
 * one: measured up to a quarter of the time of the call.  But where that way is the fastest, most
 * of it would not have stayed. */
enum { COLLX_WAY_SEGMENT, COLLX_WAY_PAST, COLLX_WAY_SINGLE, COLLX_WAY_SINGLE_OTHER };
#define COLLX_SEGMENT_WAYS                                                                         \
    {.say = "through the segment"},                                                                \
    {                                                                                              \
        .say = "through it and past the caches", .least = COLLX_PAST_LEAST, .burden = 12           \
    }

/* The parameters of algorithms that have all these ways. */
enum { COLLX_SINGLE_AUTO, COLLX_SINGLE_NEVER, COLLX_SINGLE_ALWAYS };
extern const char *const collx_single_words[];
#define COLLX_SINGLE_PARAM                                                                         \
    {                                                                                              \
        "single_copy",                                                                             \
            "long messages straight from the buffers of other ranks (cross-memory attach)",        \
            COLLX_SINGLE_AUTO, COLLX_SINGLE_AUTO, COLLX_SINGLE_ALWAYS, collx_single_words          \
    }
#define COLLX_PAST_PARAM                                                                           \
    {                                                                                              \
        "past_caches", "long messages through the segment and then past the receivers' caches",    \
            COLLX_SINGLE_AUTO, COLLX_SINGLE_AUTO, COLLX_SINGLE_ALWAYS, collx_single_words          \
    }

struct collx_long_ways {
    struct collx_single single;
    int64_t wanted, past; /* the parameters */
    bool tried;           /* what is possible, and so tuner.allowed, is known */
    unsigned char *rings; /* of the ways through the segment, up to what follows them */
    struct collx_meeting meeting;
    struct collx_tuner tuner;
};

static inline size_t collx_long_ways_space(int ranks)
{
    return collx_meeting_space(ranks) + collx_single_space(ranks);
}

/* What an algorithm says of itself. */
struct collx_long_ways_setup {
    const struct collx_way *list; /* COLLX_SEGMENT_WAYS, single copies, and the end */
    const char *name;             /* of the collective */
    int64_t wanted, past;         /* the parameters single_copy and past_caches */
};

/* `memory`: collx_long_ways_space() bytes, the same on all ranks, zeroed.  `rings`: begin of the
 * memory before it, through which the ways of the segment lead. */
void collx_long_ways_init(struct collx_long_ways *ways, struct collx_team *team, void *rings,
                          void *memory, const struct collx_long_ways_setup *setup);

/* Bytes from which on the ways are tried; the same on all ranks.  In a crowd they are more, unless
 * the parameters demand less.  Whether there is one is not known yet when this is initialised. */
static inline size_t collx_long_ways_least(const struct collx_long_ways *ways)
{
    const size_t least = ways->tuner.least;

    return ways->single.team->crowded && least == COLLX_SINGLE_TRIED ? COLLX_SINGLE_CROWDED : least;
}

/* Which way a call of that many bytes goes, or more: what the parameters say, else what
 * has turned out to be fastest; a single copy only where the kernel lets every rank read every
 * other's memory.  The same on all ranks.  Collective; collx_long_ways_end() follows, whichever way
 * it was. */
unsigned collx_long_ways_begin(struct collx_long_ways *ways, size_t bytes);

static inline void collx_long_ways_end(struct collx_long_ways *ways)
{
    collx_tuner_end(&ways->tuner);
}

#endif
