/* Holds a rank up when it has just heard from the others, as a scheduler may: once, where the
 * program has set LATE_TO_RETURN to 1; to Bcast, at the end of one of something.  Loaded like
 * wide_integers.c.
 */
#include "real.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_a_while(const char *where)
{
    const char *late = getenv("LATE_TO_RETURN");

    if (!late || strcmp(late, where) != 0)
        return;
    unsetenv("LATE_TO_RETURN");
    usleep(300000);
}

/* With Open MPI ranks hear from all this way. */
int PMPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    int error = REAL(PMPI_Allreduce)(sendbuf, recvbuf, count, type, op, comm);

    wait_a_while("1");
    return error;
}

/* With MPICH that way. */
int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int error = REAL(PMPI_Test)(request, flag, status);

    if (*flag)
        wait_a_while("1");
    return error;
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int error = REAL(PMPI_Bcast)(buffer, count, type, root, comm);

    if (count)
        wait_a_while("Bcast");
    return error;
}
