/* The steps of an Allreduce of large vectors (allreduce_pipe.c) between two ranks.
 *
 * Of each chunk g, rank 0 combines the first half for both, and rank 1 the second.  A rank has two
 * buffers, g mod 2, for the half that the other one combines:
 *   A. copy the other's half of our chunk into our buffer, post copied = g
 *   B. wait for the other's copied = g; combine our half with what is in its buffer, into that
 *      buffer, and copy the result to where it belongs, block by block; post reduced = g
 *   C. wait for the other's reduced = g; copy the other half of the result out of our buffer
 * A(g+1) overwrites what the other has had in its hands in B(g-1), which C(g-1) has waited for.
 *
 * Each line goes to the other rank and comes back, and is written where it has just been read: so
 * no store has to wait for its line.  With buffers of their own for the results, as more ranks
 * have, a vector takes up to half as long again.
 */
#include "algorithms/allreduce/allreduce_pipe.h"

#include "algorithms/reduction/combine.h"

enum {
    /* Bytes that are combined and then copied to where they belong, while a CPU's first cache has
     * them: of both halves of a chunk it has not.  512 KiB to 4 MiB take 2 to 7 % less time so on
     * an Emerald Rapids, most where they go past the caches. */
    BLOCK = 8192,
};

/* What `rank` combines, counted from the vector's beginning. */
static struct collx_piece half_of(const struct collx_call *call, struct collx_piece chunk, int rank)
{
    struct collx_piece half = collx_piece_slice(call, chunk, rank, 2);

    half.first += chunk.first;
    return half;
}

/* A */
static int step_copy_in(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                        struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    const struct collx_piece half = half_of(call, chunk, !team->rank);

    int error = collx_pipe_put(pipe, call, half.first, half.count,
                               collx_pipe_in(pipe, team->rank, g), true);
    collx_flag_post(team, &collx_pipe_part(pipe, team->rank)->copied[g & 1], g);
    return error;
}

/* B */
static int step_combine(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                        struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    const int other = !team->rank;
    const struct collx_piece half = half_of(call, chunk, team->rank);
    unsigned char **from = pipe->work->from;
    const char *own = collx_combine_own(call, half.first);
    int error = 0;

    collx_wait_for(team, &collx_pipe_part(pipe, other)->copied[g & 1], g, other, "Allreduce");
    from[other] = collx_pipe_in(pipe, other, g);
    from[team->rank] = call->contiguous ? (unsigned char *)(uintptr_t)call->sbuf +
                                              (size_t)half.first * call->elem_bytes
                                        : pipe->work->operand;
    if (!call->contiguous && !own)
        error = team->ops->pack(team->ctx, call, call->sbuf, half.first, half.count,
                                pipe->work->operand);
    /* What MPI combines, in blocks of its own, goes as a whole, and so does what has gaps. */
    const int64_t most =
        call->reduce && call->contiguous ? (int64_t)(BLOCK / call->elem_bytes) : half.count;
    for (int64_t done = 0, some; done < half.count && !error; done += some) {
        some = half.count - done < most ? half.count - done : most;
        error = collx_combine(team, call, from, own, some, from[other]);
        if (!error)
            error = collx_pipe_get(pipe, call, half.first + done, some, from[other]);
        from[0] += (size_t)some * call->elem_bytes;
        from[1] += (size_t)some * call->elem_bytes;
    }
    collx_flag_post(team, &collx_pipe_part(pipe, team->rank)->reduced[g & 1], g);
    if (call->bytes <= pipe->bytes)
        collx_pipe_claim_flags(pipe, g);
    return error;
}

/* C */
static int step_copy_out(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                         struct collx_piece chunk, uint64_t g)
{
    struct collx_team *team = pipe->team;
    const int other = !team->rank;
    const struct collx_piece half = half_of(call, chunk, other);

    collx_wait_for(team, &collx_pipe_part(pipe, other)->reduced[g & 1], g, other, "Allreduce");
    return collx_pipe_get(pipe, call, half.first, half.count, collx_pipe_in(pipe, team->rank, g));
}

const struct collx_pipe_steps collx_pair_steps = {step_copy_in, step_combine, step_copy_out};
