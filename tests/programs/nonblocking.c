/* Says so of each nonblocking collective that collx makes.  Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <stdio.h>

int PMPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    int (*begin)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *))real(
            "PMPI_Iallreduce");

    fprintf(stderr, "a nonblocking Allreduce\n");
    return begin(in, out, count, type, op, comm, request);
}

int PMPI_Iallgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
                    MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    int (*begin)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                 MPI_Request *) =
        (int (*)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                 MPI_Request *))real("PMPI_Iallgather");

    fprintf(stderr, "a nonblocking Allgather\n");
    return begin(in, in_count, in_type, out, out_count, out_type, comm, request);
}

int PMPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    int (*begin)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *) =
        (int (*)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *))real("PMPI_Ibcast");

    fprintf(stderr, "a nonblocking Bcast\n");
    return begin(buffer, count, type, root, comm, request);
}
