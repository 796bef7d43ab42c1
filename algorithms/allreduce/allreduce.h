/* What the files of Allreduce share. */
#ifndef COLLX_ALGORITHMS_ALLREDUCE_H
#define COLLX_ALGORITHMS_ALLREDUCE_H

#include "algorithms/within/copy.h"
#include "algorithms/within/single.h"
#include "base/call.h"

enum { COLLX_ALLREDUCE_ELEMENT = 4096 }; /* bytes of the largest elements */

/* Elements of a vector. */
struct collx_piece {
    int64_t first, count;
};

/* The part of `whole` that `rank` combines, counted from the beginning of `whole`; cut where lines
 * end, so that no line has two writers, if elements end there, too.  Else a line at the border may
 * have two, each of its own bytes alone. */
struct collx_piece collx_piece_slice(const struct collx_call *call, struct collx_piece whole,
                                     int rank, int size);

/* Memory of a rank's own to work in. */
enum { COLLX_WORK_MOST = 131072, COLLX_WORK_LEAST = 16384 };
struct collx_allreduce_work {
    unsigned char **from;   /* [size]: everybody's operands */
    unsigned char *operand; /* [size] times `bytes` */
    size_t bytes;           /* COLLX_WORK_MOST, less where there are many ranks */
};

/* 0 or -ENOMEM; to be finished in either case. */
int collx_allreduce_work_init(struct collx_allreduce_work *work, int size);
void collx_allreduce_work_finish(struct collx_allreduce_work *work);

/* The way through shared memory: see allreduce_pipe.h.  `work` and `copier` may be used for other
 * things between the calls. */
struct collx_allreduce_pipe {
    struct collx_team *team;
    struct collx_allreduce_work *work;
    struct collx_copier *copier;
    const struct collx_pipe_steps *steps;
    unsigned char *parts; /* [size], shared: struct collx_pipe_part and two buffers */
    size_t stride;        /* from one to the next */
    unsigned char *out;   /* two chunks, shared, of more than two ranks */
    size_t bytes;         /* of a chunk */
    size_t room;          /* bytes of a buffer */
    uint64_t chunk;       /* so far */
};

size_t collx_allreduce_pipe_space(int ranks, int numa_nodes);
/* See collx_algorithm.place. */
void collx_allreduce_pipe_place(const struct collx_team *team, void *memory);
/* Zero such memory, which may hold anything, but for the buffers.  Returns the end of it. */
void *collx_allreduce_pipe_clear(void *memory, int ranks, int numa_nodes);
/* `memory`: collx_allreduce_pipe_space() bytes, the same on all ranks, zeroed; in the first line of
 * it the ranks have agreed (shm.h) on `agreed`.  Returns the end of it. */
void *collx_allreduce_pipe_init(struct collx_allreduce_pipe *pipe, struct collx_team *team,
                                struct collx_allreduce_work *work, struct collx_copier *copier,
                                uint32_t agreed, void *memory);
/* Collective.  0 or an MPI error. */
int collx_allreduce_pipe(struct collx_allreduce_pipe *pipe, struct collx_call *call);

/* The ways without a stop: see allreduce_single.c.  `whole`: everybody combines the whole vector.
 * Collective.  0 or an MPI error. */
int collx_allreduce_single(struct collx_single *single, struct collx_call *call,
                           struct collx_allreduce_work *work, bool whole);

#endif
