/* What ranks tell each other beside the chunks of a ring (algorithms/bcast_ring.h), for tests in
 * C++. */
#ifndef COLLX_TESTS_RING_VIEW_H
#define COLLX_TESTS_RING_VIEW_H

#include <stdbool.h>
#include <stddef.h>

/* Rank 0 of two sends messages of `bytes` bytes, until it has come round its ring; rank 1 returns
 * lines, or does not.  Whether rank 0 has heard of it. */
bool ring_view_hears(size_t bytes, bool returns);

#endif
