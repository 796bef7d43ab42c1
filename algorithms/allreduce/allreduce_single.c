/* Allreduce of large vectors in one copy, in two ways.
 *
 * By slices.  Each rank
 *
 *   1. opens its buffers (algorithms/within/single.h)
 *   2. combines its slice of the vector, piece by piece: reads everybody's operands, writes the
 *      result into its own receive buffer; steps
 *   3. from each of the others, when it has stepped: reads the slice that that one has combined;
 *      steps
 *   4. waits until all have stepped again: nobody reads from it any more
 *
 * In place, too: a rank's slice of a receive buffer is written by (2) of that rank in its own
 * buffer, and by (3) in the others', when it has finished reading them.
 *
 * Whole.  Each rank
 *
 *   1. opens its buffers
 *   2. combines the whole vector, piece by piece: reads everybody's operands; steps; writes the
 *      result, if that is in place when all have stepped
 *   3. waits until all have stepped as often: nobody reads from it any more
 *
 * For two ranks that is not more to read, and one time less to wait.
 */
#include "algorithms/allreduce/allreduce.h"

#include "algorithms/reduction/combine.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct collx_piece collx_piece_slice(const struct collx_call *call, struct collx_piece whole,
                                     int rank, int size)
{
    int64_t unit = call->elem_bytes < 64 ? 64 / (int64_t)call->elem_bytes : 1;
    int64_t units = (whole.count + unit - 1) / unit;
    int64_t first = units * rank / size * unit, end = units * (rank + 1) / size * unit;

    first = first < whole.count ? first : whole.count;
    end = end < whole.count ? end : whole.count;
    return (struct collx_piece){first, end - first};
}

int collx_allreduce_work_init(struct collx_allreduce_work *work, int size)
{
    /* Operands of all ranks are to fit into a second level cache, and each into one system call
     * that is worth it. */
    enum { TOGETHER = 512 << 10 };
    size_t bytes = TOGETHER / (size_t)size / 4096 * 4096;

    work->bytes = bytes > COLLX_WORK_MOST    ? COLLX_WORK_MOST
                  : bytes < COLLX_WORK_LEAST ? COLLX_WORK_LEAST
                                             : bytes;
    work->operand = malloc((size_t)size * work->bytes);
    work->from = calloc((size_t)size, sizeof *work->from);
    return work->operand && work->from ? 0 : -ENOMEM;
}

void collx_allreduce_work_finish(struct collx_allreduce_work *work)
{
    free(work->operand);
    free(work->from);
}

/* A call while it lasts: whole vectors of elements that follow each other in memory, NULL where
 * there is no memory for them. */
struct vectors {
    struct collx_single *single;
    struct collx_call *call;
    struct collx_allreduce_work *work;
    const unsigned char *send;
    unsigned char *receive;
};

/* Everybody's operands of a piece, our own as well if it must not be overwritten. */
static int read_operands(const struct vectors *v, struct collx_piece piece)
{
    const struct collx_team *team = v->single->team;
    const size_t offset = (size_t)piece.first * v->call->elem_bytes;
    const size_t bytes = (size_t)piece.count * v->call->elem_bytes;
    unsigned char **from = v->work->from;
    int error = v->receive ? 0 : team->ops->no_memory;

    /* Each begins with another, lest all want the same one's memory at once. */
    for (int i = 1; i < team->size; i++) {
        int rank = (team->rank + i) % team->size;
        uint64_t address = collx_single_view(v->single, rank)->send;
        from[rank] = v->work->operand + (size_t)rank * v->work->bytes;
        int failed =
            collx_single_read(v->single, rank, from[rank], address ? address + offset : 0, bytes);
        error = collx_error_first(error, failed);
    }
    if (error)
        return error;
    from[team->rank] = (unsigned char *)(uintptr_t)v->send + offset;
    /* In place, the result must not come before the operand that lies there has been used. */
    if (v->send == v->receive && team->rank > 0) {
        from[team->rank] = v->work->operand + (size_t)team->rank * v->work->bytes;
        memcpy(from[team->rank], v->send + offset, bytes);
    }
    return 0;
}

