/* Stands for an MPI library whose handles are those of the ABI that MPI 5 standardizes, as far as
 * somebody has to look who wants to know that.  tests/run_nothing.py loads it. */
#include <string.h>

#define EXPORT(type, name, ...)                                                                    \
    __attribute__((visibility("default"))) type MPI_##name(__VA_ARGS__)                            \
        __attribute__((alias("PMPI_" #name)));                                                     \
    __attribute__((visibility("default"))) type PMPI_##name(__VA_ARGS__);                          \
    type PMPI_##name(__VA_ARGS__)

EXPORT(int, Get_library_version, char *version, int *length)
{
    strcpy(version, "MPICH Version: 5.0.2");
    *length = (int)strlen(version);
    return 0;
}

EXPORT(int, Abi_get_version, int *major, int *minor)
{
    *major = 1;
    *minor = 0;
    return 0;
}

/* Whether it was handed on what the program has said. */
EXPORT(int, Barrier, void *comm)
{
    return comm == (void *)0x101 ? 0 : 1;
}
