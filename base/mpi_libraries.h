/* What the loader knows the MPI libraries by, and the adapter for each. */
#ifndef COLLX_MPI_LIBRARIES_H
#define COLLX_MPI_LIBRARIES_H

static const struct {
    const char *library, *adapter;
} collx_mpi_libraries[] = {
    {"libmpi.so.40", "libcollx-openmpi.so"},
    {"libmpich.so.12", "libcollx-mpich.so"},
    {"libmpi.so.12", "libcollx-mpich.so"}, /* others that have MPICH's binary interface */
};

enum { COLLX_MPI_LIBRARIES = sizeof collx_mpi_libraries / sizeof *collx_mpi_libraries };

#endif
