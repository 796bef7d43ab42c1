/* Has an MPI library return success where a handler of the program's own has been told of an error,
 * as MPICH 5 does.  Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>

static int told(MPI_Comm comm, int error)
{
    MPI_Errhandler handler;

    if (!error || MPI_Comm_get_errhandler(comm, &handler))
        return error;
    return handler == MPI_ERRORS_RETURN ? error : MPI_SUCCESS;
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm) =
        (int (*)(void *, int, MPI_Datatype, int, MPI_Comm))real("PMPI_Bcast");

    return told(comm, bcast(buffer, count, type, root, comm));
}

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))real("PMPI_Allreduce");

    return told(comm, allreduce(in, out, count, type, op, comm));
}
