/* Segments: memory of a process that others write into, and that only its owner reads.
 *
 * A process makes a segment and gives its address to others by whatever way it has; they connect
 * and store.  Reading is local.  The drivers differ in what becomes of a store on its way, and a
 * user who keeps to this is right on all of them:
 *
 * - A flag is an epoch number in the last word of a line of its own (collx_seg_flag), has one
 *   writer and is never reset: read it with collx_seg_read, compare it with collx_seg_reached.
 * - Store the data, store the flag, check, and store again what the check says is lost, until it
 *   has arrived: collx_seg_deliver.  What has not been checked may never arrive.  Do as many
 *   stores as possible before one check, but to no line twice: unchecked stores arrive in any
 *   order.
 * - A store that was reported as lost may have arrived, so its repetition can land after the owner
 *   has gone on.  Repeat with the same values, and reuse a place only when its reader has said, by
 *   a flag of its own, that it is done with it.
 * - A flag speaks for data in its own line that was stored with it by one copy() up to the end of
 *   the line (COLLX_SEG_WHOLE_LINES).  For other data it does where there is COLLX_SEG_ORDERED;
 *   else the data has to be checked before its flag is stored.  A pipeline does with one check a
 *   round: the data of this one and the flag of the last one.
 * - End in order: disconnect all remotes, then synchronise in another way, then unmake.  Who still
 *   repeats a store into a segment that is gone gets -ENOTCONN.
 *
 * A net, and all that was made through it, belongs to one thread at a time; nets are independent of
 * each other.  Nothing here is collective.  Functions return 0 or -errno unless said otherwise and
 * keep errno.
 */
#ifndef COLLX_SEGMENT_H
#define COLLX_SEGMENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collx_net;    /* a process's access to a network; of the driver */
struct collx_export; /* a segment of this process */
struct collx_remote; /* a segment of some process, to be stored into */

/* Where a segment is: bytes for others, to be sent as they are.  Their meaning is the driver's. */
struct collx_seg_address {
    uint64_t word[4];
};
static_assert(sizeof(struct collx_seg_address) == 32, "it travels as bytes");

enum {
    COLLX_SEG_NODE = 1,        /* reaches processes of the same node alone, by collx_shm_node() */
    COLLX_SEG_CHECKED = 2,     /* stores may be late or lost: check; else that may be left out */
    COLLX_SEG_ORDERED = 4,     /* stores to one remote arrive in order, and all of them */
    COLLX_SEG_WHOLE_LINES = 8, /* who sees the last word of a line, as it was stored by a copy(),
                                  sees all that this copy() stored to the line */
    COLLX_SEG_ONE_CHECK = 16,  /* one check costs the same for any number of remotes */
};

struct collx_seg_caps {
    size_t line;    /* bytes, a power of two, at least 4; if it differs, all use the largest */
    unsigned flags; /* COLLX_SEG_…; what not all have does not count */
    unsigned store_ns, check_ns; /* typical costs, for choosing between drivers and algorithms */
};

/* What a check says about one remote. */
enum {
    COLLX_SEG_ARRIVED, /* all that was stored to it */
    COLLX_SEG_LOST,    /* store again all that was stored since it last had arrived */
    COLLX_SEG_BUSY, /* the connection is being restored; check again, there is nothing else to do */
    COLLX_SEG_GONE, /* it could not be restored in time: the owner or the way to it is gone */
};

/* A driver.  Offsets and sizes are bytes and multiples of 4; who calls with others, or beyond the
 * segment's end, overwrites memory. */
struct collx_seg_ops {
    const char *name; /* "shm", "sisci", "rma" */

    /* Once for a group of processes that will have segments, at its setup.  0; COLLX_EUNFIT or
     * -errno and in `why` what is missing and what to do.  NULL: it takes more than this to make a
     * net, and who lends the driver hands over one that is made. */
    int (*open)(struct collx_net **net, struct collx_seg_caps *caps, char *why, size_t size);

