/* A short message beside a flag, in lines that have a number each.
 *
 * The first COLLX_INLINE bytes lie in the line of the flag, those that follow in further lines, of
 * which each begins with the number of the message that is in it.  So the writer posts the first
 * line at once, not when it has copied all, and need not fetch it back from those who wait for it;
 * and who comes when all are there fetches them at the same time.
 *
 *   writer: 1. copy the first bytes in, post e in the flag
 *           2. for each further line: copy its bytes in, then its number, e
 *   reader: 3. when the flag says e, copy out what is beside it
 *           4. for each further line: wait until its number is e, copy out
 *
 * Who may write message e, and when, is for those to say who use it.  Not in a crowd: there a
 * reader that has got one of the lines might wait for the next with the CPU that the writer needs.
 */
#ifndef COLLX_NUMBERED_H
#define COLLX_NUMBERED_H

#include "algorithms/within/shm.h"

enum {
    /* With more, one copy and a flag behind it are as fast, and in a loop faster: 512 bytes take
     * 0.105 us so instead of 0.133 on a Zen 3. */
    COLLX_NUMBERED_LINES = 5,
    COLLX_NUMBERED_MOST = (1 + COLLX_NUMBERED_LINES) * COLLX_INLINE,
};

struct collx_numbered_line {
    _Alignas(COLLX_LINE_LEAST) _Atomic uint64_t value; /* the last message that was in it */
    unsigned char payload[COLLX_INLINE];
    _Atomic uint32_t claimed; /* as in struct collx_flag */
};
_Static_assert(sizeof(struct collx_numbered_line) == 64, "an array of them has one a cache line");

/* Those that follow a flag. */
struct collx_numbered {
    struct collx_numbered_line line[COLLX_NUMBERED_LINES];
};

/* Whether such a message goes this way; alike on all ranks. */
static inline bool collx_numbered_suits(const struct collx_team *team, size_t bytes)
{
    return bytes > COLLX_INLINE && bytes <= COLLX_NUMBERED_MOST && !team->crowded;
}

/* What of `bytes` bytes goes into, or comes from, one line. */
static inline void collx_numbered_copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
    if (bytes >= COLLX_INLINE)
        memcpy(to, from, COLLX_INLINE);
    else
        collx_copy_small(to, from, bytes);
}

/* 1, 2. */
static inline void collx_numbered_put(const struct collx_team *team, struct collx_flag *flag,
                                      struct collx_numbered *lines, uint64_t e,
                                      const unsigned char *from, size_t bytes)
{
    struct collx_numbered_line *line = lines->line;

    memcpy(flag->payload, from, COLLX_INLINE);
    collx_flag_post(team, flag, e);
    for (size_t at = COLLX_INLINE; at < bytes; at += COLLX_INLINE, line++) {
        collx_numbered_copy(line->payload, from + at, bytes - at);
        /* Release: pairs with the acquire in collx_numbered_reached; without it the number could be
         * seen before what it numbers. */
        atomic_store_explicit(&line->value, e, memory_order_release);
    }
}

/* Its partner is the store in collx_numbered_put. */
static inline bool collx_numbered_reached(const struct collx_numbered_line *line, uint64_t e)
{
    return collx_number_reached(&line->value, e);
}

/* The writer, team rank `rank`, has stopped between two lines. */
void collx_numbered_wait(struct collx_team *team, const struct collx_numbered_line *line,
                         uint64_t e, int rank, const char *what);

/* 3, 4, when the flag, which is team rank `rank`'s, says e.  `what`: as in struct collx_wait. */
static inline void collx_numbered_get(struct collx_team *team, const struct collx_flag *flag,
                                      const struct collx_numbered *lines, uint64_t e, int rank,
                                      const char *what, unsigned char *to, size_t bytes)
{
    const struct collx_numbered_line *line = lines->line;

    memcpy(to, flag->payload, COLLX_INLINE);
    for (size_t at = COLLX_INLINE; at < bytes; at += COLLX_INLINE, line++) {
        if (__builtin_expect(!collx_numbered_reached(line, e), 0))
            collx_numbered_wait(team, line, e, rank, what);
        collx_numbered_copy(to + at, line->payload, bytes - at);
    }
}

/* Of the only reader: return the lines of such a message (algorithms/within/copy.h), but that of
 * the flag. So they come fast even if they were not claimed, where that is worth it. */
static inline void collx_numbered_return(struct collx_copier *copier, struct collx_numbered *lines,
                                         size_t bytes)
{
    if (copier->ways.returnable_short)
        collx_copy_store_back(copier, &lines->line[0].claimed,
                              (bytes - 1) / COLLX_INLINE * sizeof lines->line[0]);
}

/* Claim the lines of a message of so many bytes (collx_claim_line), but that of the flag. */
static inline void collx_numbered_claim(const struct collx_team *team, struct collx_numbered *lines,
                                        size_t bytes)
{
    struct collx_numbered_line *line = lines->line;

    for (size_t at = COLLX_INLINE; at < bytes; at += COLLX_INLINE, line++)
        collx_claim_line(team, &line->claimed);
}

#endif
