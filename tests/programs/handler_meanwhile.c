/* Sets an error handler on the communicator in which MPI_Comm_create waits for the other ranks, as
 * another thread of the program may do then: the second time, of a communicator that collx makes
 * when MPI_Init is over.  It does so where there are no tags for the one that it made before.
 * Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>

static void do_nothing(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
}

int PMPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *found)
{
    int error = REAL(PMPI_Comm_get_attr)(comm, key, value, found);

    if (key == MPI_TAG_UB)
        *found = 0;
    return error;
}

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
    int error = REAL(PMPI_Comm_create)(comm, group, made);
    static int times;
    MPI_Errhandler handler;

    if (!times++)
        return error;
    MPI_Comm_create_errhandler(do_nothing, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    return error;
}
