/* Has an MPI library refuse what collx frees in MPI_Finalize after the delete callbacks on
 * MPI_COMM_SELF, by ending the job, as Open MPI 5 does.  Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static void *while_open(const char *name)
{
    int over;

    PMPI_Finalized(&over);
    if (over) {
        fprintf(stderr, "%s was called after MPI_FINALIZE was invoked\n", name);
        _exit(1);
    }
    return real(name);
}

int PMPI_Comm_free(MPI_Comm *comm)
{
    return ((int (*)(MPI_Comm *))while_open("PMPI_Comm_free"))(comm);
}

int PMPI_Group_free(MPI_Group *group)
{
    return ((int (*)(MPI_Group *))while_open("PMPI_Group_free"))(group);
}

int PMPI_Cancel(MPI_Request *request)
{
    return ((int (*)(MPI_Request *))while_open("PMPI_Cancel"))(request);
}

int PMPI_Win_unlock_all(MPI_Win win)
{
    return ((int (*)(MPI_Win))while_open("PMPI_Win_unlock_all"))(win);
}

int PMPI_Win_free(MPI_Win *win)
{
    return ((int (*)(MPI_Win *))while_open("PMPI_Win_free"))(win);
}
