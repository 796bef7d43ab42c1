/* Counts how often the ranks ask each other whether a communicator is worth a setup.  Loaded like
 * wide_integers.c. */
#include <dlfcn.h>
#include <mpi.h>

__attribute__((visibility("default"))) int asked;

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))dlsym(RTLD_NEXT,
                                                                                  "PMPI_Allreduce");

    asked += op == MPI_BOR; /* the program adds up */
    return allreduce(in, out, count, type, op, comm);
}
