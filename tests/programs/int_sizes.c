/* Has an MPI library end the program where it is asked for a size that is no int, as MPICH does up
 * to 3.4.  Loaded like wide_integers.c. */
#include "real.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

int PMPI_Pack_size(int count, MPI_Datatype type, MPI_Comm comm, int *size)
{
    const int error = REAL(PMPI_Pack_size)(0, type, comm, size);
    MPI_Count bytes;

    if (error)
        return error;
    MPI_Type_size_x(type, &bytes);
    if (count * bytes > INT_MAX)
        abort();
    return REAL(PMPI_Pack_size)(count, type, comm, size);
}
