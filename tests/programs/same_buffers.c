/* Has an MPI library take buffers that are the same for what is in place, as libraries of MPICH's
 * family do under MPIR_CVAR_COLL_ALIAS_CHECK=0; Debian's aborts then, for it has assertions.
 * Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    return REAL(PMPI_Allreduce)(in == out ? MPI_IN_PLACE : in, out, count, type, op, comm);
}
