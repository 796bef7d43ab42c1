/* A ring of slots in shared memory, through which a root passes chunks to all others.
 *
 * Chunks are numbered, e = 1, 2, …, over all calls that went through a ring; every rank counts
 * alike, since the size of a message is equal on all ranks.  A chunk lies in a slot, or in several
 * in a row, of which the first one's flag counts.  For each
 *
 *   root:    1. wait until every rank has finished with what had these slots before
 *            2. copy the chunk in, post e beside it
 *   others:  3. wait for e in the slot, copy out; one that is alone returns the lines (copy.h)
 *   all:     4. post in one's own flag that one has finished with chunk e
 *   root, after the message:
 *            5. claim the slots that it will write to when it is root again, if that takes as many
 *               chunks as the last time; but not for longer messages while it runs ahead of the
 *               others: it writes there at once in any case, and they want their lines now
 *
 * The root does not wait for the others to read: it waits in (1), when it comes round the ring,
 * and looks at their flags only then.  That costs a trip to each of them, so the shortest messages
 * have a ring of many slots.
 *
 * Messages lie in the ring one behind the other, whoever the root is; but between two ranks the
 * ring may *swing*: those of rank 0 go forward from where the last one of rank 0 ended, or the last
 * one of rank 1 began, and those of rank 1 end there, and go backward.  So when the root changes,
 * it writes where it has just read: there it need not wait in (1), the lines are in its caches, and
 * nobody has to return them.  As long as it does not change, the ring is one as any other, and so
 * it is for a message that goes round it more than once.
 *
 * In a ring for small messages slots that follow each other are STEP apart.  Who reads a slot makes
 * its CPU fetch what follows in memory, too, and that shall not be what a root has just claimed: it
 * is of three chunks before, or of the shortest that of thirteen later.  Long messages, of many
 * chunks, gain by being fetched ahead.
 *
 * A chunk of at most COLLX_INLINE bytes lies in the line of the flag itself; one of a few times as
 * many may go on in numbered lines (numbered.h), but not where the ring has swung: a root that has
 * all lines posts at once in any case, and numbers only take their time.  Beside the flag of a long
 * one is whether its lines are worth returning.
 */
#ifndef COLLX_BCAST_RING_H
#define COLLX_BCAST_RING_H

#include "algorithms/within/numbered.h"
#include "base/layout.h"

/* Slots, and bytes of one: for small messages, and for chunks of long ones. */
enum {
    COLLX_SMALL_SLOTS = 64,
    COLLX_SMALL_SLOT = 1024,
    /* The longest small message, and the longest that takes but one slot.  Any longer one takes as
     * many as the longest: through more slots they would not stay in a CPU's first cache. */
    COLLX_SMALL_BYTES = 4096,
    COLLX_SHORT = 128,
    COLLX_LARGE_SLOTS = 32,
    COLLX_LARGE_BYTES = 8192,
    COLLX_SMALL_STEP = 5,
    /* Messages, between two looks whether a root is ahead: a look takes a trip to each of the
     * others. */
    COLLX_LOOK_EVERY = 8,
    /* Bytes: such short messages gain by claims even if the others are behind. */
    COLLX_CLAIM_ALWAYS = 1024,
    /* Chunks where CPUs write whole lines (copy_ways.h). */
    COLLX_WHOLE_BYTES = 16384,
    /* Those of the longest messages are so many times as long: the stores of one have to be over
     * before the root begins with the next. */
    COLLX_LONGEST = 4,
};
_Static_assert((COLLX_SMALL_SLOTS & (COLLX_SMALL_SLOTS - 1)) == 0 &&
                   (COLLX_LARGE_SLOTS & (COLLX_LARGE_SLOTS - 1)) == 0,
               "collx_ring_slot() finds a chunk without a division");
