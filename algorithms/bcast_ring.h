/* A ring of slots in shared memory, through which a root passes chunks to all others.
 *
 * Chunks are numbered, e = 1, 2, …, over all calls that went through a ring; every rank counts
 * alike, since the size of a message is equal on all ranks.  Chunk e is in slot e mod SLOTS,
 * whoever the root is.  For each chunk
 *
 *   root:    1. wait until every rank has finished with chunk e - SLOTS, which had this slot
 *            2. copy the chunk in, post e beside it
 *   others:  3. wait for e in the slot, copy out; one that is alone returns the lines (copy.h)
 *   all:     4. post in one's own flag that one has finished with chunk e
 *   root, after the message:
 *            5. claim the slots that it will write to when it is root again, if that takes as many
 *               chunks as the last time
 *
 * The root does not wait for the others to read: it waits in (1), when it comes round the ring,
 * and looks at their flags only then.
 *
 * In a ring for short messages it is in slot e * STEP mod SLOTS.  Who reads a slot makes its CPU
 * fetch what follows in memory, too, and that shall not be what a root has just claimed: it is
 * the slot of three chunks before.  Long messages, of many chunks, gain by being fetched ahead.
 *
 * A chunk of at most COLLX_INLINE bytes lies in the line of the flag itself; one of a few times as
 * many may go on in numbered lines (numbered.h).  Beside the flag of a long one is whether its
 * lines are worth returning.
 */
#ifndef COLLX_BCAST_RING_H
#define COLLX_BCAST_RING_H

#include "algorithms/numbered.h"

/* For small messages, and for chunks of long ones; fewer and longer ones where CPUs write whole
 * lines (copy_ways.h). */
enum {
    COLLX_SMALL_SLOTS = 16,
    COLLX_SMALL_BYTES = 4096,
    COLLX_LARGE_SLOTS = 32,
    COLLX_LARGE_BYTES = 8192,
    COLLX_WHOLE_SLOTS = 16,
    COLLX_WHOLE_BYTES = 16384,
    COLLX_SMALL_STEP = 5,
};
_Static_assert((COLLX_SMALL_SLOTS & (COLLX_SMALL_SLOTS - 1)) == 0 &&
                   (COLLX_LARGE_SLOTS & (COLLX_LARGE_SLOTS - 1)) == 0 &&
                   (COLLX_WHOLE_SLOTS & (COLLX_WHOLE_SLOTS - 1)) == 0,
               "collx_ring_slot() finds a chunk without a division");
_Static_assert(COLLX_SMALL_STEP & 1, "else not all slots are used");
_Static_assert(COLLX_WHOLE_SLOTS <= COLLX_LARGE_SLOTS &&
                   COLLX_WHOLE_SLOTS * COLLX_WHOLE_BYTES <= COLLX_LARGE_SLOTS * COLLX_LARGE_BYTES,
               "the large ring has room for either");

struct collx_ring {
    struct collx_flag *slot;      /* [slots] */
    struct collx_numbered *lines; /* [slots]; NULL: it has none */
    unsigned char *data;          /* [slots][bytes] */
    struct collx_flag *done;      /* one a rank: the chunk that it has finished with; beside it,
                                   * whether it returns lines */
    uint64_t chunk;               /* the last one that we have finished with */
    uint64_t all_done;            /* every rank has finished with this one, as far as we know */
    uint64_t rooted;              /* the first one of the last message of which we were the root */
    unsigned slots, bytes, step;
    struct collx_copier copier;
};

/* `lined`: for short messages; such as fit go in numbered lines. */
static inline size_t collx_ring_space(int ranks, unsigned slots, unsigned bytes, bool lined)
{
    const size_t lines = lined ? sizeof(struct collx_numbered) : 0;

    return (slots + (size_t)ranks) * sizeof(struct collx_flag) + slots * (lines + bytes);
}

/* `memory`: collx_ring_space() bytes, the same on all ranks, zeroed.  Returns what follows them. */
static inline void *collx_ring_init(struct collx_ring *ring, void *memory, int ranks,
                                    unsigned slots, unsigned bytes, bool lined)
{
    *ring =
        (struct collx_ring){.slots = slots, .bytes = bytes, .step = lined ? COLLX_SMALL_STEP : 1};
    collx_copier_init(&ring->copier);
    ring->slot = memory;
    ring->done = (struct collx_flag *)(ring->slot + slots);
    ring->lines = lined ? (struct collx_numbered *)(ring->done + ranks) : NULL;
    ring->data =
        lined ? (unsigned char *)(ring->lines + slots) : (unsigned char *)(ring->done + ranks);
    return ring->data + (size_t)slots * bytes;
}

static inline unsigned collx_ring_slot(const struct collx_ring *ring, uint64_t e)
{
    return (unsigned)e * ring->step & (ring->slots - 1);
}

/* Where chunk e lies, of `bytes` bytes. */
static inline unsigned char *collx_ring_at(const struct collx_ring *ring, uint64_t e, size_t bytes)
{
    unsigned at = collx_ring_slot(ring, e);

    return bytes <= COLLX_INLINE ? ring->slot[at].payload : ring->data + (size_t)at * ring->bytes;
}