    /* A segment of `bytes`, zeroed, all its memory there.  *local is valid until unmake().  As soon
     * as this returns, others may connect.  On failure there is a sentence in `why`. */
    int (*make)(struct collx_net *net, size_t bytes, struct collx_export **made, void **local,
                struct collx_seg_address *address, char *why, size_t size);

    /* Into a segment that was made with the same `bytes`; also into one of this process.  -EAGAIN:
     * it cannot be reached now, perhaps later (collx_seg_connect repeats it).  Other failures are
     * for good; -EINVAL: that is no address of this driver's.  There is a sentence in `why` in
     * either case. */
    int (*connect)(struct collx_net *net, const struct collx_seg_address *address, size_t bytes,
                   struct collx_remote **remote, char *why, size_t size);

    /* All who will ever connect to this segment have done so: what only they need can go.  NULL:
     * there is no such thing. */
    void (*settle)(struct collx_export *made);

    /* One word, for instance a flag.  Returns at once, and cannot fail: see check(). */
    void (*store)(struct collx_remote *remote, size_t offset, uint32_t value);

    /* The same for `bytes` from `data`, which may be reused when it returns. */
    void (*copy)(struct collx_remote *remote, size_t offset, const void *data, size_t bytes);

    /* After stores, and after each repetition: what has become of all stores to these remotes.
     * state[i] says COLLX_SEG_… of remotes[i].  Never waits for other processes to do anything; in
     * an MPI library they may have to call it now and then. Returns the number of those that have
     * not arrived, or -ENOTCONN if one is gone. */
    int (*check)(struct collx_net *net, struct collx_remote *const *remotes, unsigned count,
                 uint8_t *state);

    /* To be called now and then by who waits for a flag.  NULL: there is no need. */
    void (*progress)(struct collx_net *net);

    /* In reverse order of making, everything.  NULL is fine for all three.  They do not fail. */
    void (*disconnect)(struct collx_remote *remote);
    void (*unmake)(struct collx_export *made);
    void (*close)(struct collx_net *net);
};

/* The drivers of this folder, NULL after the last. */
extern const struct collx_seg_ops *const collx_seg_drivers[];

/* The driver of that name, or NULL. */
const struct collx_seg_ops *collx_seg_find(const char *name);

/* Connect, and repeat it while the segment cannot be reached, for `patience_ms` at most: -ETIMEDOUT
 * then.  `idle` (may be NULL) is called between attempts, with `context`, to keep others going. */
int collx_seg_connect(const struct collx_seg_ops *ops, struct collx_net *net,
                      const struct collx_seg_address *address, size_t bytes,
                      struct collx_remote **remote, int64_t patience_ms, void (*idle)(void *),
                      void *context, char *why, size_t size);

/* store(context, i) for each remote, then check, and again for those that were lost, until
 * all have arrived.  store() stores what remotes[i] is to get, by ops->store and ops->copy; what it
 * stores has to cover all since that remote last had arrived.  `idle` (may be NULL) is called, with
 * `context`, before each repeated check.  state[count] is to work in, and says which remote is gone
 * if this returns -ENOTCONN. */
int collx_seg_deliver(const struct collx_seg_ops *ops, struct collx_net *net,
                      struct collx_remote *const *remotes, unsigned count, uint8_t *state,
                      void (*store)(void *context, unsigned i), void (*idle)(void *context),
                      void *context);

/* Where the flag of a line is, counted from 0. */
static inline size_t collx_seg_flag(size_t line, size_t bytes_a_line)
{
    return (line + 1) * bytes_a_line - sizeof(uint32_t);
}

/* A word of this process's own segment.  The acquire is the partner of the driver's store, whatever
 * makes that visible: without it data that the flag speaks for could be read before the flag. */
static inline uint32_t collx_seg_read(const void *local, size_t offset)
{
    return __atomic_load_n((const uint32_t *)((const char *)local + offset), __ATOMIC_ACQUIRE);
}

/* Whether a flag says that its writer is at `epoch` or further; epochs wrap around. */
static inline bool collx_seg_reached(uint32_t flag, uint32_t epoch)
{
    return (int32_t)(flag - epoch) >= 0;
}

#endif
