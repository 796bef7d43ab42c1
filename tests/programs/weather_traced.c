/* A program that calls each collective there is, in each form: a case of weather.c. */
#include "tests/programs/weather.h"

#if MPI_VERSION >= 4
#define PERSISTENT(Name, ...)                                                                      \
    do {                                                                                           \
        CHECK(!MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request));                           \
        CHECK(!MPI_Start(&request));                                                               \
        CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));                                             \
        CHECK(!MPI_Request_free(&request));                                                        \
    } while (0)
#else
#define PERSISTENT(Name, ...) ((void)0)
#endif

#define EACH_FORM(Name, Iname, ...)                                                                \
    do {                                                                                           \
        CHECK(!MPI_##Name(__VA_ARGS__));                                                           \
        CHECK(!MPI_##Iname(__VA_ARGS__, &request));                                                \
        CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));                                             \
        PERSISTENT(Name, __VA_ARGS__);                                                             \
    } while (0)

/* 300 bytes to, or from, each rank or neighbour, of which there are two. */
static void every_collective(void)
{
    enum { BYTES = 300, MOST = 4 };
    static char in[MOST * BYTES], out[MOST * BYTES];
    int counts[MOST], at[MOST], ring = 1;
    MPI_Aint byte_at[MOST];
    MPI_Datatype types[MOST];
    MPI_Request request;
    MPI_Comm comm;

    start();
    CHECK(size <= MOST);
    for (int i = 0; i < size; i++) {
        counts[i] = BYTES;
        at[i] = i * BYTES;
        byte_at[i] = i * BYTES;
        types[i] = MPI_BYTE;
    }
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
    EACH_FORM(Barrier, Ibarrier, comm);
    EACH_FORM(Bcast, Ibcast, in, BYTES, MPI_BYTE, 1, comm);
    EACH_FORM(Allreduce, Iallreduce, in, out, BYTES, MPI_BYTE, MPI_BOR, comm);
    EACH_FORM(Reduce, Ireduce, in, out, BYTES, MPI_BYTE, MPI_BOR, 1, comm);
    EACH_FORM(Gather, Igather, in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE, 1, comm);
    EACH_FORM(Gatherv, Igatherv, in, BYTES, MPI_BYTE, out, counts, at, MPI_BYTE, 1, comm);
    EACH_FORM(Scatter, Iscatter, in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE, 1, comm);
    EACH_FORM(Scatterv, Iscatterv, in, counts, at, MPI_BYTE, out, BYTES, MPI_BYTE, 1, comm);
    EACH_FORM(Allgather, Iallgather, in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE, comm);
    EACH_FORM(Allgatherv, Iallgatherv, in, BYTES, MPI_BYTE, out, counts, at, MPI_BYTE, comm);
    EACH_FORM(Alltoall, Ialltoall, in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE, comm);
    EACH_FORM(Alltoallv, Ialltoallv, in, counts, at, MPI_BYTE, out, counts, at, MPI_BYTE, comm);
    EACH_FORM(Alltoallw, Ialltoallw, in, counts, at, types, out, counts, at, types, comm);
    EACH_FORM(Reduce_scatter, Ireduce_scatter, in, out, counts, MPI_BYTE, MPI_BOR, comm);
    EACH_FORM(Reduce_scatter_block, Ireduce_scatter_block, in, out, BYTES, MPI_BYTE, MPI_BOR, comm);
    EACH_FORM(Scan, Iscan, in, out, BYTES, MPI_BYTE, MPI_BOR, comm);
    EACH_FORM(Exscan, Iexscan, in, out, BYTES, MPI_BYTE, MPI_BOR, comm);
    EACH_FORM(Neighbor_allgather, Ineighbor_allgather, in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE,
              comm);
    EACH_FORM(Neighbor_allgatherv, Ineighbor_allgatherv, in, BYTES, MPI_BYTE, out, counts, at,
              MPI_BYTE, comm);
    EACH_FORM(Neighbor_alltoall, Ineighbor_alltoall, in, BYTES, MPI_BYTE, out, BYTES, MPI_BYTE,
              comm);
    EACH_FORM(Neighbor_alltoallv, Ineighbor_alltoallv, in, counts, at, MPI_BYTE, out, counts, at,
              MPI_BYTE, comm);
    EACH_FORM(Neighbor_alltoallw, Ineighbor_alltoallw, in, counts, byte_at, types, out, counts,
              byte_at, types, comm);
    MPI_Comm_free(&comm);
    finish();
}

const struct weather weather_traced[] = {
    {"every-collective", every_collective},
    {0},
};
