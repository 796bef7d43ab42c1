/* Bcast between nodes.
 *
 * A message goes in pieces.  On its own node the root puts each into a ring of slots in the memory
 * that the node shares; everybody takes it out there.  The leader of that node passes it on along a
 * tree of leaders, of which its node is the root, whichever it is; each leader puts what it gets
 * into the ring of its own node, while it passes the piece before on to others.
 *
 * Pieces are numbered e = 1, 2, … over all calls; all ranks count alike.  On a node one rank writes
 * a piece: it waits until all have done with e - SLOTS, which had the slot, and releases e.  A
 * leader has done with a piece when it has passed it on.
 */
#ifndef COLLX_BCAST_NODES_H
#define COLLX_BCAST_NODES_H

#include "algorithms/between/crossroads.h"
#include "algorithms/between/fanout.h"

/* collx_algorithm.space. */
size_t collx_bcast_nodes_space(const struct collx_facts *facts, const struct collx_args *args);

/* For attach: along such trees, over an enum collx_over.  0 or -ENOMEM. */
int collx_bcast_nodes_attach(struct collx_team *team, const struct collx_fanout *fanout,
                             int64_t over, void *memory, struct collx_slot *slot);

/* collx_algorithm.connect, takes, describe, detach. */
int collx_bcast_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why,
                              size_t size);
bool collx_bcast_nodes_takes(const void *state, const struct collx_call *call);
void collx_bcast_nodes_describe(const void *state, char *line, size_t size);
void collx_bcast_nodes_detach(void *state);

#endif