_Static_assert((COLLX_SMALL_BYTES & (COLLX_SMALL_BYTES - 1)) == 0 &&
                   (COLLX_SMALL_SLOT & (COLLX_SMALL_SLOT - 1)) == 0 &&
                   (COLLX_LARGE_BYTES & (COLLX_LARGE_BYTES - 1)) == 0 &&
                   (COLLX_WHOLE_BYTES & (COLLX_WHOLE_BYTES - 1)) == 0,
               "nor does collx_ring_next() divide");
_Static_assert((COLLX_LONGEST & (COLLX_LONGEST - 1)) == 0 &&
                   2 * COLLX_LONGEST * COLLX_WHOLE_BYTES <= COLLX_LARGE_SLOTS * COLLX_LARGE_BYTES,
               "a root writes to a slot while another one is read");
_Static_assert(COLLX_SMALL_STEP & 1, "else not all slots are used");
_Static_assert(COLLX_INLINE >= 32 && COLLX_SHORT <= 128,
               "collx_copy_short() takes what is between");
_Static_assert(COLLX_SHORT <= COLLX_SMALL_SLOT && COLLX_SMALL_SLOT <= COLLX_SMALL_BYTES,
               "a small message has room in the slots that it takes");
_Static_assert(COLLX_LARGE_SLOTS <= COLLX_SMALL_SLOTS, "collx_ring.used has one for each");

struct collx_ring {
    struct collx_flag *slot;      /* [slots] */
    struct collx_numbered *lines; /* [slots]; NULL: it has none */
    unsigned char *data;          /* [slots][bytes] */
    struct collx_flag *done;      /* one a rank: the chunk that it has finished with; beside it,
                                   * whether it returns lines */
    uint64_t chunk;               /* the last one that we have finished with */
    uint64_t all_done;            /* every rank has finished with this one, as far as we know */
    /* The last chunk that was in each slot; 0, if nobody but us has read there. */
    uint64_t used[COLLX_SMALL_SLOTS];
    uint64_t place;  /* of the next message of rank 0: slots forward from the beginning */
    uint64_t rooted; /* of the last message of which we were the root */
    unsigned slots, bytes, step;
    /* Bytes of the chunks of long messages, and of such as take more than LARGE_SLOTS of those; to
     * be set by the user, if they are longer than a slot. */
    unsigned most, longest;
    bool swings;     /* to be set by the user, of two ranks */
    int last_root;   /* of the last message; -1: there was none */
    bool runs_ahead; /* when we began a message, somebody was not through with the one before */
    unsigned looks;
    struct collx_copier copier;
};

/* `lined`: for short messages; such as fit go in numbered lines. */
size_t collx_ring_space(int ranks, unsigned slots, unsigned bytes, bool lined);

/* `memory`: collx_ring_space() bytes, the same on all ranks, zeroed.  Returns what follows them. */
void *collx_ring_init(struct collx_ring *ring, void *memory, int ranks, unsigned slots,
                      unsigned bytes, bool lined);

/* Zero such memory, which may hold anything, but for what is copied in before anybody looks there.
 * Returns what follows it. */
void *collx_ring_clear(void *memory, int ranks, unsigned slots, unsigned bytes, bool lined);

static inline unsigned collx_ring_slot(const struct collx_ring *ring, uint64_t place)
{
    return (unsigned)place * ring->step & (ring->slots - 1);
}

/* Where a chunk of `bytes` bytes lies, from slot `at` on. */
static inline unsigned char *collx_ring_at(const struct collx_ring *ring, unsigned at, size_t bytes)
{
    return bytes <= COLLX_INLINE ? ring->slot[at].payload : ring->data + (size_t)at * ring->bytes;
}

/* 2.  `from` NULL: of a root without memory; zeros then.  `here`: these are lines that this rank
 * has read last. */
