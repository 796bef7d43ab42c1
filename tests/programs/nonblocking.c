/* Says so of each nonblocking collective that collx makes.  Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <stdio.h>

int PMPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    fprintf(stderr, "a nonblocking Allreduce\n");
    return REAL(PMPI_Iallreduce)(in, out, count, type, op, comm, request);
}

int PMPI_Iallgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
                    MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    fprintf(stderr, "a nonblocking Allgather\n");
    return REAL(PMPI_Iallgather)(in, in_count, in_type, out, out_count, out_type, comm, request);
}

int PMPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    fprintf(stderr, "a nonblocking Bcast\n");
    return REAL(PMPI_Ibcast)(buffer, count, type, root, comm, request);
}
