/* Barriers that hardware offers: nodes enter, and are released when all have entered.
 *
 * One of these belongs to one thread at a time.  Functions return 0 or -errno unless said otherwise
 * and keep no promise after a failure but that detach() and close() clean up.
 */
#ifndef COLLX_BARRIER_H
#define COLLX_BARRIER_H

#include <stddef.h>
#include <stdint.h>

struct collx_bar; /* of the provider */

enum {
    COLLX_BAR_MASKS = 1, /* a channel may have fewer participants than there are nodes */
    COLLX_BAR_STALE = 2, /* levels outlive a job: see attach() */
    COLLX_BAR_SLEEP = 4, /* wait() sleeps */
    COLLX_BAR_SHARED =
        8,              /* several processes of a node may open it, each for channels of its own */
    COLLX_BAR_WHO = 16, /* missing() knows */
};
#define COLLX_BAR_UNKNOWN (~0u)

struct collx_bar_caps {
    unsigned channels;
    unsigned nodes;             /* that are connected; 0: not known */
    unsigned self;              /* the number that this node has there, or COLLX_BAR_UNKNOWN */
    unsigned flags;             /* COLLX_BAR_… */
    unsigned enter_ns, test_ns; /* as measured when opened, for choosing between providers */
};

struct collx_bar_counts {
    uint64_t writes, reads; /* port accesses since it was opened */
};

/* A provider. */
struct collx_bar_ops {
    const char *name; /* "wires" */

    /* What `spec` says is the provider's.  On failure there is a sentence in `why`: what is wrong,
     * and what to do. */
    int (*open)(struct collx_bar **bar, const char *spec, struct collx_bar_caps *caps, char *why,
                size_t size);

    /* Take part in a channel with these nodes, by bits: all nodes without COLLX_BAR_MASKS.  By
     * every participant, at about the same time, each with the same arguments but `self`, the
     * node's own number.  -EBUSY: somebody else has the channel, here or elsewhere; then all detach
     * and try another one.  If it worked, this node has not arrived.
     *
     * With COLLX_BAR_STALE the participants then have to meet in another way (a software barrier)
     * before the first of them enters: the levels that a dead job has left could release it. */
    int (*attach)(struct collx_bar *bar, unsigned channel, uint64_t participants, unsigned self,
                  char *why, size_t size);

    /* Arrive.  Not again before the release was seen. */
    int (*enter)(struct collx_bar *bar, unsigned channel);
    /* 1: released.  0: not yet. */
    int (*test)(struct collx_bar *bar, unsigned channel);
    /* Until released, or for so long: -ETIMEDOUT.  It may be called again. */
    int (*wait)(struct collx_bar *bar, unsigned channel, int timeout_ms);

    /* Back when what nodes have done so far has had its effect: for trials, which look whether
     * nothing happens. */
    int (*settle)(struct collx_bar *bar);

    /* Who of the participants has not arrived at the barrier that this node is waiting in, by bits.
     * -EOPNOTSUPP: this hardware cannot tell. */
    int (*missing)(struct collx_bar *bar, unsigned channel, uint64_t *nodes);

    /* Take part no longer; also after a failure of attach(), and after a failed barrier.  The
     * channel can be had by others when all participants have detached. */
    int (*detach)(struct collx_bar *bar, unsigned channel);

    /* Of a channel that this node has detached from, and not agreed with others since to have: 1 if
     * other participants have not, and may still be waiting to be released.  0: it is free, or
     * another's. */
    int (*lingers)(struct collx_bar *bar, unsigned channel);

    void (*counts)(const struct collx_bar *bar, struct collx_bar_counts *counts);
    void (*close)(struct collx_bar *bar); /* detaches; NULL is fine */
};

extern const struct collx_bar_ops collx_barrier_wires;

#endif
