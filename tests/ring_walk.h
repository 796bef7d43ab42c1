/* Two ranks that pass messages through a ring (algorithms/bcast/bcast_ring.h), a step of one of
 * them at a time, in any order. */
#ifndef COLLX_TESTS_RING_WALK_H
#define COLLX_TESTS_RING_WALK_H

#include <stdbool.h>
#include <stddef.h>

struct ring_walk_message {
    int root;
    size_t bytes;
};

/* `next` says whose step comes next, as far as that one need not wait; `most` is as in struct
 * collx_ring of the ring for long messages, or 0: that for small ones.  Returns NULL, or what goes
 * wrong: a chunk that is overwritten while it is to be read, another one than expected, ranks that
 * wait for each other, or that do not count alike. */
const char *ring_walk(const struct ring_walk_message *messages, int count, bool swings,
                      unsigned most, int (*next)(void *context), void *context);

#endif
