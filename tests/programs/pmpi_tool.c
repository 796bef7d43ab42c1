/* A profiler as others write them: wraps a few MPI functions, counts, calls PMPI.
 *
 * At its end each process writes its counts, "name count" a line, to
 * $COLLX_TEST_TOOL/<pid>.  Built once for each MPI, and not linked with it, so that it can also be
 * preloaded into a python that has not loaded MPI yet.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long barrier, bcast, allreduce, bcast_large, allreduce_large;

int MPI_Barrier(MPI_Comm comm)
{
    barrier++;
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    bcast++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    allreduce++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

#if MPI_VERSION >= 4
int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    bcast_large++;
    return PMPI_Bcast_c(buffer, count, type, root, comm);
}

int MPI_Allreduce_c(const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm)
{
    allreduce_large++;
    return PMPI_Allreduce_c(in, out, count, type, op, comm);
}
#endif

/* Not in MPI_Finalize: mpi_f08 of MPICH calls PMPI_Finalize, which no tool sees. */
__attribute__((destructor)) static void report(void)
{
    const char *folder = getenv("COLLX_TEST_TOOL");
    char path[4096];

    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "barrier %lu\nbcast %lu\nallreduce %lu\n", barrier, bcast, allreduce);
    fprintf(file, "bcast_c %lu\nallreduce_c %lu\n", bcast_large, allreduce_large);
    fclose(file);
}
