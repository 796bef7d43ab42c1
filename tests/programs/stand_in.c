/* Stands in for MPI in a program of one process, as libraries do that come with solvers: it has
 * names MPI_X alone, and none of the profiling interface.  tests/run_nothing.py loads it. */
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int MPI_Init(int *argc, char ***argv);
PUBLIC int MPI_Allreduce(const void *in, void *out, int count, int type, int op, int comm);
PUBLIC int MPI_Finalize(void);

PUBLIC int MPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

/* A datatype is the bytes of an element here. */
PUBLIC int MPI_Allreduce(const void *in, void *out, int count, int type, int op, int comm)
{
    (void)op, (void)comm;
    memcpy(out, in, (size_t)count * (size_t)type);
    return 0;
}

PUBLIC int MPI_Finalize(void)
{
    return 0;
}
