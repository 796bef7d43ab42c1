/* A job on several nodes, for tests/run_cluster.py.
 *
 * usage: cluster both ROUNDS: collectives among all and within each node, also at the same time;
 *        cluster endless FILE: the same until somebody ends it, at the latest after a minute;
 *                              makes FILE once it is under way.
 *
 * Each node's first rank prints "node NAME ranks N", rank 0 "good" at the end. */
#include "tests/end_well.h"
#include "tests/programs/check.h"
#include "tests/programs/set_up.h"

#include <mpi.h>

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 20000, UNDER_WAY = 3 /* rounds */ };

static void try_all(MPI_Comm comm, int round)
{
    static int mine[LONG], all[LONG];
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int count = 1; count <= LONG; count = count == 1 ? LONG : count + LONG) {
        for (int i = 0; i < count; i++)
            mine[i] = rank + i + round;
        CHECK(!MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, comm));
        for (int i = 0; i < count; i++)
            CHECK(all[i] == size * (i + round) + size * (size - 1) / 2);
        CHECK(!MPI_Bcast(mine, count, MPI_INT, round % size, comm));
        for (int i = 0; i < count; i++)
            CHECK(mine[i] == round % size + i + round);
    }
    CHECK(!MPI_Barrier(comm));
}

static void try_both(MPI_Comm everywhere, MPI_Comm nodal, int round)
{
    int mine = 1, sum = 0, size;
    MPI_Request request;

    MPI_Comm_size(everywhere, &size);
    try_all(nodal, round);
    try_all(everywhere, round);
    CHECK(!MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, everywhere, &request));
    try_all(nodal, round);
    CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == size);
}

int main(int argc, char **argv)
{
    MPI_Comm everywhere, nodal;
    int rank, nodal_rank, nodal_size;
    char host[HOST_NAME_MAX + 1] = "";

    CHECK(argc == 3);
    const bool endless = !strcmp(argv[1], "endless");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &everywhere);
    MPI_Comm_set_name(everywhere, "everywhere");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &nodal);
    MPI_Comm_set_name(nodal, "nodal");
    MPI_Comm_rank(nodal, &nodal_rank);
    MPI_Comm_size(nodal, &nodal_size);
    gethostname(host, HOST_NAME_MAX);
    if (!nodal_rank) {
        printf("node %s ranks %d\n", host, nodal_size);
        fflush(stdout);
    }
    if (endless)
        alarm(60);
    use_until_set_up(everywhere);
    use_until_set_up(nodal);
    int rounds = endless ? INT_MAX : atoi(argv[2]);
    for (int round = 0; round < rounds; round++) {
        try_both(everywhere, nodal, round);
        if (endless && rank == 0 && round == UNDER_WAY) {
            FILE *begun = fopen(argv[2], "w");
            CHECK(begun && !fclose(begun));
        }
    }
    MPI_Comm_free(&nodal);
    MPI_Comm_free(&everywhere);
    end_well(rank);
    return 0;
}
