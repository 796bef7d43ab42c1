/* The memory that the ranks of a communicator share: one segment on each node, made by its leader,
 * with a struct collx_crowd at its head and the algorithms' pieces behind it. */
#ifndef COLLX_PMPI_SEGMENT_H
#define COLLX_PMPI_SEGMENT_H

#include "hw/shm.h"
#include "hw/spares.h"
#include "pmpi/comm.h"

struct collx_kept; /* pmpi/kept.h */

/* Where a leader's segment is, for the others of its node. */
struct collx_segment_address {
    struct collx_shm_address at;
    int32_t error; /* negative errno: there is none */
    int32_t pad;
};
_Static_assert(sizeof(struct collx_segment_address) == 24, "it travels as bytes");

/* The segments of freed communicators that this process still has, for the other ranks to hear of.
 * Local. */
void collx_segments_tell(uint64_t spare[COLLX_SPARES]);

/* The leader: one of spare[], of which all ranks of the node have told, into comm->routes.segment,
 * and where it is into *address; what is behind its `users` is to be zeroed.  `layout`: equal for
 * segments of which the parts lie on the same NUMA nodes.  One with routes only where there is no
 * room for one more.  False: there is none.  Make one. */
bool collx_segment_reuse(struct collx_comm *comm, size_t size, uint64_t layout,
                         const uint64_t spare[COLLX_SPARES], struct collx_segment_address *address);

/* The leader.  Into comm->routes.segment, without memory yet: what lies where can still be said. 0;
 * -E2BIG: more than COLLX_MEMORY_COMM; -EDQUOT: of its share of COLLX_MEMORY this process has too
 * little left; or another negative errno. */
int collx_segment_make(struct collx_comm *comm, size_t size, uint64_t layout);

/* The leader, then: give it its memory, and say in *address where it is.  0 or a negative errno;
 * then there is no segment. */
int collx_segment_allocate(struct collx_comm *comm, struct collx_segment_address *address);

/* The others of the node.  Likewise; or COLLX_EGONE: it is one of which this rank has told, and
 * another thread has let go of it meanwhile. */
int collx_segment_open(struct collx_comm *comm, size_t size, uint64_t layout,
                       const struct collx_segment_address *address);

/* Every rank has opened it, or will not; until then the leader must keep it open.  All ranks. */
void collx_segment_opened(struct collx_comm *comm);

/* Local, without an MPI call; also where there is none. */
void collx_segment_close(struct collx_comm *comm);
/* Likewise, of routes that all ranks have set up: the next communicator may have it, and `with` it
 * (pmpi/kept.h), unless that is NULL, if it is of the same ranks.  One that is not, or nobody,
 * closes that. */
void collx_segment_keep(struct collx_routes *routes, struct collx_kept *with);

/* As collx_spares_find(), of the segments that this process has kept.  Who has found one owns it.
 */
bool collx_segment_find(bool (*is)(const struct collx_spare *spare, const void *context),
                        const void *context, struct collx_spare *found);
/* Whoever has found it does not need it. */
void collx_segment_put_back(const struct collx_spare *spare);
/* Nobody will.  Local. */
void collx_segments_finish(void);

/* This process's share of COLLX_MEMORY, and what it has taken of it, over all its communicators and
 * what is kept for later ones, which goes when there is not enough.  Local. */
size_t collx_segment_share(const struct collx_comm *comm);
size_t collx_segments_taken(void);

#endif
