/* Counts how often rank 0 tells the others whether a communicator is worth a setup.  Loaded like
 * wide_integers.c. */
#include "real.h"

#include <mpi.h>

__attribute__((visibility("default"))) int asked;

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    asked += type == MPI_UINT64_T; /* the program has none */
    return REAL(PMPI_Bcast)(buffer, count, type, root, comm);
}
