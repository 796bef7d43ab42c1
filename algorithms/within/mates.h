/* The ranks of one node, and the flags in its memory by which they meet: each has one that it
 * alone posts, and there is one that releases all.
 *
 * What the numbers mean that are posted is up to the algorithm; they only grow.
 */
#ifndef COLLX_MATES_H
#define COLLX_MATES_H

#include "algorithms/wait.h"

#include <string.h>

/* Nobody releases a value before all have read what was beside the value that is so many less. */
enum { COLLX_MATES_RESULTS = 8 };
_Static_assert(COLLX_MATES_RESULTS * sizeof(int) <= COLLX_INLINE, "results lie beside a flag");

struct collx_mates_flags {
    struct collx_flag released; /* beside it: what to return, of value v at v mod RESULTS */
    struct collx_flag arrived[];
};

struct collx_mates {
    struct collx_team *team;
    const char *what; /* the collective's name, for messages */
    struct collx_mates_flags *flags;
    uint64_t awaited; /* what one waits for, for messages */
    int *rank;        /* [ranks] of this node, the leader first */
    int ranks;
    int index; /* which of these one is */
};

/* The number of a rank's node. */
static inline int collx_team_node(const struct collx_team *team, int rank)
{
    return team->node ? team->node[rank] : 0;
}

/* Memory of the node for the flags of so many ranks. */
static inline size_t collx_mates_space(int ranks)
{
    return sizeof(struct collx_mates_flags) + (size_t)ranks * sizeof(struct collx_flag);
}

/* For attach().  0 or -ENOMEM. */
int collx_mates_init(struct collx_mates *mates, struct collx_team *team, const char *what,
                     void *memory);
void collx_mates_finish(struct collx_mates *mates);

static inline void collx_mates_arrive(struct collx_mates *mates, uint64_t value)
{
    collx_flag_post(mates->team, &mates->flags->arrived[mates->index], value);
}

/* Of the leader: what is wrong between the nodes from now on.  Relaxed, as where it is read: a
 * moment later is early enough, and nothing else depends on it. */
static inline void collx_mates_tell(struct collx_mates *mates, int error)
{
    __atomic_store_n((int *)(void *)mates->flags->arrived[0].payload, error, __ATOMIC_RELAXED);
}

/* What the leader has told; 0: nothing. */
static inline int collx_mates_told(const struct collx_mates *mates)
{
    return __atomic_load_n((const int *)(const void *)mates->flags->arrived[0].payload,
                           __ATOMIC_RELAXED);
}

/* Until all others have arrived at `value`. */
void collx_mates_await(struct collx_mates *mates, uint64_t value);

static inline void *collx_mates_result(const struct collx_mates *mates, uint64_t value)
{
    return mates->flags->released.payload + value % COLLX_MATES_RESULTS * sizeof(int);
}

static inline void collx_mates_release(struct collx_mates *mates, uint64_t value, int result)
{
    memcpy(collx_mates_result(mates, value), &result, sizeof result);
    collx_flag_post(mates->team, &mates->flags->released, value);
}

/* Until somebody releases `value`; returns the result beside it.  `by` is who does, for messages;
 * -1: someone who waits for those that have not arrived there. */
int collx_mates_await_release(struct collx_mates *mates, uint64_t value, int by);

#endif
