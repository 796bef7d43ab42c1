/* Stands for an MPI library whose handles are those of the ABI that MPI 5 standardizes, as far as
 * somebody has to look who wants to know that.  tests/run_nothing.py loads it. */
#include <string.h>

#define EXPORT(name, ...)                                                                          \
    __attribute__((visibility("default"))) int MPI_##name(__VA_ARGS__)                             \
        __attribute__((alias("PMPI_" #name)));                                                     \
    __attribute__((visibility("default"))) int PMPI_##name(__VA_ARGS__);                           \
    int PMPI_##name(__VA_ARGS__)

EXPORT(Get_library_version, char *version, int *length)
{
    strcpy(version, "MPICH Version: 5.0.2");
    *length = (int)strlen(version);
    return 0;
}

EXPORT(Abi_get_version, int *major, int *minor)
{
    *major = 1;
    *minor = 0;
    return 0;
}

/* Whether it was handed on what the program has said. */
EXPORT(Barrier, void *comm)
{
    return comm == (void *)0x101 ? 0 : 1;
}
