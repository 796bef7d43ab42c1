/* A ring of algorithms/bcast_ring.h, for tests in C++, in which nothing has been passed yet. */
#ifndef COLLX_TESTS_RING_VIEW_H
#define COLLX_TESTS_RING_VIEW_H

#include "base/algorithm.h"

/* Of the ring, between two ranks. */
size_t ring_view_space(void);

/* What a root does first to pass on a message in numbered lines: one line of it. */
void ring_view_begin(struct collx_team *team, void *memory, const unsigned char *from);

/* All of it.  Not 0: this one would not go in numbered lines. */
int ring_view_pass(struct collx_team *team, void *memory, int root, unsigned char *buf,
                   size_t bytes);

#endif
