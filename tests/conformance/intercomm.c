/* Collectives over intercommunicators have rules of their own; they have to go on working. */
#include "conformance.h"

#include <stdio.h>

/* Ranks below half are one group, the rest the other. */
static int group_of(int rank)
{
    return rank >= (cf_size + 1) / 2;
}

static void bcast(MPI_Comm comm, int from_group, int root)
{
    int mine = group_of(cf_rank), value = -1, argument, local;

    cf_case("MPI_Bcast over an intercommunicator, from rank %d of group %d", root, from_group);
    MPI_Comm_rank(comm, &local);
    if (mine == from_group) {
        argument = local == root ? MPI_ROOT : MPI_PROC_NULL;
        if (local == root)
            value = 1234 + root;
    } else {
        argument = root;
    }
    if (cf_ok(MPI_Bcast(&value, 1, MPI_INT, argument, comm)) && mine != from_group &&
        value != 1234 + root)
        cf_fail("%d, expected %d", value, 1234 + root);
}

static void allreduce(MPI_Comm comm, int count)
{
    int in[1000], out[1000], expected[1000];

    cf_case("MPI_Allreduce over an intercommunicator, %d x MPI_INT", count);
    for (int i = 0; i < count; i++) {
        in[i] = cf_rank + i;
        expected[i] = 0;
        for (int r = 0; r < cf_size; r++)
            expected[i] += group_of(r) != group_of(cf_rank) ? r + i : 0;
    }
    if (!cf_ok(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm)))
        return;
    for (int i = 0; i < count; i++)
        if (out[i] != expected[i]) {
            cf_fail("element %d: %d, expected %d", i, out[i], expected[i]);
            return;
        }
}

static void barrier(MPI_Comm comm, uint64_t round)
{
    cf_case("MPI_Barrier over an intercommunicator");
    cf_show(0, round);
    if (!cf_ok(MPI_Barrier(comm)))
        return;
    /* It waits for all of the other group. */
    for (int i = 0; i < cf_size; i++)
        if (group_of(i) != group_of(cf_rank) && cf_seen(0, i) < round)
            cf_fail("left before rank %d of MPI_COMM_WORLD had come", i);
}

void cf_test_intercomm(void)
{
    MPI_Comm local, comm;
    int rounds = cf_quick ? 2 : 12;

    if (cf_size < 2)
        return;
    cf_show(0, 0);
    cf_sync();
    MPI_Comm_split(MPI_COMM_WORLD, group_of(cf_rank), cf_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, group_of(cf_rank) ? 0 : (cf_size + 1) / 2, 3,
                         &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < rounds; i++) {
        barrier(comm, (uint64_t)i + 1);
        bcast(comm, 0, 0);
        bcast(comm, 1, 0);
        bcast(comm, 0, (cf_size + 1) / 2 - 1);
        bcast(comm, 1, cf_size / 2 - 1);
        allreduce(comm, 1);
        allreduce(comm, 1000);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&local);
}
