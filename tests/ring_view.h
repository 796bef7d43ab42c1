/* What ranks tell each other beside the chunks of a ring (algorithms/bcast/bcast_ring.h), for tests
 * in C++. */
#ifndef COLLX_TESTS_RING_VIEW_H
#define COLLX_TESTS_RING_VIEW_H

#include <stdbool.h>
#include <stddef.h>

/* Rank 0 of two sends messages of `bytes` bytes, until it has come round its ring; rank 1 returns
 * lines, or does not.  Whether rank 0 has heard of it. */
bool ring_view_hears(size_t bytes, bool returns);

/* Rank 0 of two sends small messages of `bytes` bytes: how many before it looks whether rank 1 has
 * read. */
int ring_view_round(size_t bytes);

/* Rank 0 of two is the root of two messages of `bytes` bytes, the second of them `apart` messages
 * after the first, and of none between.  How many lines, of those that have a word for it, it has
 * then claimed of the message that comes as far after the second; -1: any of another one. */
int ring_view_claims(size_t bytes, int apart, bool crowded, bool swings);

/* Claimed lines of slots after some messages of `bytes` bytes, all from rank 0, which rank 1 gets
 * when rank 0 has sent so many more; `lined`: through a ring for small ones. */
int ring_view_claims_ahead(size_t bytes, int more, bool lined);

/* What two ranks make of messages of `bytes` bytes from these roots, through a ring that swings. */
struct ring_view_message {
    unsigned slot; /* the first one */
    bool returned; /* rank 1 has returned its lines */
    bool lined;    /* it came in numbered ones */
};
/* `small`: through a ring for small messages. */
void ring_view_swing(const int *roots, int count, size_t bytes, bool small,
                     struct ring_view_message *messages);

/* How a message of `bytes` bytes is cut that follows one of `before` bytes, both of rank 0, through
 * a ring of long messages whose chunks are of `most` bytes. */
struct ring_view_pieces {
    size_t bytes;    /* of a chunk */
    unsigned chunks; /* how many */
    unsigned slots;  /* that each takes */
    unsigned first;  /* slot */
};
struct ring_view_pieces ring_view_cut(unsigned most, size_t before, size_t bytes);

/* A copy of up to COLLX_SHORT bytes, as such messages are copied. */
void ring_view_copy(void *to, const void *from, size_t bytes);

#endif
