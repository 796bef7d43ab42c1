/* What the algorithms between nodes have in common.
 *
 * On each node the ranks check in with their leader, each by a flag in the memory that the node
 * shares.  The leaders then run a schedule among themselves, over segments or messages, and each
 * releases its node by one flag.  With a single node that is all of it; with a rank a node the
 * schedule is.
 */
#ifndef COLLX_NODES_H
#define COLLX_NODES_H

#include "algorithms/crossroads.h"

/* collx_algorithm.query and space. */
int collx_nodes_query(const struct collx_facts *facts, const struct collx_args *args, char *why,
                      size_t size);
size_t collx_nodes_space(const struct collx_facts *facts, const struct collx_args *args);

/* For collx_algorithm.attach: a barrier whose leaders do `pattern`, over an enum collx_over.
 * `form` says in a few words what that is; it is copied.  0 or -ENOMEM. */
int collx_nodes_attach(struct collx_team *team, const struct collx_pattern *pattern,
                       const char *form, int64_t over, void *memory, struct collx_slot *slot);

/* How many nodes the team is on. */
int collx_nodes_count(const struct collx_team *team);

/* collx_algorithm.connect, describe, detach. */
int collx_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why, size_t size);
void collx_nodes_describe(const void *state, char *line, size_t size);
void collx_nodes_detach(void *state);

#endif