static inline void collx_ring_put(const struct collx_team *team, struct collx_ring *ring,
                                  uint64_t e, unsigned at, const void *from, size_t bytes,
                                  bool here)
{
    unsigned char *data = collx_ring_at(ring, at, bytes);

    if (!from)
        memset(data, 0, bytes);
    else if (bytes <= COLLX_INLINE)
        collx_copy_small(data, from, bytes);
    else if (here && bytes <= COLLX_SHORT)
        collx_copy_short(data, from, bytes);
    else if (here)
        ring->copier.ways.wide(data, from, bytes);
    else
        collx_copy_in(&ring->copier, data, from, bytes);
    collx_post_copied(team, &ring->copier, &ring->slot[at], e, bytes);
}

/* 3, when it is there.  `to` NULL: of a rank without memory; to nowhere. */
static inline void collx_ring_get(const struct collx_ring *ring, unsigned at, void *to,
                                  size_t bytes, const struct collx_copier *copier)
{
    const unsigned char *data = collx_ring_at(ring, at, bytes);

    if (!to)
        return;
    if (bytes <= COLLX_INLINE)
        collx_copy_small(to, data, bytes);
    else if (bytes <= COLLX_SHORT)
        collx_copy_short(to, data, bytes);
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
                                     unsigned at, size_t bytes)
{
    if (bytes < COLLX_COPY_RETURNED)
        return;
    if (ring->slot[at].payload[0])
        collx_copy_return(&ring->copier, collx_ring_at(ring, at, bytes), bytes);
    /* Relaxed, as where it is read: results do not depend on it. */
    __atomic_store_n(&ring->done[team->rank].payload[0], ring->copier.returns, __ATOMIC_RELAXED);
}

/* Whether such a chunk goes in numbered lines, unless its ring has swung. */
static inline bool collx_ring_lined(const struct collx_team *team, const struct collx_ring *ring,
                                    size_t bytes)
{
    return ring->lines && collx_numbered_suits(team, bytes);
}

/* Of a message: what all chunks have in common but the last, which may be shorter. */
struct collx_ring_cut {
    size_t each;     /* bytes */
    unsigned slots;  /* of a chunk */
    uint64_t chunks; /* how many */
    uint64_t first;  /* place of the first one */
    bool swings;     /* it goes where its root has read, if that one has just done so */
    bool swung;      /* and it has: the last root was another one, or there was none */
};

/* At least two chunks, if it is not small, so that the others copy the first one while the root is
 * at the second; and while they are few, shorter ones. */
static inline size_t collx_ring_chunk(const struct collx_ring *ring, size_t bytes)
{
    const size_t most = bytes <= COLLX_LARGE_BYTES                        ? COLLX_SMALL_BYTES
                        : bytes <= 4 * COLLX_LARGE_BYTES                  ? COLLX_LARGE_BYTES
                        : bytes <= (size_t)COLLX_LARGE_SLOTS * ring->most ? ring->most
                                                                          : ring->longest;

    return bytes < most ? bytes : most;
}

/* Cut the next message, and find a place for it.  A chunk of several slots begins where a multiple
 * of them does, lest it be cut in two at the ring's end. */
static inline struct collx_ring_cut collx_ring_next(struct collx_ring *ring, int root, size_t bytes)
{
    struct collx_ring_cut cut = {.each = collx_ring_chunk(ring, bytes), .slots = 1, .chunks = 1};

    if (ring->lines)
        cut.slots = cut.each <= COLLX_SHORT ? 1 : COLLX_SMALL_BYTES / COLLX_SMALL_SLOT;
    else if (cut.each > ring->bytes)
        cut.slots = (unsigned)(cut.each >> __builtin_ctz(ring->bytes));
    if (bytes > cut.each)
        cut.chunks = (bytes + cut.each - 1) >> __builtin_ctzll(cut.each);
    const uint64_t used = cut.chunks * cut.slots, mask = -(uint64_t)cut.slots;
    cut.swings = ring->swings && used <= ring->slots;
    cut.swung = cut.swings && root != ring->last_root;
    if (cut.swings && root == 1) {
        cut.first = (ring->place & mask) - used;
        ring->place = cut.first;
    } else {
        cut.first = (ring->place + cut.slots - 1) & mask;
        ring->place = cut.first + used;
    }
    return cut;
}

