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
    return told(comm, REAL(PMPI_Bcast)(buffer, count, type, root, comm));
}

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    return told(comm, REAL(PMPI_Allreduce)(in, out, count, type, op, comm));
}
