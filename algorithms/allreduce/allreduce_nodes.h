/* Allreduce between nodes, in rank order: rank 0, 1, 2, … from the left, wherever the ranks are.
 *
 * So no partial results travel, but what each rank contributes.  A vector goes in chunks.  The
 * ranks of a node put theirs into memory that the node shares, and check in; their leader, with the
 * other leaders, makes the result of it, puts that there as well, and releases them.  The leaders
 * do
 *
 *   nx     a dissemination, in which each passes on all contributions that it has, and combines
 *          all of them itself.  Where they are too many for that, each node combines a slice of the
 *          vector: everybody sends it the contributions to that, and gets the result back.
 *   hsb    a tree, along which all contributions go up to the root, and the result comes down.
 */
#ifndef COLLX_ALLREDUCE_NODES_H
#define COLLX_ALLREDUCE_NODES_H

#include "algorithms/between/crossroads.h"

/* How leaders do it. */
struct collx_reduction {
    bool tree;
    int n;           /* no tree: as in pattern.h, at least 2 */
    int f_in, f_out; /* a tree's children, at least 2 */
};

enum { COLLX_REDUCTION_TREE = 1 << 20 }; /* what all ranks together contribute to a tree, at most */

/* collx_algorithm.space. */
size_t collx_allreduce_nodes_space(const struct collx_facts *facts, const struct collx_args *args);

/* For attach, over an enum collx_over.  0 or -ENOMEM. */
int collx_allreduce_nodes_attach(struct collx_team *team, const struct collx_reduction *reduction,
                                 int64_t over, void *memory, struct collx_slot *slot);

/* collx_algorithm.connect, takes, describe, detach. */
int collx_allreduce_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why,
                                  size_t size);
bool collx_allreduce_nodes_takes(const void *state, const struct collx_call *call);
void collx_allreduce_nodes_describe(const void *state, char *line, size_t size);
void collx_allreduce_nodes_detach(void *state);

#endif
