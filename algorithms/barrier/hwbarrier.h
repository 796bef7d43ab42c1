/* How leaders of nodes meet at a board that their ports are wired to: hw/barrier.h.
 *
 * They find out together whether that works: whether each has a port, and its right to it; whether
 * their nodes are those that take part on the board; which channel is free on all of them; and, in
 * two barriers for trial, whether the board waits for the last one and then releases all.
 */
#ifndef COLLX_HWBARRIER_H
#define COLLX_HWBARRIER_H

#include "algorithms/between/nodes.h"

extern const struct collx_nodes_way collx_hwbarrier_way;

/* What that way goes with; NULL: out of memory.  Local. */
void *collx_hwbarrier_create(struct collx_team *team);

#endif
