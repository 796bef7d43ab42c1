/* A ring of slots in shared memory, through which a root passes chunks to all others.
 *
 * Chunks are numbered, e = 1, 2, …, over all calls that went through a ring; every rank counts
 * alike, since the size of a message is equal on all ranks.  Chunk e is in slot e mod SLOTS,
 * whoever the root is.  For each chunk
 *
 *   root:    1. wait until every rank has finished with chunk e - SLOTS, which had this slot
 *            2. copy the chunk in, post e beside it
 *   others:  3. wait for e in the slot, copy out
 *   all:     4. post in one's own flag that one has finished with chunk e
 *   root, after the message:
 *            5. claim the slots that it will write to when it is root again, if that takes as many
 *               chunks as the last time
 *
 * The root does not wait for the others to read: it waits in (1), when it comes round the ring,
 * and looks at their flags only then.
 *
 * A chunk of at most COLLX_INLINE bytes lies in the line of the flag itself.  One of a few times as
 * many may go on in lines that have a number each, too.  Whoever comes when they are there fetches
 * all of them at the same time; and the root posts the first one at once, not when it has copied
 * all, so that it need not fetch that back from who waits for it: 64 bytes take 0.13 us then
 * instead of 0.22 where two ranks come at the same moment.  Not in a crowd: there a rank that has
 * got one of the lines might wait for the next with the CPU that the root needs.
 */
#ifndef COLLX_BCAST_RING_H
#define COLLX_BCAST_RING_H

#include "algorithms/shm.h"

enum {
    /* For small messages, and for chunks of long ones. */
    COLLX_SMALL_SLOTS = 16,
    COLLX_SMALL_BYTES = 4096,
    COLLX_LARGE_SLOTS = 32,
    COLLX_LARGE_BYTES = 8192,
    /* Lines of a slot that have a number each, beside that of the flag, in rings that have them. */
    COLLX_RING_LINES = 4,
    COLLX_RING_LINED = (1 + COLLX_RING_LINES) * COLLX_INLINE,
};

struct collx_ring_line {
    _Alignas(COLLX_LINE_LEAST) _Atomic uint64_t value; /* the last chunk that was in it */
    unsigned char payload[COLLX_INLINE];
};
_Static_assert(sizeof(struct collx_ring_line) == 64, "an array of them has one a cache line");

struct collx_ring {
    struct collx_flag *slot;      /* [slots] */
    struct collx_ring_line *line; /* [slots][COLLX_RING_LINES]; NULL: it has none */
    unsigned char *data;          /* [slots][bytes] */
    struct collx_flag *done;      /* one a rank: the chunk that it has finished with */
    uint64_t chunk;               /* the last one that we have finished with */
    uint64_t all_done;            /* every rank has finished with this one, as far as we know */
    uint64_t rooted;              /* the first one of the last message of which we were the root */
    unsigned slots, bytes;
    struct collx_copier copier;
};

/* `lined`: short chunks go in numbered lines. */
static inline size_t collx_ring_space(int ranks, unsigned slots, unsigned bytes, bool lined)
{
    const size_t lines = lined ? COLLX_RING_LINES : 0;

    return (slots + (size_t)ranks) * sizeof(struct collx_flag) +
           slots * (lines * sizeof(struct collx_ring_line) + bytes);
}

/* `memory`: collx_ring_space() bytes, the same on all ranks, zeroed.  Returns what follows them. */
static inline void *collx_ring_init(struct collx_ring *ring, void *memory, int ranks,
                                    unsigned slots, unsigned bytes, bool lined)
{
    *ring = (struct collx_ring){.slots = slots, .bytes = bytes};
    collx_copier_init(&ring->copier);
    ring->slot = memory;
    ring->done = (struct collx_flag *)(ring->slot + slots);
    ring->line = lined ? (struct collx_ring_line *)(ring->done + ranks) : NULL;
    ring->data = lined ? (unsigned char *)(ring->line + slots * COLLX_RING_LINES)
                       : (unsigned char *)(ring->done + ranks);
    return ring->data + (size_t)slots * bytes;
}