static int combine(const struct vectors *v, struct collx_piece piece)
{
    return collx_combine(v->single->team, v->call, v->work->from, NULL, piece.count,
                         v->receive + (size_t)piece.first * v->call->elem_bytes);
}

/* What follows of `all` from `at` on, up to what the work memory holds. */
static struct collx_piece piece_at(const struct vectors *v, struct collx_piece all, int64_t at)
{
    int64_t most = (int64_t)(v->work->bytes / v->call->elem_bytes), rest = all.count - at;

    return (struct collx_piece){all.first + at, rest < most ? rest : most};
}

static int run_slices(const struct vectors *v)
{
    struct collx_single *single = v->single;
    const struct collx_team *team = single->team;
    const struct collx_piece all = {0, v->call->count};
    const struct collx_piece own = collx_piece_slice(v->call, all, team->rank, team->size);
    int error = 0;

    for (int64_t at = 0; at < own.count; at += piece_at(v, own, at).count) { /* 2 */
        int failed = read_operands(v, piece_at(v, own, at));
        if (!failed)
            failed = combine(v, piece_at(v, own, at));
        error = collx_error_first(error, failed);
    }
    collx_single_step(single);
    for (int i = 1; i < team->size; i++) { /* 3 */
        int rank = (team->rank + i) % team->size;
        struct collx_piece slice = collx_piece_slice(v->call, all, rank, team->size);
        size_t offset = (size_t)slice.first * v->call->elem_bytes;

        collx_single_await(single, rank);
        const struct collx_view *view = collx_single_view(single, rank);
        uint64_t address = view->receive;
        /* Nobody had all operands. */
        if (!view->send && !error)
            error = team->ops->no_memory;
        if (!slice.count || !v->receive)
            continue;
        int failed =
            collx_single_read(single, rank, v->receive + offset, address ? address + offset : 0,
                              (size_t)slice.count * v->call->elem_bytes);
        error = collx_error_first(error, failed);
    }
    collx_single_step(single);
    collx_single_await_all(single); /* 4 */
    return error;
}

static int run_whole(const struct vectors *v)
{
    const struct collx_piece all = {0, v->call->count};
    int error = 0;

    for (int64_t at = 0; at < all.count; at += piece_at(v, all, at).count) { /* 2 */
        int failed = read_operands(v, piece_at(v, all, at));
        collx_single_step(v->single);
        if (v->send == v->receive)
            collx_single_await_all(v->single);
        if (!failed)
            failed = combine(v, piece_at(v, all, at));
        error = collx_error_first(error, failed);
    }
    collx_single_await_all(v->single); /* 3 */
    return error;
}

static int run(const struct vectors *v, bool whole)
{
    collx_single_open(v->single, v->send, v->receive); /* 1 */
    return whole ? run_whole(v) : run_slices(v);
}

int collx_allreduce_single(struct collx_single *single, struct collx_call *call,
                           struct collx_allreduce_work *work, bool whole)
{
    const struct collx_team *team = single->team;
    struct vectors v = {single, call, work, call->sbuf, call->rbuf};

    if (call->contiguous)
        return run(&v, whole);

    unsigned char *packed = malloc(call->bytes);
    int error = packed ? team->ops->pack(team->ctx, call, call->sbuf, 0, call->count, packed)
                       : team->ops->no_memory;
    /* What cannot be packed is not there; the others hear of it. */
    v.send = v.receive = error ? NULL : packed;
    int failed = run(&v, whole);
    error = collx_error_first(error, failed);
    if (!error)
        error = team->ops->unpack(team->ctx, call, packed, call->rbuf, 0, call->count);
    free(packed);
    return error;
}
