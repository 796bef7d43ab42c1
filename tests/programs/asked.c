/* Counts how often the ranks ask each other whether a communicator is worth a setup.  Loaded like
 * wide_integers.c. */
#include <dlfcn.h>
#include <mpi.h>

__attribute__((visibility("default"))) int asked;

int PMPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    int (*iallreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *))dlsym(
            RTLD_NEXT, "PMPI_Iallreduce");

    asked++;
    return iallreduce(in, out, count, type, op, comm, request);
}
