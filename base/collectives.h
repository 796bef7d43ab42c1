/* The collectives of MPI, in one table.
 *
 * The exported names, the adapter's wrappers, the trace, the policy words and the report are
 * expanded from here; CONTRIBUTING.md tells what else a new one takes.
 */
#ifndef COLLX_COLLECTIVES_H
#define COLLX_COLLECTIVES_H

/* X(KIND, Name, Iname, word): MPI_Name, MPI_Iname, MPI_Name_init; `word` is what people write. */
#define COLLX_COLLECTIVES(X)                                                                       \
    X(BARRIER, Barrier, Ibarrier, barrier)                                                         \
    COLLX_COLLECTIVES_WITH_COUNTS(X)

/* Those that have large-count twins, MPI_Name_c and so on: all that have counts. */
#define COLLX_COLLECTIVES_WITH_COUNTS(X)                                                           \
    X(BCAST, Bcast, Ibcast, bcast)                                                                 \
    X(ALLREDUCE, Allreduce, Iallreduce, allreduce)                                                 \
    X(REDUCE, Reduce, Ireduce, reduce)                                                             \
    X(GATHER, Gather, Igather, gather)                                                             \
    X(GATHERV, Gatherv, Igatherv, gatherv)                                                         \
    X(SCATTER, Scatter, Iscatter, scatter)                                                         \
    X(SCATTERV, Scatterv, Iscatterv, scatterv)                                                     \
    X(ALLGATHER, Allgather, Iallgather, allgather)                                                 \
    X(ALLGATHERV, Allgatherv, Iallgatherv, allgatherv)                                             \
    X(ALLTOALL, Alltoall, Ialltoall, alltoall)                                                     \
    X(ALLTOALLV, Alltoallv, Ialltoallv, alltoallv)                                                 \
    X(ALLTOALLW, Alltoallw, Ialltoallw, alltoallw)                                                 \
    X(REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter, reduce_scatter)                             \
    X(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block)     \
    X(SCAN, Scan, Iscan, scan)                                                                     \
    X(EXSCAN, Exscan, Iexscan, exscan)                                                             \
    X(NEIGHBOR_ALLGATHER, Neighbor_allgather, Ineighbor_allgather, neighbor_allgather)             \
    X(NEIGHBOR_ALLGATHERV, Neighbor_allgatherv, Ineighbor_allgatherv, neighbor_allgatherv)         \
    X(NEIGHBOR_ALLTOALL, Neighbor_alltoall, Ineighbor_alltoall, neighbor_alltoall)                 \
    X(NEIGHBOR_ALLTOALLV, Neighbor_alltoallv, Ineighbor_alltoallv, neighbor_alltoallv)             \
    X(NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, Ineighbor_alltoallw, neighbor_alltoallw)

#ifndef __ASSEMBLER__

/* Barrier, Bcast and Allreduce come first: they are the ones that can be routed, and slots are
 * arrays of COLLX_ROUTED elements. */
enum collx_kind {
#define X(KIND, Name, Iname, word) COLLX_##KIND,
    COLLX_COLLECTIVES(X)
#undef X
        COLLX_KINDS,
    COLLX_ROUTED = COLLX_ALLREDUCE + 1,
};

/* How a collective was called. */
enum collx_form { COLLX_BLOCKING, COLLX_NONBLOCKING, COLLX_PERSISTENT, COLLX_FORMS };

/* "barrier", "bcast", …; NULL for a kind that does not exist. */
const char *collx_kind_name(unsigned kind);

/* "MPI_Barrier", "MPI_Ibarrier", "MPI_Barrier_init"; "?" for what does not exist. */
const char *collx_mpi_name(unsigned kind, unsigned form);

/* The reduction operations that policies and traces can name.  Everything that a user made with
 * MPI_Op_create is USER.  X(OP, word) */
#define COLLX_OPS(X)                                                                               \
    X(NONE, none)                                                                                  \
    X(SUM, sum)                                                                                    \
    X(PROD, prod)                                                                                  \
    X(MIN, min)                                                                                    \
    X(MAX, max)                                                                                    \
    X(BAND, band)                                                                                  \
    X(BOR, bor)                                                                                    \
    X(BXOR, bxor)                                                                                  \
    X(LAND, land)                                                                                  \
    X(LOR, lor)                                                                                    \
    X(LXOR, lxor)                                                                                  \
    X(MINLOC, minloc)                                                                              \
    X(MAXLOC, maxloc)                                                                              \
    X(REPLACE, replace)                                                                            \
    X(NO_OP, no_op)                                                                                \
    X(USER, user)

enum collx_op {
#define X(OP, word) COLLX_OP_##OP,
    COLLX_OPS(X)
#undef X
        COLLX_OP_COUNT,
};

/* "sum", "user", …; "none" for a collective that does not reduce; NULL for an unknown number. */
const char *collx_op_name(unsigned op);

#endif /* __ASSEMBLER__ */
#endif
