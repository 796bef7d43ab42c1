/* Bcast through rings in shared memory.
 *
 * All ranks of the team share two rings of slots, one for small messages and one, with larger
 * slots, through which long messages go in chunks.  Chunks are numbered, e = 1, 2, …, over all
 * calls that went through a ring; every rank counts alike, since the size of a message is equal on
 * all ranks.  Chunk e is in slot e mod SLOTS, whoever the root is.  For each chunk
 *
 *   root:    1. wait until every rank has finished with chunk e - SLOTS, which had this slot
 *            2. copy the chunk in, post e beside it
 *   others:  3. wait for e in the slot, copy out
 *   all:     4. post in one's own flag that one has finished with chunk e
 *
 * The root does not wait for the others to read: it waits in (1), when it comes round the ring,
 * and looks at their flags only then.  A message of at most COLLX_INLINE bytes lies in the line of
 * the flag itself.
 *
 * For long messages there is a second way, without the ring: bcast_single.c.  Where the kernel
 * allows it, the calls find out for each size which one is faster (tuner.h).
 */
#include "algorithms/bcast.h"
#include "algorithms/shm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

enum {
    SMALL_SLOTS = 16,
    SMALL_BYTES = 4096,
    LARGE_SLOTS = 32,
    LARGE_BYTES = 8192,
};

struct ring {
    struct collx_flag *slot; /* [slots] */
    unsigned char *data;     /* [slots][bytes] */
    struct collx_flag *done; /* one a rank: the chunk that it has finished with */
    uint64_t chunk;          /* the last one that we have finished with */
    uint64_t all_done;       /* every rank has finished with this one, as far as we know */
    unsigned slots, bytes;
    struct collx_copier copier;
};

struct bcast {
    struct collx_team *team;
    struct ring small, large;
    struct collx_single single;
};

static size_t ring_space(int ranks, unsigned slots, unsigned bytes)
{
    return slots * (sizeof(struct collx_flag) + bytes) + (size_t)ranks * sizeof(struct collx_flag);
}

static void *ring_init(struct ring *ring, void *memory, int ranks, unsigned slots, unsigned bytes)
{
    *ring = (struct ring){.slots = slots, .bytes = bytes};
    collx_copier_init(&ring->copier);
    ring->slot = memory;
    ring->done = (struct collx_flag *)(ring->slot + slots);
    ring->data = (unsigned char *)(ring->done + ranks);
    return ring->data + (size_t)slots * bytes;
}

/* Every rank has finished with this chunk, at least. */
static uint64_t least_done(const struct collx_team *team, const struct ring *ring)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < team->size; rank++) {
        /* Acquire: pairs with (4); their reads of the slot are over before we overwrite it. */
        uint64_t done = atomic_load_explicit(&ring->done[rank].value, memory_order_acquire);
        least = done < least ? done : least;
    }
    return least;
}

/* One chunk, from or to `buf`; NULL, of a rank without memory: from or to nowhere. */
static void pass(struct collx_team *team, struct ring *ring, int root, void *buf, size_t bytes)
{
    uint64_t e = ++ring->chunk;
    unsigned at = e % ring->slots;
    struct collx_flag *slot = &ring->slot[at];
    unsigned char *data =
        bytes <= COLLX_INLINE ? slot->payload : ring->data + (size_t)at * ring->bytes;

    if (team->rank == root) {
        if (e > ring->all_done + ring->slots) { /* 1 */
            uint64_t least = e - ring->slots;
            collx_wait_others(team, ring->done, sizeof *ring->done, least, "Bcast");
            ring->all_done = least_done(team, ring);
        }
        if (!buf) /* 2 */
            memset(data, 0, bytes);
        else if (bytes <= COLLX_INLINE)
            collx_copy_small(data, buf, bytes);
        else
            collx_copy_in(&ring->copier, data, buf, bytes);
        collx_flag_post(team, slot, e);
    } else {
        collx_wait_for(team, slot, e, root, "Bcast"); /* 3 */
        if (!buf)
            ;
        else if (bytes <= COLLX_INLINE)
            collx_copy_small(buf, data, bytes);
        else
            collx_copy_out(&ring->copier, buf, data, bytes);
    }
    collx_flag_post(team, &ring->done[team->rank], e); /* 4 */
}

static size_t chunk_at(size_t bytes, size_t at)
{
    return bytes - at < LARGE_BYTES ? bytes - at : LARGE_BYTES;
}

