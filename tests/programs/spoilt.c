/* A tool around collx that spoils what comes out of the collective that COLLX_TEST_SPOILT names, on
 * rank 1.  Preloaded before it. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void spoil(const char *name, void *first, MPI_Comm comm)
{
    const char *spoilt = getenv("COLLX_TEST_SPOILT");
    int rank;

    PMPI_Comm_rank(comm, &rank);
    if (rank == 1 && spoilt && !strcmp(spoilt, name))
        ++*(unsigned char *)first;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int error = PMPI_Bcast(buffer, count, type, root, comm);

    spoil("bcast", buffer, comm);
    return error;
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int error = PMPI_Allreduce(in, out, count, type, op, comm);

    spoil("allreduce", out, comm);
    return error;
}
