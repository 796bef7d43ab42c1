/* Bcast in one copy, in two ways: the others read from the root's buffer, or the root helps them
 * and writes into theirs at the same time.  Help makes long messages twice as fast; but what the
 * root writes is in the root's cache then, not in that of the rank that wants it.
 *
 * The message is cut into chunks.  Who does a chunk is who takes it first:
 *
 *   others:  1. lay out the chunks (share = 0 taken), open the buffer
 *            2. when the root's buffer is open: take a chunk and read it, until none is left
 *            3. wait until those that the root took are there; step
 *   root:    a. open the buffer
 *            b. if it helps: for everybody whose buffer is open: take a chunk and write it, until
 *               none is left
 *            c. wait until everybody has stepped
 *
 * A rank that is late finds its chunks written.  A chunk that the root could not write goes back to
 * its reader, in (3).
 */
#include "algorithms/bcast.h"

#include "hw/cma.h"

#include <limits.h>

/* Chunks: enough of them that both finish together, large enough that a system call each does not
 * show. */
enum { CHUNKS = 4, CHUNK_LEAST = 8192, CHUNK_MOST = 131072, PAGE = 4096 };

/* `share` counts the chunks that are taken, below the number of the call, so that nobody can take
 * one of a call that is over.  `pushed` counts those that the root is done with, likewise; beside
 * it is 1 + the one that it could not write, after which it takes no more. */
enum { CALL_SHIFT = 20 };
_Static_assert(INT_MAX / CHUNK_MOST < 1 << CALL_SHIFT, "a count of chunks fits below the call");

struct chunks {
    uint64_t base; /* of `share` and `pushed` in this call */
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

/* Take a chunk: *i.  Returns whether there was one left. */
static bool take(struct collx_flag *share, const struct chunks *chunks, uint64_t *i)
{
    uint64_t taken = atomic_load_explicit(&share->value, memory_order_relaxed);

    /* Relaxed: who takes a chunk has seen both buffers opened; who needs one that the other took
     * waits for `pushed`. */
    do {
        if (taken < chunks->base || taken >= chunks->base + chunks->count)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&share->value, &taken, taken + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    *i = taken - chunks->base;
    return true;
}

/* b, for one: whether there was something to do. */
static bool push(struct collx_single *single, const struct chunks *chunks, const char *buf,
                 int rank)
{
    struct collx_single_part *part = &single->part[rank];
    const struct collx_view *view = (const struct collx_view *)(const void *)part->open.payload;
    uint64_t i, failed = 0;

    /* Of this call, or else the first: it is ours to write while the chunks are this call's. */
    uint64_t done = atomic_load_explicit(&part->pushed.value, memory_order_relaxed);
    if (done >= chunks->base)
        memcpy(&failed, part->pushed.payload, sizeof failed);
    else
        done = chunks->base;
    if (failed || !take(&part->share, chunks, &i))
        return false;
    if (collx_cma_write((int)view->pid, view->receive + i * chunks->chunk, buf + i * chunks->chunk,
                        bytes_at(chunks, i)))
        failed = i + 1;
    memcpy(part->pushed.payload, &failed, sizeof failed);
    collx_flag_post(single->team, &part->pushed, done + 1);
    return true;
}

static int run_root(struct collx_single *single, const struct chunks *chunks, const char *buf,
                    bool help)
{
    struct collx_team *team = single->team;
    bool working = buf && help;

    for (int idle = team->spins; working;) { /* b */
        bool pushed = false, all_here = true;
        for (int i = 1; i < team->size; i++) {
            int rank = (team->rank + i) % team->size;
            if (!collx_flag_reached(&single->part[rank].open, single->call))
                all_here = false;
            else if (push(single, chunks, buf, rank))
                pushed = true;
        }
        if (!pushed) {
            working = !all_here && --idle >= 0;
            collx_poll_gap(team);
        }
    }
    collx_single_step(single);
    collx_single_await_all(single); /* c */
    return 0;
}

static int run_other(struct collx_single *single, const struct chunks *chunks, int root, char *buf)
{
    struct collx_single_part *own = &single->part[single->team->rank];
    const uint64_t from = collx_single_view(single, root)->send;
    uint64_t i, read = 0, failed;
    int error = from ? 0 : single->team->ops->no_memory;

    for (; buf && from && take(&own->share, chunks, &i); read++) /* 2 */
        collx_single_read(single, root, buf + i * chunks->chunk, from + i * chunks->chunk,
                          bytes_at(chunks, i));
    if (buf && from && read < chunks->count) { /* 3 */
        collx_single_wait(single, &own->pushed, chunks->base + chunks->count - read, root);
        memcpy(&failed, own->pushed.payload, sizeof failed);
        if (failed--)
            collx_single_read(single, root, buf + failed * chunks->chunk,
                              from + failed * chunks->chunk, bytes_at(chunks, failed));
    }
    collx_single_step(single);
    return error;
}

int collx_bcast_single(struct collx_single *single, int root, void *buf, size_t bytes, bool help)
{
    struct collx_single_part *own = &single->part[single->team->rank];
    const struct chunks chunks = chunks_of(single->call + 1, bytes);

    /* Without a buffer there is nothing to share. */
    atomic_store_explicit(&own->share.value, buf ? chunks.base : chunks.base + chunks.count,
                          memory_order_relaxed);
    collx_single_open(single, buf, buf); /* 1, a */
    return single->team->rank == root ? run_root(single, &chunks, buf, help)
                                      : run_other(single, &chunks, root, buf);
}