static void run_ring(struct bcast *bcast, int root, char *buf, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LARGE_BYTES)
        pass(bcast->team, &bcast->large, root, buf ? buf + at : NULL, chunk_at(bytes, at));
}

/* `buf` NULL: this rank has no memory for the message; it takes part all the same. */
static int run_bytes(struct bcast *bcast, int root, void *buf, size_t bytes)
{
    int error = 0;

    if (bytes <= SMALL_BYTES) {
        pass(bcast->team, &bcast->small, root, buf, bytes);
        return 0;
    }
    if (bytes < COLLX_SINGLE_LEAST) {
        run_ring(bcast, root, buf, bytes);
        return 0;
    }
    unsigned way = collx_single_begin(&bcast->single, bytes);
    if (way == 0)
        run_ring(bcast, root, buf, bytes);
    else
        error = collx_bcast_single(&bcast->single, root, buf, bytes, way == 2);
    collx_single_end(&bcast->single);
    return error;
}

/* A datatype that is not simply bytes in order: everything is packed first and unpacked last,
 * since root and leaves may cut the same bytes into different elements. */
static int run_packed(struct bcast *bcast, struct collx_call *call)
{
    struct collx_team *team = bcast->team;
    unsigned char bounce[SMALL_BYTES];
    unsigned char *packed = call->bytes <= sizeof bounce ? bounce : malloc(call->bytes);
    int error = 0;

    if (!packed) {
        run_bytes(bcast, call->root, NULL, call->bytes);
        return team->ops->no_memory;
    }
    if (team->rank == call->root)
        error = team->ops->pack(team->ctx, call, call->rbuf, 0, call->count, packed);
    if (error)
        memset(packed, 0, call->bytes);
    int passed = run_bytes(bcast, call->root, packed, call->bytes);
    error = error ? error : passed;
    if (!error && team->rank != call->root)
        error = team->ops->unpack(team->ctx, call, packed, call->rbuf, 0, call->count);
    if (packed != bounce)
        free(packed);
    return error;
}

static int collx_bcast_shm_run(struct collx_slot *slot, struct collx_call *call)
{
    struct bcast *bcast = slot->state;

    if (bcast->team->size == 1 || call->bytes == 0)
        return 0;
    if (!call->contiguous)
        return run_packed(bcast, call);
    return run_bytes(bcast, call->root, call->rbuf, call->bytes);
}

static int collx_bcast_shm_query(const struct collx_facts *facts, const struct collx_args *args,
                                 char *why, size_t size)
{
    (void)args;
    return collx_query_one_node(facts, why, size);
}

static size_t collx_bcast_shm_space(const struct collx_facts *facts, const struct collx_args *args)
{
    (void)args;
    if (facts->ranks == 1)
        return 0;
    return ring_space(facts->ranks, SMALL_SLOTS, SMALL_BYTES) +
           ring_space(facts->ranks, LARGE_SLOTS, LARGE_BYTES) + collx_meeting_space(facts->ranks) +
           collx_single_space(facts->ranks);
}

/* Root and leaves may cut the same bytes into elements of different size, so only the bytes may
 * decide.  MPI_Pack counts them in int. */
static bool collx_bcast_shm_takes(const void *state, const struct collx_call *call)
{
    (void)state;
    return call->bytes <= INT_MAX;
}

static const char *const ways[] = {"through the segment", "from the root's buffer",
                                   "from the root's buffer, which helps", NULL};

static int collx_bcast_shm_attach(struct collx_team *team, const struct collx_args *args,
                                  void *memory, struct collx_slot *slot)
{
    struct bcast *bcast = calloc(1, sizeof *bcast);

    if (!bcast)
        return -ENOMEM;
    bcast->team = team;
    memory = ring_init(&bcast->small, memory, team->size, SMALL_SLOTS, SMALL_BYTES);
    memory = ring_init(&bcast->large, memory, team->size, LARGE_SLOTS, LARGE_BYTES);
    collx_single_init(&bcast->single, team, memory, args->value[0], ways, "Bcast");
    slot->state = bcast;
    slot->run = collx_bcast_shm_run;
    return 0;
}

const struct collx_algorithm collx_bcast_shm = {
    .name = "shm",
    .help = "rings in shared memory; long messages are pipelined through them",
    .needs = "all ranks on one node",
    .kind = COLLX_BCAST,
    .params = collx_single_params,
    .query = collx_bcast_shm_query,
    .space = collx_bcast_shm_space,
    .attach = collx_bcast_shm_attach,
    .takes = collx_bcast_shm_takes,
    .detach = free,
};
