/* Has an MPI library say that its MPI_INTEGER is of 8 bytes, as it is where Fortran was built with
 * -fdefault-integer-8.  Called like an MPI library itself and loaded before the real one, it is
 * what collx asks; all that it does not have comes from the real one, which it is linked with. */
#include "real.h"

#include <mpi.h>

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size)
{
    /* Not by its name, which newer headers advise against. */
    if (type != MPI_INTEGER)
        return ((int (*)(MPI_Datatype, MPI_Count *))real("PMPI_Type_size_x"))(type, size);
    *size = 8;
    return MPI_SUCCESS;
}

int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent)
{
    if (type != MPI_INTEGER)
        return MPI_Type_get_extent(type, lb, extent);
    *lb = 0;
    *extent = 8;
    return MPI_SUCCESS;
}
