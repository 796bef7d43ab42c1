/* Has an MPI library end the program where it is asked for a size that is no int, as MPICH does
 * before 4.0.  Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <stdlib.h>

int PMPI_Pack_size(int count, MPI_Datatype type, MPI_Comm comm, int *size)
{
    const int error = REAL(PMPI_Pack_size)(0, type, comm, size);
    int bytes;

    if (error)
        return error;
    MPI_Type_size(type, &bytes);
    if (count && bytes == MPI_UNDEFINED)
        abort();
    return REAL(PMPI_Pack_size)(count, type, comm, size);
}
