/* Calls collectives a known number of times and checks what comes back: the C part of the test
 * that every call is seen exactly once (tests/run_once.py knows the numbers). */
#include "tests/programs/check.h"

#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size;
    int value[4], sum[4];
    int from[64], to[64];
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= 64);

    for (int i = 0; i < 11; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 13; i++) {
        for (int k = 0; k < 4; k++)
            value[k] = rank == i % size ? 100 * i + k : -1;
        MPI_Bcast(value, 4, MPI_INT, i % size, MPI_COMM_WORLD);
        for (int k = 0; k < 4; k++)
            CHECK(value[k] == 100 * i + k);
    }
    for (int i = 0; i < 17; i++) {
        for (int k = 0; k < 4; k++)
            sum[k] = value[k] = rank + i + k;
        MPI_Allreduce(i % 2 ? MPI_IN_PLACE : value, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < 4; k++)
            CHECK(sum[k] == size * (size - 1) / 2 + size * (i + k));
    }
    for (int i = 0; i < 5; i++) {
        MPI_Gather(&rank, 1, MPI_INT, to, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int k = 0; rank == 0 && k < size; k++)
            CHECK(to[k] == k);
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < size; k++)
            from[k] = 1000 * rank + k;
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
        for (int k = 0; k < size; k++)
            CHECK(to[k] == 1000 * k + rank);
    }
    for (int i = 0; i < 2; i++) {
        value[0] = rank == 0 ? i + 7 : 0;
        MPI_Ibcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(value[0] == i + 7);
    }

#if MPI_VERSION >= 4
    for (MPI_Count i = 0; i < 7; i++) {
        value[0] = rank == 1 % size ? (int)i : -1;
        MPI_Bcast_c(value, (MPI_Count)1, MPI_INT, 1 % size, MPI_COMM_WORLD);
        CHECK(value[0] == i);
    }
    for (MPI_Count i = 0; i < 6; i++) {
        value[0] = rank;
        MPI_Allreduce_c(value, sum, (MPI_Count)1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(sum[0] == size - 1);
    }
#endif
    MPI_Finalize();
    return 0;
}
