/* An MPI library that has no memory left, for what the program says so of, where it is loaded.
 * Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>

/* Bits: for keys of attributes, attributes, groups, to take an attribute away, and for a Bcast. */
__attribute__((visibility("default"))) int mpi_lacks;

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *gone,
                            int *key, void *extra)
{
    int (*create)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *) =
        (int (*)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *,
                 void *))real("PMPI_Comm_create_keyval");

    return mpi_lacks & 1 ? MPI_ERR_OTHER : create(copy, gone, key, extra);
}

int PMPI_Comm_set_attr(MPI_Comm comm, int key, void *value)
{
    int (*set)(MPI_Comm, int, void *) = (int (*)(MPI_Comm, int, void *))real("PMPI_Comm_set_attr");

    return mpi_lacks & 2 ? MPI_ERR_OTHER : set(comm, key, value);
}

int PMPI_Comm_delete_attr(MPI_Comm comm, int key)
{
    int (*take)(MPI_Comm, int) = (int (*)(MPI_Comm, int))real("PMPI_Comm_delete_attr");

    return mpi_lacks & 8 ? MPI_ERR_OTHER : take(comm, key);
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    int (*get)(MPI_Comm, MPI_Group *) = (int (*)(MPI_Comm, MPI_Group *))real("PMPI_Comm_group");

    return mpi_lacks & 4 ? MPI_ERR_OTHER : get(comm, group);
}

int PMPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm) =
        (int (*)(void *, int, MPI_Datatype, int, MPI_Comm))real("PMPI_Bcast");

    return mpi_lacks & 16 ? MPI_ERR_OTHER : bcast(buf, count, type, root, comm);
}

int PMPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    int (*ibcast)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *) =
        (int (*)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *))real("PMPI_Ibcast");

    return mpi_lacks & 16 ? MPI_ERR_OTHER : ibcast(buf, count, type, root, comm, request);
}
