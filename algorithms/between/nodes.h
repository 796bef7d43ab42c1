/* What the algorithms between nodes have in common.
 *
 * On each node the ranks check in with their leader, each by a flag in the memory that the node
 * shares.  The leaders then meet in some way, and each releases its node by one flag.  With a
 * single node that is all of it; with a rank a node the way to meet is.
 */
#ifndef COLLX_NODES_H
#define COLLX_NODES_H

#include "algorithms/between/pattern.h"
#include "base/algorithm.h"

/* How leaders meet.  `with` is the way's own. */
struct collx_nodes_way {
    /* As collx_algorithm.connect: all ranks take part. */
    int (*connect)(void *with, char *why, size_t size);
    /* Leaders: back when all of them have called it.  0, or what run() returns. */
    int (*meet)(void *with);
    /* One line, from a leader that is connected. */
    void (*describe)(const void *with, char *line, size_t size);
    /* Local; also where nothing was connected. */
    void (*destroy)(void *with);
};

/* collx_algorithm.space. */
size_t collx_nodes_space(const struct collx_facts *facts, const struct collx_args *args);

/* For collx_algorithm.attach: a barrier whose leaders meet this way.  `with`, which goes with it,
 * is NULL where there was no memory for it.  0 or -ENOMEM. */
int collx_nodes_attach(struct collx_team *team, const struct collx_nodes_way *way, void *with,
                       void *memory, struct collx_slot *slot);

/* The same where they do a pattern, over an enum collx_over.  `form` says in a few words what it
 * is; it is copied. */
int collx_nodes_attach_pattern(struct collx_team *team, const struct collx_pattern *pattern,
                               const char *form, int64_t over, void *memory,
                               struct collx_slot *slot);

/* collx_algorithm.connect, describe, detach. */
int collx_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why, size_t size);
void collx_nodes_describe(const void *state, char *line, size_t size);
void collx_nodes_detach(void *state);

#endif
