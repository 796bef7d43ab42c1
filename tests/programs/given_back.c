/* Counts what is taken from an MPI library and has to be given back to it: groups, error handlers
 * and requests to receive what nobody sends.  Says at the end what was not.  Loaded like
 * wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int groups, handlers, requests, cancelled;

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    int error = REAL(PMPI_Comm_group)(comm, group);

    groups += !error;
    return error;
}

int PMPI_Group_incl(MPI_Group group, int count, const int *ranks, MPI_Group *part)
{
    int error = REAL(PMPI_Group_incl)(group, count, ranks, part);

    groups += !error;
    return error;
}

int PMPI_Group_free(MPI_Group *group)
{
    groups--;
    return REAL(PMPI_Group_free)(group);
}

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    int error = REAL(PMPI_Comm_get_errhandler)(comm, handler);

    handlers += !error;
    return error;
}

int PMPI_Errhandler_free(MPI_Errhandler *handler)
{
    handlers--;
    return REAL(PMPI_Errhandler_free)(handler);
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    int size = 0;

    /* All else comes from other ranks. */
    PMPI_Comm_size(comm, &size);
    requests += size == 1;
    return REAL(PMPI_Irecv)(buffer, count, type, from, tag, comm, request);
}

int PMPI_Cancel(MPI_Request *request)
{
    cancelled++;
    return REAL(PMPI_Cancel)(request);
}

int PMPI_Finalize(void)
{
    /* It may be in there that collx gives back the last. */
    int error = REAL(PMPI_Finalize)();

    printf("kept %d groups, %d error handlers and %d of %d requests\n", (int)groups, (int)handlers,
           requests - cancelled, (int)requests);
    fflush(stdout);
    return error;
}
