#include "pmpi/pmpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

struct collx_pmpi pmpi;
struct collx_door collx_door;

int collx_pmpi_init(const struct collx_door *door, char *why, size_t size)
{
    collx_door = *door;
#define X(Name)                                                                                    \
    pmpi.Name = (__typeof__(pmpi.Name))dlsym(door->mpi, "PMPI_" #Name);                            \
    if (!pmpi.Name) {                                                                              \
        snprintf(why, size, "the MPI library has no PMPI_" #Name);                                 \
        return -ENOSYS;                                                                            \
    }
    COLLX_PMPI_FUNCTIONS(X)
#undef X
    pmpi.Type_get_envelope_c =
        (__typeof__(pmpi.Type_get_envelope_c))dlsym(door->mpi, "PMPI_Type_get_envelope_c");
    pmpi.Threadcomm_init =
        (__typeof__(pmpi.Threadcomm_init))dlsym(door->mpi, "MPIX_Threadcomm_init");
    pmpi.survives = dlsym(door->mpi, "ompi_ftmpi_enabled");
    return 0;
}