/* The last chunk that was in the slots from `at` on. */
static inline uint64_t collx_ring_last(const struct collx_ring *ring, unsigned at, unsigned slots)
{
    uint64_t e = ring->used[at];

    for (unsigned i = 1; i < slots; i++)
        e = ring->used[at + i] > e ? ring->used[at + i] : e;
    return e;
}

/* What the others have finished with, and whether the only one returns lines. */
static inline void collx_ring_hear(const struct collx_team *team, struct collx_ring *ring)
{
    ring->all_done = collx_ring_done(ring, team->size);
    if (team->size == 2)
        ring->copier.returned =
            __atomic_load_n(&ring->done[!team->rank].payload[0], __ATOMIC_RELAXED);
}

/* 1, for the slots from `at` on.  Returns whether this rank has read all of them last. */
static inline bool collx_ring_make_room(struct collx_team *team, struct collx_ring *ring,
                                        unsigned at, unsigned slots)
{
    const uint64_t e = collx_ring_last(ring, at, slots);

    if (__builtin_expect(e > ring->all_done, 0)) {
        collx_wait_others(team, ring->done, sizeof *ring->done, e, "Bcast");
        collx_ring_hear(team, ring);
        if (ring->lines)
            ring->runs_ahead = ring->all_done + 1 < ring->chunk;
    }
    return !e;
}

/* Of a root, before a message for which it is going to claim: now and then it looks whether it is
 * ahead of others.  For small ones, each of which is one chunk, it looks when it makes room. */
static inline void collx_ring_look(const struct collx_team *team, struct collx_ring *ring,
                                   const struct collx_ring_cut *cut, size_t bytes)
{
    if (ring->lines || ring->last_root != team->rank || team->crowded ||
        !collx_copy_claims(&ring->copier, bytes, cut->each) || ++ring->looks % COLLX_LOOK_EVERY)
        return;
    collx_ring_hear(team, ring);
    ring->runs_ahead = ring->all_done < ring->chunk;
}

static inline void collx_ring_use(struct collx_ring *ring, unsigned at, unsigned slots, uint64_t e)
{
    for (unsigned i = 0; i < slots; i++)
        ring->used[at + i] = e;
}

/* 3, for chunk e of `root`, in the slots from `at` on, where it has not come soon. */
void collx_ring_wait_long(struct collx_team *team, struct collx_ring *ring, unsigned at,
                          unsigned slots, uint64_t e, int root);

/* 1 to 4 for chunk `i` of a message, of `bytes` bytes, from or to `buf`; NULL, of a rank without
 * memory: from or to nowhere.  For what goes in numbered lines everybody has memory.  Always
 * inline: as below. */
static inline __attribute__((always_inline)) void
collx_ring_pass_chunk(struct collx_team *team, struct collx_ring *ring, int root,
                      const struct collx_ring_cut *cut, uint64_t i, void *buf, size_t bytes)
{
    const uint64_t e = ++ring->chunk;
    const unsigned at = collx_ring_slot(ring, cut->first + i * cut->slots);
    const bool lined = !cut->swung && collx_ring_lined(team, ring, bytes);

    if (team->rank == root) {
        const bool here = collx_ring_make_room(team, ring, at, cut->slots); /* 1 */
        if (lined)                                                          /* 2 */
            collx_numbered_put(team, &ring->slot[at], &ring->lines[at], e, buf, bytes);
        else
            collx_ring_put(team, ring, e, at, buf, bytes, here && cut->swings);
        collx_ring_use(ring, at, cut->slots, e);
    } else {
        if (__builtin_expect(!collx_spin_for(team, &ring->slot[at], e), 0)) /* 3 */
            collx_ring_wait_long(team, ring, at, cut->slots, e, root);
        if (lined)
            collx_numbered_get(team, &ring->slot[at], &ring->lines[at], e, root, "Bcast", buf,
                               bytes);
        else
            collx_ring_get(ring, at, buf, bytes, &ring->copier);
        /* Who has just been root is likely to be so again, and then writes there itself. */
        if (team->size == 2 && !(cut->swings && ring->last_root == team->rank)) {
            if (lined)
                collx_numbered_return(&ring->copier, &ring->lines[at], bytes);
            else
                collx_ring_return(team, ring, at, bytes);
        }
        /* Of two ranks we alone had to read there, and have. */
        collx_ring_use(ring, at, cut->slots, ring->swings ? 0 : e);
    }
    collx_flag_post(team, &ring->done[team->rank], e); /* 4 */
}

