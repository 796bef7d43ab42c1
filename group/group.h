/* Barrier, Bcast and Allreduce for processes that have no MPI: by shared memory within a node, by
 * segments (shared memory, Dolphin's adapters) or messages between nodes.
 *
 *     struct collx_group_config config = {
 *         .rank = rank, .size = size, .gather = my_allgather, .context = &mine};
 *     struct collx_group *group;
 *     char why[COLLX_GROUP_WHY];
 *
 *     if (collx_group_create(&group, &config, why, sizeof why))
 *         fprintf(stderr, "%s\n", why);
 *     collx_group_allreduce(group, &one, &sum, 1, COLLX_GROUP_F64, COLLX_GROUP_SUM);
 *     collx_group_destroy(group);
 *
 * What a process needs is a rank, and a way to give a few small blocks to all others when the group
 * is made: through files, sockets, a launcher.  docs/group.md has more, tests/group_demo.c a
 * program.  Link with -lcollx-group.
 *
 * All functions but collx_group_destroy are collective: all ranks of a group call the same ones in
 * the same order, with the same root, type, op and size.  A group belongs to one thread at a time;
 * groups are independent of each other.  A child that was forked has no part in its parent's
 * groups.  Functions return 0 or a negative errno and leave errno as it was.
 */
#ifndef COLLX_GROUP_H
#define COLLX_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COLLX_GROUP_API __attribute__((visibility("default")))

struct collx_group;

enum {
    COLLX_GROUP_GATHER_MAX = 512, /* bytes that gather() is asked for at most */
    COLLX_GROUP_WHY = 512,        /* room for any sentence about what went wrong */
};

/* One of those that transfer() sends and receives. */
struct collx_group_message {
    int rank;     /* the other's; never one's own */
    bool sends;   /* data to that rank; else from it */
    void *data;   /* not to be changed where it is sent */
    size_t bytes; /* may be 0 */
};

/* What a group is made from.  Callbacks get `context`; they return 0, or a negative errno, which
 * is handed on. */
struct collx_group_config {
    int rank, size; /* 0 ≤ rank < size, each rank once */
    void *context;

    /* Collective: what every rank has at `own`, `bytes` of it, into `all`, in the order of the
     * ranks.  Called from collx_group_create alone, by all ranks equally often with the same
     * `bytes`.  Mandatory. */
    int (*gather)(void *context, const void *own, void *all, size_t bytes);

    /* Called again and again by a rank that waits for others for longer than some microseconds:
     * what they may want of this process meanwhile.  Must not block.  NULL: nothing. */
    void (*progress)(void *context);

    /* Send and receive these messages, all at the same time; back when all that is received is
     * there, and all that was sent may be changed.  Each meets its counterpart, of as many bytes,
     * in the other rank's call; what one rank sends to another arrives in that order.  Called from
     * collectives, where no segments reach from node to node.  NULL: there is no such way. */
    int (*transfer)(void *context, const struct collx_group_message *messages, int count);

    /* Processes that give the same number may share memory, if they really do; 0: find out. */
    uint64_t node;

    /* A policy file, that of rank 0 counts; NULL: as COLLX_POLICY says, else what is good for most.
     * What a policy leaves to the MPI library goes the usual way here. */
    const char *policy;

    /* For policies and messages, that of rank 0 counts; NULL: "group".  Copied. */
    const char *name;
};

enum collx_group_type {
    COLLX_GROUP_I8,
    COLLX_GROUP_I16,
    COLLX_GROUP_I32,
    COLLX_GROUP_I64,
    COLLX_GROUP_U8,
    COLLX_GROUP_U16,
    COLLX_GROUP_U32,
    COLLX_GROUP_U64,
    COLLX_GROUP_F16,  /* IEEE 754 binary16 */
    COLLX_GROUP_BF16, /* the upper half of a float */
    COLLX_GROUP_F32,
    COLLX_GROUP_F64,
};

/* The last six are for integers alone. */
enum collx_group_op {
    COLLX_GROUP_SUM,
    COLLX_GROUP_PROD,
    COLLX_GROUP_MIN,
    COLLX_GROUP_MAX,
    COLLX_GROUP_BAND,
    COLLX_GROUP_BOR,
    COLLX_GROUP_BXOR,
    COLLX_GROUP_LAND,
    COLLX_GROUP_LOR,
    COLLX_GROUP_LXOR,
};

/* An operation of one's own: inout[i] = in[i] op inout[i] for `count` elements, where `in` comes
 * from the lower ranks.  It has to be associative; it need not commute. */
typedef void collx_group_combine(void *context, const void *in, void *inout, size_t count);

/* Make a group.  On failure *group is NULL, and in `why` (NULL with size 0: not wanted) a sentence;
 * all ranks fail, but for -ENOMEM and what gather() returned, which a rank may have alone. */
COLLX_GROUP_API int collx_group_create(struct collx_group **group,
                                       const struct collx_group_config *config, char *why,
                                       size_t size);

/* Nobody leaves before all have entered.
 *
 * This and the following return -ENOTSUP, on all ranks, if nothing that was set up can do it:
 * between nodes without segments that reach, and without transfer().  -EINVAL: a wrong argument.
 * -ENOTCONN: another node cannot be reached any more; the group can only be destroyed then. */
COLLX_GROUP_API int collx_group_barrier(struct collx_group *group);

/* `bytes` from rank `root` to all. */
COLLX_GROUP_API int collx_group_bcast(struct collx_group *group, void *data, size_t bytes,
                                      int root);

/* out[i] = rank 0's in[i] op rank 1's in[i] op …, from the left, on all ranks with the same bits.
 * `in` may be `out`; else they do not overlap. */
COLLX_GROUP_API int collx_group_allreduce(struct collx_group *group, const void *in, void *out,
                                          size_t count, enum collx_group_type type,
                                          enum collx_group_op op);

/* The same by an operation of one's own, which gets `context`, on elements of `element_bytes`.
 * They are aligned as malloc does it. */
enum { COLLX_GROUP_ELEMENT_MOST = 4096 }; /* bytes */
COLLX_GROUP_API int collx_group_allreduce_by(struct collx_group *group, const void *in, void *out,
                                             size_t count, size_t element_bytes,
                                             collx_group_combine *combine, void *context);

/* In one line, how a collective ("barrier", "bcast", "allreduce") goes: the names of what is set up
 * for it, the preferred first, and what there is to say about them.  Local.  Returns `text`. */
COLLX_GROUP_API char *collx_group_describe(const struct collx_group *group, const char *collective,
                                           char *text, size_t size);

/* Local, does not wait for others.  NULL is fine.  In a forked child it does nothing. */
COLLX_GROUP_API void collx_group_destroy(struct collx_group *group);

#ifdef __cplusplus
}
#endif

#endif