/* Where chunk e lies, of `bytes` bytes. */
static inline unsigned char *collx_ring_at(const struct collx_ring *ring, uint64_t e, size_t bytes)
{
    unsigned at = e % ring->slots;

    return bytes <= COLLX_INLINE ? ring->slot[at].payload : ring->data + (size_t)at * ring->bytes;
}

/* 2.  `from` NULL: of a root without memory; zeros then. */
static inline void collx_ring_put(const struct collx_team *team, struct collx_ring *ring,
                                  uint64_t e, const void *from, size_t bytes,
                                  struct collx_copier *copier)
{
    unsigned char *data = collx_ring_at(ring, e, bytes);

    if (!from)
        memset(data, 0, bytes);
    else if (bytes <= COLLX_INLINE)
        collx_copy_small(data, from, bytes);
    else
        collx_copy_in(copier, data, from, bytes);
    collx_flag_post(team, &ring->slot[e % ring->slots], e);
}

/* 3, when e is there.  `to` NULL: of a rank without memory; to nowhere. */
static inline void collx_ring_get(const struct collx_ring *ring, uint64_t e, void *to, size_t bytes,
                                  const struct collx_copier *copier)
{
    const unsigned char *data = collx_ring_at(ring, e, bytes);

    if (!to)
        return;
    if (bytes <= COLLX_INLINE)
        collx_copy_small(to, data, bytes);
    else
        collx_copy_out(copier, to, data, bytes);
}

/* The chunk that the first `ranks` ranks have finished with, at least. */
static inline uint64_t collx_ring_done(const struct collx_ring *ring, int ranks)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < ranks; rank++) {
        /* Acquire: pairs with (4); their reads of the slot are over before we overwrite it. */
        uint64_t done = atomic_load_explicit(&ring->done[rank].value, memory_order_acquire);
        least = done < least ? done : least;
    }
    return least;
}

/* Whether such a chunk goes in numbered lines. */
static inline bool collx_ring_lined(const struct collx_team *team, const struct collx_ring *ring,
                                    size_t bytes)
{
    return bytes > COLLX_INLINE && bytes <= COLLX_RING_LINED && ring->line && !team->crowded;
}

static inline struct collx_ring_line *collx_ring_lines(const struct collx_ring *ring, uint64_t e)
{
    return ring->line + e % ring->slots * COLLX_RING_LINES;
}

/* What of `bytes` bytes goes into, or comes from, one line. */
static inline void collx_ring_line_copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
    if (bytes >= COLLX_INLINE)
        memcpy(to, from, COLLX_INLINE);
    else
        collx_copy_small(to, from, bytes);
}

/* 2, where it is lined. */
static inline void collx_ring_put_lines(const struct collx_team *team, struct collx_ring *ring,
                                        uint64_t e, const unsigned char *from, size_t bytes)
{
    static const unsigned char zeros[COLLX_RING_LINED];
    struct collx_flag *flag = &ring->slot[e % ring->slots];
    struct collx_ring_line *line = collx_ring_lines(ring, e);

    from = from ? from : zeros;
    memcpy(flag->payload, from, COLLX_INLINE);
    collx_flag_post(team, flag, e);
    for (size_t at = COLLX_INLINE; at < bytes; at += COLLX_INLINE, line++) {
        collx_ring_line_copy(line->payload, from + at, bytes - at);
        /* Release: pairs with the acquire in collx_ring_line_reached; without it the number could
         * be seen before what it numbers. */
        atomic_store_explicit(&line->value, e, memory_order_release);
    }
}

static inline bool collx_ring_line_reached(const struct collx_ring_line *line, uint64_t e)
{
    return atomic_load_explicit(&line->value, memory_order_acquire) >= e;
}

