/* An MPI library that has no memory left, for what the program says so of, where it is loaded.
 * Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>

/* Bits: for keys of attributes, attributes, groups, to take an attribute away, and for a Bcast. */
__attribute__((visibility("default"))) int mpi_lacks;

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *gone,
                            int *key, void *extra)
{
    return mpi_lacks & 1 ? MPI_ERR_OTHER : REAL(PMPI_Comm_create_keyval)(copy, gone, key, extra);
}

int PMPI_Comm_set_attr(MPI_Comm comm, int key, void *value)
{
    return mpi_lacks & 2 ? MPI_ERR_OTHER : REAL(PMPI_Comm_set_attr)(comm, key, value);
}

int PMPI_Comm_delete_attr(MPI_Comm comm, int key)
{
    return mpi_lacks & 8 ? MPI_ERR_OTHER : REAL(PMPI_Comm_delete_attr)(comm, key);
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    return mpi_lacks & 4 ? MPI_ERR_OTHER : REAL(PMPI_Comm_group)(comm, group);
}

int PMPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return mpi_lacks & 16 ? MPI_ERR_OTHER : REAL(PMPI_Bcast)(buf, count, type, root, comm);
}

int PMPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    return mpi_lacks & 16 ? MPI_ERR_OTHER
                          : REAL(PMPI_Ibcast)(buf, count, type, root, comm, request);
}
