/* Counts what is taken from an MPI library and has to be given back to it: groups and error
 * handlers. Says at the end what was not.  Loaded like wide_integers.c. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int groups, handlers;

/* Past collx, which has the names without a P. */
static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    int error = ((int (*)(MPI_Comm, MPI_Group *))real("PMPI_Comm_group"))(comm, group);

    groups += !error;
    return error;
}

int PMPI_Group_incl(MPI_Group group, int count, const int *ranks, MPI_Group *part)
{
    int (*incl)(MPI_Group, int, const int *, MPI_Group *) =
        (int (*)(MPI_Group, int, const int *, MPI_Group *))real("PMPI_Group_incl");
    int error = incl(group, count, ranks, part);

    groups += !error;
    return error;
}

int PMPI_Group_free(MPI_Group *group)
{
    groups--;
    return ((int (*)(MPI_Group *))real("PMPI_Group_free"))(group);
}

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    int (*get)(MPI_Comm, MPI_Errhandler *) =
        (int (*)(MPI_Comm, MPI_Errhandler *))real("PMPI_Comm_get_errhandler");
    int error = get(comm, handler);

    handlers += !error;
    return error;
}

int PMPI_Errhandler_free(MPI_Errhandler *handler)
{
    handlers--;
    return ((int (*)(MPI_Errhandler *))real("PMPI_Errhandler_free"))(handler);
}

int PMPI_Finalize(void)
{
    printf("kept %d groups and %d error handlers\n", (int)groups, (int)handlers);
    fflush(stdout);
    return ((int (*)(void))real("PMPI_Finalize"))();
}
