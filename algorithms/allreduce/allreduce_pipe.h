/* What large vectors go through in shared memory, for the steps of Allreduce among many ranks
 * (allreduce_pipe.c) and between two (allreduce_pair.c).
 */
#ifndef COLLX_ALLREDUCE_PIPE_H
#define COLLX_ALLREDUCE_PIPE_H

#include "algorithms/allreduce/allreduce.h"
#include "algorithms/within/shm.h"

/* One rank's part of the segment; its two buffers lie behind it. */
struct collx_pipe_part {
    struct collx_flag copied[2], reduced[2];
    unsigned char in[];
};
_Static_assert(sizeof(struct collx_pipe_part) == 4 * COLLX_LINE, "buffers begin on a line");

/* What is done with chunk g, which is this part of the vector: in the order C(g-1) A(g+1) B(g), so
 * that each wait is for what the others did a step before.  0 or an MPI error, which ends nothing:
 * the others are counting on our steps. */
typedef int collx_pipe_step(struct collx_allreduce_pipe *pipe, struct collx_call *call,
                            struct collx_piece chunk, uint64_t g);
struct collx_pipe_steps {
    collx_pipe_step *copy_in;  /* A */
    collx_pipe_step *combine;  /* B */
    collx_pipe_step *copy_out; /* C */
};
extern const struct collx_pipe_steps collx_pair_steps;

static inline struct collx_pipe_part *collx_pipe_part(const struct collx_allreduce_pipe *pipe,
                                                      int rank)
{
    return (struct collx_pipe_part *)(pipe->parts + (size_t)rank * pipe->stride);
}

static inline unsigned char *collx_pipe_in(const struct collx_allreduce_pipe *pipe, int rank,
                                           uint64_t g)
{
    return collx_pipe_part(pipe, rank)->in + (g & 1) * pipe->room;
}

/* Between the buffers of the call and packed bytes; `at` counts elements from the buffer's start.
 * `here`: the lines that are written have just been read by this rank. */
static inline int collx_pipe_put(const struct collx_allreduce_pipe *pipe, struct collx_call *call,
                                 int64_t at, int64_t count, unsigned char *packed, bool here)
{
    if (!call->contiguous)
        return pipe->team->ops->pack(pipe->team->ctx, call, call->sbuf, at, count, packed);
    const char *from = (const char *)call->sbuf + (size_t)at * call->elem_bytes;
    const size_t bytes = (size_t)count * call->elem_bytes;
    if (here)
        pipe->copier->ways.wide(packed, from, bytes);
    else
        collx_copy_in(pipe->copier, packed, from, bytes);
    return 0;
}

static inline int collx_pipe_get(const struct collx_allreduce_pipe *pipe, struct collx_call *call,
                                 int64_t at, int64_t count, const unsigned char *packed)
{
    if (!call->contiguous)
        return pipe->team->ops->unpack(pipe->team->ctx, call, packed, call->rbuf, at, count);
    collx_copy_out(pipe->copier, (char *)call->rbuf + (size_t)at * call->elem_bytes, packed,
                   (size_t)count * call->elem_bytes);
    return 0;
}

/* The flags of g + 1: those of g - 1, at which nobody looks any more. */
static inline void collx_pipe_claim_flags(const struct collx_allreduce_pipe *pipe, uint64_t g)
{
    struct collx_pipe_part *own = collx_pipe_part(pipe, pipe->team->rank);

    collx_claim_line(pipe->team, &own->copied[(g + 1) & 1].claimed);
    collx_claim_line(pipe->team, &own->reduced[(g + 1) & 1].claimed);
}

#endif
