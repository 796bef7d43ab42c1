/* Where the ranks of a communicator are: on which nodes, and where on those. */
#ifndef COLLX_WHERE_H
#define COLLX_WHERE_H

#include "algorithms/facts.h"
#include "hw/place.h"
#include "hw/spares.h"
#include "pmpi/comm.h"

/* What each rank tells the others of itself. */
struct collx_where {
    uint64_t node; /* never 0; COLLX_NODE_SIZE cuts a real one into several */
    struct collx_place place;
    uint32_t pad;
    uint64_t spare[COLLX_SPARES]; /* cookies of the segments that it has kept */
};
static_assert(sizeof(struct collx_where) == 24 + 8 * COLLX_SPARES, "it travels as bytes");

/* Of this rank, without its spares.  The place is found out once for a process, and only where its
 * algorithms can make something of it; else it is nowhere.  Local. */
struct collx_where collx_where_own(const struct collx_comm *comm);

/* Leave of spare[] those that all ranks on the node of `rank` have, by their node[ranks]; 0 in
 * place of others. */
void collx_where_common(const struct collx_where *where, const int *node, int ranks, int rank,
                        uint64_t spare[COLLX_SPARES]);

/* The facts that follow from all ranks' where[ranks]; places[ranks] and node[ranks], to which they
 * point, are filled in, and members[ranks] is to work in. */
void collx_where_facts(const struct collx_where *where, int ranks, struct collx_facts *facts,
                       struct collx_place *places, struct collx_member *members, int *node);

#endif
