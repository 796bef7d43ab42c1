/* Lets a program do something where its ranks are about to hear from rank 0, as another thread of
 * it may then: it exports ibcast_begins(), and may count on nothing.  Loaded like wide_integers.c.
 */
#include "real.h"

#include <mpi.h>

static void tell(void)
{
    void (*begins)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "ibcast_begins");

    begins();
}

int PMPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    tell();
    return REAL(PMPI_Ibcast)(buffer, count, type, root, comm, request);
}

/* With Open MPI they block. */
int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    tell();
    return REAL(PMPI_Bcast)(buffer, count, type, root, comm);
}