/* 2.  `from` NULL: of a root without memory; zeros then. */
static inline void collx_ring_put(const struct collx_team *team, struct collx_ring *ring,
                                  uint64_t e, const void *from, size_t bytes)
{
    unsigned char *data = collx_ring_at(ring, e, bytes);

    if (!from)
        memset(data, 0, bytes);
    else if (bytes <= COLLX_INLINE)
        collx_copy_small(data, from, bytes);
    else
        collx_copy_in(&ring->copier, data, from, bytes);
    collx_post_copied(team, &ring->copier, &ring->slot[collx_ring_slot(ring, e)], e, bytes);
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

/* Of the only reader: return a chunk, if it is worth it, and tell the root whether we do. */
static inline void collx_ring_return(const struct collx_team *team, struct collx_ring *ring,
                                     uint64_t e, size_t bytes)
{
    if (bytes < COLLX_COPY_RETURNED)
        return;
    if (ring->slot[collx_ring_slot(ring, e)].payload[0])
        collx_copy_return(&ring->copier, collx_ring_at(ring, e, bytes), bytes);
    /* Relaxed, as where it is read: results do not depend on it. */
    __atomic_store_n(&ring->done[team->rank].payload[0], ring->copier.returns, __ATOMIC_RELAXED);
}

/* Whether such a chunk goes in numbered lines. */
static inline bool collx_ring_lined(const struct collx_team *team, const struct collx_ring *ring,
                                    size_t bytes)
{
    return ring->lines && collx_numbered_suits(team, bytes);
}

/* 1 to 4 for one chunk, from or to `buf`; NULL, of a rank without memory: from or to nowhere. */
static inline void collx_ring_pass_chunk(struct collx_team *team, struct collx_ring *ring, int root,
                                         void *buf, size_t bytes)
{
    static const unsigned char zeros[COLLX_NUMBERED_MOST];
    const uint64_t e = ++ring->chunk;
    const unsigned at = collx_ring_slot(ring, e);
    const bool lined = collx_ring_lined(team, ring, bytes);

    if (team->rank == root) {
        if (e > ring->all_done + ring->slots) { /* 1 */
            uint64_t least = e - ring->slots;
            collx_wait_others(team, ring->done, sizeof *ring->done, least, "Bcast");
            ring->all_done = collx_ring_done(ring, team->size);
            if (team->size == 2)
                ring->copier.returned =
                    __atomic_load_n(&ring->done[!root].payload[0], __ATOMIC_RELAXED);
        }
        if (lined) /* 2 */
            collx_numbered_put(team, &ring->slot[at], &ring->lines[at], e, buf ? buf : zeros,
                               bytes);
        else
            collx_ring_put(team, ring, e, buf, bytes);
    } else {
        collx_wait_for(team, &ring->slot[at], e, root, "Bcast"); /* 3 */
        if (lined && buf)
            collx_numbered_get(team, &ring->slot[at], &ring->lines[at], e, root, "Bcast", buf,
                               bytes);
        else
            collx_ring_get(ring, e, buf, bytes, &ring->copier);
        if (team->size == 2 && lined)
            collx_numbered_return(&ring->copier, &ring->lines[at], bytes);
        else if (team->size == 2)
            collx_ring_return(team, ring, e, bytes);
    }
    collx_flag_post(team, &ring->done[team->rank], e); /* 4 */
}

/* In how large chunks a message goes: at least in two, if it is not small, so that the others copy
 * the first one while the root is at the second; and while they are few, in shorter ones. */
static inline size_t collx_ring_chunk(const struct collx_ring *ring, size_t bytes)
{
    const size_t most = bytes <= COLLX_LARGE_BYTES       ? COLLX_SMALL_BYTES
                        : bytes <= 4 * COLLX_LARGE_BYTES ? COLLX_LARGE_BYTES
                                                         : ring->bytes;

    return bytes < most ? bytes : most;
}

/* 5, after a message whose first chunk was `first`.  A wrong guess costs whoever still reads there,
 * or writes next, a moment. */
static inline void collx_ring_claim(const struct collx_team *team, struct collx_ring *ring,
                                    uint64_t first, size_t bytes)
{
    const uint64_t next = 2 * first - ring->rooted, chunks = ring->chunk + 1 - first;
    const size_t each = collx_ring_chunk(ring, bytes);

    ring->rooted = first;
    if (collx_copy_claims(&ring->copier, bytes, each) && next + chunks <= first + ring->slots)
        for (uint64_t e = next; e < next + chunks; e++) {
            const unsigned at = collx_ring_slot(ring, e);
            collx_claim_line(team, &ring->slot[at].claimed);
            if (collx_ring_lined(team, ring, each))
                collx_numbered_claim(team, &ring->lines[at], each);
            else if (each > COLLX_INLINE)
                collx_claim(team, collx_ring_at(ring, e, each), each);
        }
}

/* A message, from or to `buf` likewise; not of 0 bytes. */
static inline void collx_ring_pass(struct collx_team *team, struct collx_ring *ring, int root,
                                   char *buf, size_t bytes)
{
    const uint64_t first = ring->chunk + 1;
    const size_t each = collx_ring_chunk(ring, bytes);
    size_t at = 0;

    do {
        collx_ring_pass_chunk(team, ring, root, buf ? buf + at : NULL,
                              bytes - at < each ? bytes - at : each);
    } while ((at += each) < bytes);
    if (team->rank == root)
        collx_ring_claim(team, ring, first, bytes);
}

#endif
