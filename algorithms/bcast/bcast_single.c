/* Bcast in one copy, in two ways: the others read from the root's buffer, or whoever has the whole
 * message helps them, and writes into theirs at the same time: the root, and those that have
 * finished.  Help makes long messages twice as fast; but what a helper writes is in its cache then,
 * not in that of the rank that wants it.
 *
 * The message is cut into chunks.  Who does a chunk is who takes it first:
 *
 *   others:  1. lay out the chunks (none taken), open the buffer
 *            2. when the root's buffer is open: take a chunk and read it, until none is left
 *            3. wait until those that helpers took are there; step
 *   root:    a. step, open the buffer
 *   all:     4. if they help: for everybody whose buffer is open: take a chunk and write it, until
 *               none is left; the root does so until all buffers have been open
 *   root:    b. wait until everybody has stepped
 *
 * A rank that is late finds its chunks written.  With more ranks than CPUs, one that has no CPU
 * loses no time by it, as long as those that have one find something to do.
 *
 * What a helper could not write its reader reads in (3).
 */
#include "algorithms/bcast/bcast.h"

#include "hw/cma.h"

#include <limits.h>
#include <sched.h>

/* Chunks: enough of them that both finish together, large enough that a system call each does not
 * show. */
enum { CHUNKS = 4, CHUNK_LEAST = 8192, CHUNK_MOST = 131072, PAGE = 4096 };

/* Chunks taken, and done by helpers, are counted from the number of the call on, so that nobody can
 * take one of a call that is over. */
enum { CALL_SHIFT = 20 };
_Static_assert(INT_MAX / CHUNK_MOST < 1 << CALL_SHIFT, "a count of chunks fits below the call");

struct chunks {
    uint64_t base; /* what is counted from in this call */
    size_t bytes, chunk;
    uint64_t count;
};

static struct chunks chunks_of(uint64_t call, size_t bytes)
{
    size_t chunk = (bytes / CHUNKS + PAGE) / PAGE * PAGE;

    chunk = chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk > CHUNK_MOST ? CHUNK_MOST : chunk;
    return (struct chunks){.base = call << CALL_SHIFT,
                           .bytes = bytes,
                           .chunk = chunk,
                           .count = (bytes + chunk - 1) / chunk};
}

static size_t bytes_at(const struct chunks *chunks, uint64_t i)
{
    size_t rest = chunks->bytes - i * chunks->chunk;

    return rest < chunks->chunk ? rest : chunks->chunk;
}

/* Take a chunk of `part`'s owner: *i.  Returns whether there was one left. */
static bool take(struct collx_single_part *part, const struct chunks *chunks, uint64_t *i)
{
    uint64_t taken = atomic_load_explicit(&part->taken, memory_order_relaxed);

    /* Relaxed: who takes a chunk has seen both buffers opened, and so at least the number that this
     * call began with; who needs one that another took waits for `helped`. */
    do {
        if (taken >= chunks->base + chunks->count)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&part->taken, &taken, taken + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    *i = taken - chunks->base;
    return true;
}

/* Before a chunk: with more ranks than CPUs, one that has yet to open its buffer may wait for ours,
 * and before it has, nobody else can do any of its chunks. */
static void let_others_open(const struct collx_single *single)
{
    if (!single->team->crowded)
        return;
    for (int rank = 0; rank < single->team->size; rank++)
        if (!collx_flag_reached(&single->part[rank].open, single->call)) {
            sched_yield();
            return;
        }
}

/* 4, for `rank`, whose buffer is open: whether there was a chunk to write. */
static bool write_chunk(struct collx_single *single, const struct chunks *chunks, const char *buf,
                        int rank)
{
    struct collx_team *team = single->team;
    struct collx_single_part *own = &single->part[team->rank], *part = &single->part[rank];
    uint64_t i;

    let_others_open(single);
    if (!take(part, chunks, &i))
        return false;
    /* Of this call: it is not over for `rank` before it has all chunks. */
    const struct collx_view *view = (const struct collx_view *)(const void *)part->open.payload;
    atomic_store_explicit(&own->helps, rank + 1, memory_order_relaxed);
    if (collx_cma_write((int)view->pid, view->receive + i * chunks->chunk, buf + i * chunks->chunk,
                        bytes_at(chunks, i)))
        atomic_store_explicit(&part->unwritten, chunks->base, memory_order_relaxed);
    atomic_store_explicit(&own->helps, 0, memory_order_relaxed);
    /* Its release is what lets the reader, in (3), see its buffer and `unwritten` as they are now.
     */
    collx_flag_count(team, &part->helped);
    return true;
}

/* 4. */
static void help(struct collx_single *single, const struct chunks *chunks, const char *buf,
                 int root)
{
    struct collx_team *team = single->team;

    for (int idle = team->spins;;) {
        int missing = -1;
        bool wrote = false;
        for (int i = 1; i < team->size; i++) {
            int rank = (team->rank + i) % team->size;
            if (collx_flag_reached(&single->part[rank].open, single->call))
                wrote = (rank != root && write_chunk(single, chunks, buf, rank)) || wrote;
            else if (missing < 0)
                missing = rank;
        }
        if (wrote)
            continue;
        if (missing < 0 || team->rank != root)
            return;
        if (--idle >= 0)
            collx_poll_gap(team);
        else
            collx_single_wait(single, &single->part[missing].open, single->call, missing);
    }
}

static int receive(struct collx_single *single, const struct chunks *chunks, int root, char *buf)
{
    struct collx_single_part *own = &single->part[single->team->rank];
    const uint64_t from = collx_single_view(single, root)->send;
    uint64_t i, read = 0;

    if (!from)
        return single->team->ops->no_memory;
    if (!buf)
        return 0;
    for (; take(own, chunks, &i); read++) { /* 2 */
        collx_single_read(single, root, buf + i * chunks->chunk, from + i * chunks->chunk,
                          bytes_at(chunks, i));
        let_others_open(single);
    }
    if (read == chunks->count)
        return 0;
    collx_single_wait(single, &own->helped, chunks->base + chunks->count - read,
                      COLLX_SINGLE_HELPER); /* 3 */
    /* Relaxed: `helped` orders it. */
    if (atomic_load_explicit(&own->unwritten, memory_order_relaxed) == chunks->base)
        collx_single_read(single, root, buf, from, chunks->bytes);
    return 0;
}

int collx_bcast_single(struct collx_single *single, int root, void *buf, size_t bytes, bool helped)
{
    struct collx_single_part *own = &single->part[single->team->rank];
    const struct chunks chunks = chunks_of(single->call + 1, bytes);
    int error = 0;

    /* Relaxed, both: others look at them when they have seen the buffer opened.  Without one there
     * is nothing to take. */
    atomic_store_explicit(&own->taken, buf ? chunks.base : chunks.base + chunks.count, /* 1 */
                          memory_order_relaxed);
    atomic_store_explicit(&own->helped.value, chunks.base, memory_order_relaxed);
    if (single->team->rank == root) {
        collx_single_step(single); /* a */
        collx_single_open(single, buf, buf);
    } else {
        collx_single_open(single, buf, buf);
        error = receive(single, &chunks, root, buf);
        collx_single_step(single);
    }
    if (helped && buf && !error)
        help(single, &chunks, buf, root);
    if (single->team->rank == root)
        collx_single_await_all(single); /* b */
    return error;
}
