#include "tests/ring_walk.h"

#include "algorithms/bcast/bcast_ring.h"

enum { MOST_SLOTS = COLLX_SMALL_SLOTS };
_Static_assert((int)MOST_SLOTS >= (int)COLLX_LARGE_SLOTS, "there is room for either ring");

/* Chunks, by their numbers. */
struct shared {
    uint64_t written[MOST_SLOTS]; /* the last one that lies there */
    uint64_t read[MOST_SLOTS];    /* the last one that was read there */
    uint64_t flag[MOST_SLOTS];
    uint64_t done[2];
};

struct walker {
    struct collx_ring ring;
    int rank;
    const struct ring_walk_message *message, *end;
    struct collx_ring_cut cut; /* of the message */
    uint64_t chunk;            /* of the message */
    bool seen;                 /* it is there */
};

static void begin_message(struct walker *self)
{
    self->chunk = 0;
    if (self->message < self->end)
        self->cut = collx_ring_next(&self->ring, self->message->root, self->message->bytes);
}

static void end_chunk(struct walker *self, struct shared *shared)
{
    shared->done[self->rank] = ++self->ring.chunk; /* 4 */
    self->seen = false;
    if (++self->chunk < self->cut.chunks)
        return;
    self->message++;
    begin_message(self);
}

/* These return whether there was nothing to wait for. */
static bool write_chunk(struct walker *self, struct shared *shared, unsigned at, const char **wrong)
{
    struct collx_ring *ring = &self->ring;
    const uint64_t e = ring->chunk + 1, before = collx_ring_last(ring, at, self->cut.slots);

    if (before > ring->all_done) { /* 1 */
        if (shared->done[!self->rank] < before)
            return false;
        ring->all_done = shared->done[0] < shared->done[1] ? shared->done[0] : shared->done[1];
    }
    for (unsigned i = at; i < at + self->cut.slots; i++) { /* 2 */
        if (shared->written[i] != shared->read[i])
            *wrong = "a chunk is overwritten before it has been read";
        shared->written[i] = e;
    }
    shared->flag[at] = e;
    collx_ring_use(ring, at, self->cut.slots, e);
    end_chunk(self, shared);
    return true;
}

/* That it is there, and reading it, are two steps. */
static bool read_chunk(struct walker *self, struct shared *shared, unsigned at, const char **wrong)
{
    struct collx_ring *ring = &self->ring;
    const uint64_t e = ring->chunk + 1;

    if (!self->seen) { /* 3 */
        self->seen = shared->flag[at] >= e;
        return self->seen;
    }
    for (unsigned i = at; i < at + self->cut.slots; i++) {
        if (shared->written[i] != e)
            *wrong = "another chunk lies where one is to be read";
        shared->read[i] = e;
    }
    collx_ring_use(ring, at, self->cut.slots, ring->swings ? 0 : e);
    end_chunk(self, shared);
    return true;
}

static bool step(struct walker *self, struct shared *shared, const char **wrong)
{
    if (self->message == self->end)
        return false;
    const unsigned at =
        collx_ring_slot(&self->ring, self->cut.first + self->chunk * self->cut.slots);
    if (at + self->cut.slots > self->ring.slots) {
        *wrong = "a chunk reaches beyond the ring's end";
        return false;
    }
    return self->rank == self->message->root ? write_chunk(self, shared, at, wrong)
                                             : read_chunk(self, shared, at, wrong);
}

static struct collx_ring large_ring(unsigned most)
{
    return (struct collx_ring){.slots = COLLX_LARGE_SLOTS,
                               .bytes = COLLX_LARGE_BYTES,
                               .step = 1,
                               .most = most,
                               .longest = COLLX_LONGEST * most};
}

static struct collx_ring small_ring(void)
{
    static struct collx_numbered lines; /* nobody writes there */

    return (struct collx_ring){.slots = COLLX_SMALL_SLOTS,
                               .bytes = COLLX_SMALL_SLOT,
                               .step = COLLX_SMALL_STEP,
                               .lines = &lines};
}

const char *ring_walk(const struct ring_walk_message *messages, int count, bool swings,
                      unsigned most, int (*next)(void *context), void *context)
{
    struct shared shared;
    struct walker walker[2];
    const char *wrong = NULL;

    memset(&shared, 0, sizeof shared);
    for (int rank = 0; rank < 2; rank++) {
        walker[rank] = (struct walker){.ring = most ? large_ring(most) : small_ring(),
                                       .rank = rank,
                                       .message = messages,
                                       .end = messages + count};
        walker[rank].ring.swings = swings;
        begin_message(&walker[rank]);
    }
    while (!wrong &&
           (walker[0].message < messages + count || walker[1].message < messages + count)) {
        const int first = next(context);
        if (!step(&walker[first], &shared, &wrong) && !step(&walker[!first], &shared, &wrong) &&
            !wrong)
            wrong = "both wait for each other";
    }
    if (!wrong && (walker[0].ring.chunk != walker[1].ring.chunk ||
                   walker[0].ring.place != walker[1].ring.place))
        wrong = "they do not count alike";
    return wrong;
}