/* 5, after such a message, for one that does not swing.  A wrong guess costs whoever still reads
 * there, or writes next, a moment. */
static inline void collx_ring_claim(const struct collx_team *team, struct collx_ring *ring,
                                    const struct collx_ring_cut *cut, size_t bytes)
{
    const uint64_t apart = cut->first - ring->rooted, used = cut->chunks * cut->slots;
    /* Where the other one has been root as often, the next message comes to where we read first. */
    const int64_t ahead = (int64_t)(ring->swings && team->rank == 1 ? -apart : apart);

    ring->rooted = cut->first;
    if ((ring->runs_ahead && bytes > COLLX_CLAIM_ALWAYS) || ahead < (int64_t)used ||
        (uint64_t)ahead + used > ring->slots || !collx_copy_claims(&ring->copier, bytes, cut->each))
        return;
    for (uint64_t i = 0; i < used; i += cut->slots) {
        const unsigned at = collx_ring_slot(ring, cut->first + apart + i);
        collx_claim_line(team, &ring->slot[at].claimed);
        if (collx_ring_lined(team, ring, cut->each))
            collx_numbered_claim(team, &ring->lines[at], cut->each);
        else if (cut->each > COLLX_INLINE)
            collx_claim(team, collx_ring_at(ring, at, cut->each), cut->each);
    }
}

/* The chunks of a message, from or to `buf` likewise; not of 0 bytes.  `layout` NULL, or that of
 * the elements at `buf`: then each chunk is packed at `packed`, of cut->each bytes, NULL likewise.
 */
static inline __attribute__((always_inline)) void
collx_ring_pass_chunks(struct collx_team *team, struct collx_ring *ring, int root,
                       const struct collx_ring_cut *cut, char *buf, size_t bytes,
                       const struct collx_layout *layout, char *packed)
{
    if (team->rank == root)
        collx_ring_look(team, ring, cut, bytes);
    for (uint64_t i = 0; i < cut->chunks; i++) {
        const size_t at = i * cut->each, some = bytes - at < cut->each ? bytes - at : cut->each;
        char *chunk = layout ? packed : buf ? buf + at : NULL;

        if (layout && chunk && team->rank == root)
            collx_layout_pack(layout, buf, at, some, chunk);
        collx_ring_pass_chunk(team, ring, root, cut, i, chunk, some);
        if (layout && chunk && team->rank != root)
            collx_layout_unpack(layout, chunk, buf, at, some);
    }
    ring->last_root = root;
    if (team->rank == root)
        collx_ring_claim(team, ring, cut, bytes);
}

/* A message.  Always inline: where messages are known to be short there is but one chunk. */
static inline __attribute__((always_inline)) void
collx_ring_pass(struct collx_team *team, struct collx_ring *ring, int root, char *buf, size_t bytes)
{
    const struct collx_ring_cut cut = collx_ring_next(ring, root, bytes);

    collx_ring_pass_chunks(team, ring, root, &cut, buf, bytes, NULL, NULL);
}

/* The same of elements with gaps, at `buf`, and not of a small message: others copy a chunk while
 * the root packs the next.  0 or the lender's error. */
int collx_ring_pass_gapped(struct collx_team *team, struct collx_ring *ring, int root,
                           const struct collx_layout *layout, void *buf, size_t bytes);

#endif