/* The root has stopped between two lines. */
void collx_ring_wait_line(struct collx_team *team, const struct collx_ring_line *line, uint64_t e,
                          int root);

/* 3, where it is lined, when the flag says e. */
static inline void collx_ring_get_lines(struct collx_team *team, const struct collx_ring *ring,
                                        uint64_t e, int root, unsigned char *to, size_t bytes)
{
    const struct collx_ring_line *line = collx_ring_lines(ring, e);

    if (!to)
        return;
    memcpy(to, ring->slot[e % ring->slots].payload, COLLX_INLINE);
    for (size_t at = COLLX_INLINE; at < bytes; at += COLLX_INLINE, line++) {
        if (__builtin_expect(!collx_ring_line_reached(line, e), 0))
            collx_ring_wait_line(team, line, e, root);
        collx_ring_line_copy(to + at, line->payload, bytes - at);
    }
}

/* 1 to 4 for one chunk, from or to `buf`; NULL, of a rank without memory: from or to nowhere. */
static inline void collx_ring_pass_chunk(struct collx_team *team, struct collx_ring *ring, int root,
                                         void *buf, size_t bytes)
{
    uint64_t e = ++ring->chunk;
    const bool lined = collx_ring_lined(team, ring, bytes);

    if (team->rank == root) {
        if (e > ring->all_done + ring->slots) { /* 1 */
            uint64_t least = e - ring->slots;
            collx_wait_others(team, ring->done, sizeof *ring->done, least, "Bcast");
            ring->all_done = collx_ring_done(ring, team->size);
        }
        if (lined) /* 2 */
            collx_ring_put_lines(team, ring, e, buf, bytes);
        else
            collx_ring_put(team, ring, e, buf, bytes, &ring->copier);
    } else {
        collx_wait_for(team, &ring->slot[e % ring->slots], e, root, "Bcast"); /* 3 */
        if (lined)
            collx_ring_get_lines(team, ring, e, root, buf, bytes);
        else
            collx_ring_get(ring, e, buf, bytes, &ring->copier);
    }
    collx_flag_post(team, &ring->done[team->rank], e); /* 4 */
}

static inline size_t collx_ring_chunk(const struct collx_ring *ring, size_t bytes)
{
    return bytes < ring->bytes ? bytes : ring->bytes;
}

/* 5, after a message whose first chunk was `first`.  A wrong guess costs whoever still reads there,
 * or writes next, a moment. */
static inline void collx_ring_claim(const struct collx_team *team, struct collx_ring *ring,
                                    uint64_t first, size_t bytes)
{
    const uint64_t next = 2 * first - ring->rooted, chunks = ring->chunk + 1 - first;

    ring->rooted = first;
    if (bytes <= COLLX_CLAIM_MOST && !ring->copier.streaming &&
        next + chunks <= first + ring->slots)
        for (uint64_t e = next; e < next + chunks; e++) {
            size_t each = collx_ring_chunk(ring, bytes);
            if (collx_ring_lined(team, ring, each)) {
                collx_claim(team, &ring->slot[e % ring->slots], COLLX_LINE_LEAST);
                collx_claim(team, collx_ring_lines(ring, e), each - COLLX_INLINE);
            } else {
                collx_claim(team, collx_ring_at(ring, e, each), each);
            }
        }
}

/* A message, from or to `buf` likewise; not of 0 bytes. */
static inline void collx_ring_pass(struct collx_team *team, struct collx_ring *ring, int root,
                                   char *buf, size_t bytes)
{
    const uint64_t first = ring->chunk + 1;
    size_t at = 0;

    do {
        size_t chunk = collx_ring_chunk(ring, bytes - at);
        collx_ring_pass_chunk(team, ring, root, buf ? buf + at : NULL, chunk);
        at += chunk;
    } while (at < bytes);
    if (team->rank == root)
        collx_ring_claim(team, ring, first, bytes);
}

#endif
