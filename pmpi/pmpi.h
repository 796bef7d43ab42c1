/* The MPI library's own functions.
 *
 * All are taken from the library's handle, by dlsym: a reference by name could be bound to
 * libcollx.so, or to a tool, and come back to us.  Write pmpi.Comm_rank(…) for PMPI_Comm_rank(…).
 */
#ifndef COLLX_PMPI_H
#define COLLX_PMPI_H

#include "base/door.h"

#include <mpi.h>
#include <stdbool.h>

/* What the adapter calls.  X(Name): PMPI_Name as mpi.h declares it. */
#define COLLX_PMPI_FUNCTIONS(X)                                                                    \
    X(Allgather)                                                                                   \
    X(Allreduce)                                                                                   \
    X(Barrier)                                                                                     \
    X(Bcast)                                                                                       \
    X(Cancel)                                                                                      \
    X(Cart_get)                                                                                    \
    X(Cartdim_get)                                                                                 \
    X(Comm_call_errhandler)                                                                        \
    X(Comm_create)                                                                                 \
    X(Comm_create_group)                                                                           \
    X(Comm_create_keyval)                                                                          \
    X(Comm_delete_attr)                                                                            \
    X(Comm_free)                                                                                   \
    X(Comm_get_attr)                                                                               \
    X(Comm_get_errhandler)                                                                         \
    X(Comm_get_name)                                                                               \
    X(Comm_group)                                                                                  \
    X(Comm_rank)                                                                                   \
    X(Comm_remote_size)                                                                            \
    X(Comm_set_attr)                                                                               \
    X(Comm_set_errhandler)                                                                         \
    X(Comm_set_name)                                                                               \
    X(Comm_size)                                                                                   \
    X(Comm_split)                                                                                  \
    X(Comm_split_type)                                                                             \
    X(Comm_test_inter)                                                                             \
    X(Dist_graph_neighbors_count)                                                                  \
    X(Errhandler_free)                                                                             \
    X(Error_class)                                                                                 \
    X(Error_string)                                                                                \
    X(Finalize)                                                                                    \
    X(Finalized)                                                                                   \
    X(Get_library_version)                                                                         \
    X(Graph_neighbors_count)                                                                       \
    X(Group_free)                                                                                  \
    X(Group_incl)                                                                                  \
    X(Group_size)                                                                                  \
    X(Group_translate_ranks)                                                                       \
    X(Iallgather)                                                                                  \
    X(Iallreduce)                                                                                  \
    X(Ibcast)                                                                                      \
    X(Init)                                                                                        \
    X(Init_thread)                                                                                 \
    X(Initialized)                                                                                 \
    X(Iprobe)                                                                                      \
    X(Irecv)                                                                                       \
    X(Isend)                                                                                       \
    X(Op_commutative)                                                                              \
    X(Op_free)                                                                                     \
    X(Pack)                                                                                        \
    X(Pack_size)                                                                                   \
    X(Put)                                                                                         \
    X(Query_thread)                                                                                \
    X(Reduce_local)                                                                                \
    X(Sendrecv)                                                                                    \
    X(Test)                                                                                        \
    X(Topo_test)                                                                                   \
    X(Type_create_keyval)                                                                          \
    X(Type_free)                                                                                   \
    X(Type_get_attr)                                                                               \
    X(Type_get_contents)                                                                           \
    X(Type_get_envelope)                                                                           \
    X(Type_get_extent)                                                                             \
    X(Type_get_true_extent)                                                                        \
    X(Type_set_attr)                                                                               \
    X(Type_size_x)                                                                                 \
    X(Unpack)                                                                                      \
    X(Wait)                                                                                        \
    X(Win_allocate)                                                                                \
    X(Win_flush)                                                                                   \
    X(Win_free)                                                                                    \
    X(Win_get_attr)                                                                                \
    X(Win_lock_all)                                                                                \
    X(Win_set_errhandler)                                                                          \
    X(Win_sync)                                                                                    \
    X(Win_unlock_all)

struct collx_pmpi {
#define X(Name) __typeof__(&PMPI_##Name) Name;
    COLLX_PMPI_FUNCTIONS(X)
#undef X
    /* The large-count twins that are routed, from collx_narrow_install() on: what stands for them
     * where this MPI has none, and no declaration. */
    int (*Bcast_c)(void *, MPI_Count, MPI_Datatype, int, MPI_Comm);
    int (*Allreduce_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
    /* Of a library that has large-count constructors of datatypes; else NULL. */
    int (*Type_get_envelope_c)(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *,
                               int *);
    /* MPICH's from 4.2 on; NULL elsewhere. */
    int (*Threadcomm_init)(MPI_Comm, int, MPI_Comm *);
    /* Open MPI's from 5.0 on; NULL elsewhere.  Its mpi.h has the attribute MPI_FT for that, which
     * an adapter that was built with an earlier one does not know. */
    const bool *survives;
};

extern struct collx_pmpi pmpi;

/* The door that we were opened with; its tables live as long as the process. */
extern struct collx_door collx_door;

/* Fill in `pmpi`.  0, or -ENOSYS and which function is missing in `why`. */
int collx_pmpi_init(const struct collx_door *door, char *why, size_t size);

#endif
