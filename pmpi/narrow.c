#include "pmpi/narrow.h"

#include "base/launcher.h"
#include "base/log.h"
#include "pmpi/peers.h"
#include "pmpi/pmpi.h"
#include "pmpi/requests.h"
#include "pmpi/signatures.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* MPI_X, or PMPI_X, by entry, that its twin for large counts calls. */
static void *target[COLLX_ENTRIES];

/* --- what fits -------------------------------------------------------------------------------- */

static bool fits(int64_t value)
{
    return (int)value == value;
}

static int refuse(const char *name, MPI_Comm comm, int error)
{
    static bool said;

    if (error == MPI_ERR_COUNT && collx_launcher_first())
        collx_warn_once(&said,
                        "%s was called with a count or a displacement that does not fit an int, "
                        "and the MPI library has no functions for large counts; the call fails. "
                        "A newer MPI library may have them",
                        name);
    pmpi.Comm_call_errhandler(comm, error);
    return error;
}

/* Values of MPI_Count or MPI_Aint, which may be two types of the same size. */
typedef int64_t __attribute__((may_alias)) wide_value;
_Static_assert(sizeof(MPI_Count) == sizeof(wide_value) && sizeof(MPI_Aint) == sizeof(wide_value),
               "arrays of counts and displacements are read as what they are");

struct wide {
    const void *values; /* NULL: nobody looks at them */
    int count;
};

enum { ARRAYS_MAX = 4 };

/* Makes the arrays of int, NULL where there is none, in one piece of memory, which is the caller's
 * to free.  0 or an error of MPI's; then there is none. */
static int narrow(const struct wide *wide, size_t arrays, int *ints[], void **memory)
{
    size_t total = 1; /* an array may have no elements, and has to be one */

    if (arrays == 0)
        return MPI_SUCCESS;
    for (size_t i = 0; i < arrays; i++)
        total += (size_t)wide[i].count;
    int *const all = malloc(total * sizeof *all), *next = all;
    if (!all)
        return MPI_ERR_NO_MEM;
    for (size_t i = 0; i < arrays; i++) {
        const wide_value *values = wide[i].values;
        ints[i] = values ? next : NULL;
        for (int k = 0; values && k < wide[i].count; k++) {
            if (!fits(values[k])) {
                free(all);
                return MPI_ERR_COUNT;
            }
            *next++ = (int)values[k];
        }
    }
    *memory = all;
    return MPI_SUCCESS;
}

/* --- what matters; the rest may be anything --------------------------------------------------- */

/* What all others send to, or have from, this rank. */
static bool is_root(int root, MPI_Comm comm)
{
    int inter = 0, rank = MPI_PROC_NULL;

    if (root < 0)
        return root == MPI_ROOT;
    pmpi.Comm_test_inter(comm, &inter);
    if (!inter)
        pmpi.Comm_rank(comm, &rank);
    return rank == root;
}

#define HAS_PART(root) ((root) != MPI_PROC_NULL)
/* Has something for the root, or of it. */
#define IS_PEER(root, buffer) (HAS_PART(root) && (root) != MPI_ROOT && (buffer) != MPI_IN_PLACE)
#define SENDS (sendbuf != MPI_IN_PLACE)
#define UNFIT(count, matters) (!fits(count) && (matters))

/* --- the functions ---------------------------------------------------------------------------- */

/* UNFIT_<KIND>: whether one of its single counts does not fit.  ARRAYS_<KIND>: its arrays, in the
 * order of ints[].  INTS_<KIND>: what the function with int counts is given. */
/* clang-format off */
#define UNFIT_BCAST UNFIT(count, HAS_PART(root))
#define ARRAYS_BCAST
#define INTS_BCAST buffer, (int)count, type, root, comm

#define UNFIT_REDUCE UNFIT(count, HAS_PART(root))
#define ARRAYS_REDUCE
#define INTS_REDUCE sendbuf, recvbuf, (int)count, type, op, root, comm

#define UNFIT_ALLREDUCE UNFIT(count, true)
#define ARRAYS_ALLREDUCE
#define INTS_ALLREDUCE sendbuf, recvbuf, (int)count, type, op, comm
#define UNFIT_SCAN UNFIT_ALLREDUCE
#define ARRAYS_SCAN
#define INTS_SCAN INTS_ALLREDUCE
#define UNFIT_EXSCAN UNFIT_ALLREDUCE
#define ARRAYS_EXSCAN
#define INTS_EXSCAN INTS_ALLREDUCE

#define UNFIT_REDUCE_SCATTER_BLOCK UNFIT(recvcount, true)
#define ARRAYS_REDUCE_SCATTER_BLOCK
#define INTS_REDUCE_SCATTER_BLOCK sendbuf, recvbuf, (int)recvcount, type, op, comm

#define UNFIT_REDUCE_SCATTER false
#define ARRAYS_REDUCE_SCATTER {recvcounts, collx_peers_count_own(comm)}
#define INTS_REDUCE_SCATTER sendbuf, recvbuf, ints[0], type, op, comm

#define UNFIT_GATHER UNFIT(sendcount, IS_PEER(root, sendbuf)) || UNFIT(recvcount, is_root(root, comm))
#define UNFIT_SCATTER UNFIT(recvcount, IS_PEER(root, recvbuf)) || UNFIT(sendcount, is_root(root, comm))
#define ARRAYS_GATHER
#define INTS_GATHER sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, root, comm
#define ARRAYS_SCATTER
#define INTS_SCATTER INTS_GATHER

#define ROOTS(values) {is_root(root, comm) ? (values) : NULL, collx_peers_count(comm)}
#define UNFIT_GATHERV UNFIT(sendcount, IS_PEER(root, sendbuf))
#define ARRAYS_GATHERV ROOTS(recvcounts), ROOTS(displs)
#define INTS_GATHERV sendbuf, (int)sendcount, sendtype, recvbuf, ints[0], ints[1], recvtype, root, comm
#define UNFIT_SCATTERV UNFIT(recvcount, IS_PEER(root, recvbuf))
#define ARRAYS_SCATTERV ROOTS(sendcounts), ROOTS(displs)
#define INTS_SCATTERV sendbuf, ints[0], ints[1], sendtype, recvbuf, (int)recvcount, recvtype, root, comm

#define UNFIT_ALLGATHER UNFIT(sendcount, SENDS) || UNFIT(recvcount, true)
#define ARRAYS_ALLGATHER
#define INTS_ALLGATHER sendbuf, (int)sendcount, sendtype, recvbuf, (int)recvcount, recvtype, comm
#define UNFIT_ALLTOALL UNFIT_ALLGATHER
#define ARRAYS_ALLTOALL
#define INTS_ALLTOALL INTS_ALLGATHER
#define UNFIT_NEIGHBOR_ALLGATHER UNFIT_ALLGATHER
#define ARRAYS_NEIGHBOR_ALLGATHER
#define INTS_NEIGHBOR_ALLGATHER INTS_ALLGATHER
#define UNFIT_NEIGHBOR_ALLTOALL UNFIT_ALLGATHER
#define ARRAYS_NEIGHBOR_ALLTOALL
#define INTS_NEIGHBOR_ALLTOALL INTS_ALLGATHER

#define UNFIT_ALLGATHERV UNFIT(sendcount, SENDS)
#define ARRAYS_ALLGATHERV {recvcounts, collx_peers_count(comm)}, {displs, collx_peers_count(comm)}
#define INTS_ALLGATHERV sendbuf, (int)sendcount, sendtype, recvbuf, ints[0], ints[1], recvtype, comm
#define UNFIT_NEIGHBOR_ALLGATHERV UNFIT(sendcount, SENDS)
#define ARRAYS_NEIGHBOR_ALLGATHERV {recvcounts, collx_peers_count_in(comm)}, {displs, collx_peers_count_in(comm)}
#define INTS_NEIGHBOR_ALLGATHERV INTS_ALLGATHERV

#define SENT(values) {SENDS ? (values) : NULL, collx_peers_count(comm)}
#define RECEIVED(values) {(values), collx_peers_count(comm)}
#define UNFIT_ALLTOALLV false
#define ARRAYS_ALLTOALLV SENT(sendcounts), SENT(sdispls), RECEIVED(recvcounts), RECEIVED(rdispls)
#define INTS_ALLTOALLV sendbuf, ints[0], ints[1], sendtype, recvbuf, ints[2], ints[3], recvtype, comm
#define UNFIT_ALLTOALLW false
#define ARRAYS_ALLTOALLW ARRAYS_ALLTOALLV
#define INTS_ALLTOALLW sendbuf, ints[0], ints[1], sendtypes, recvbuf, ints[2], ints[3], recvtypes, comm
#define UNFIT_NEIGHBOR_ALLTOALLV false
#define ARRAYS_NEIGHBOR_ALLTOALLV {sendcounts, collx_peers_count_out(comm)}, {sdispls, collx_peers_count_out(comm)}, {recvcounts, collx_peers_count_in(comm)}, {rdispls, collx_peers_count_in(comm)}
#define INTS_NEIGHBOR_ALLTOALLV INTS_ALLTOALLV
#define UNFIT_NEIGHBOR_ALLTOALLW false
#define ARRAYS_NEIGHBOR_ALLTOALLW {sendcounts, collx_peers_count_out(comm)}, {recvcounts, collx_peers_count_in(comm)}
#define INTS_NEIGHBOR_ALLTOALLW sendbuf, ints[0], sdispls, sendtypes, recvbuf, ints[1], rdispls, recvtypes, comm
/* clang-format on */

#define ARRAYS(KIND) ((const struct wide[]){ARRAYS_##KIND})
#define HOW_MANY(arrays) (sizeof(arrays) / sizeof(struct wide))

/* `after`: what becomes of the memory of the arrays. */
#define NARROW(entry, base, KIND, parameters, int_parameters, arguments, after)                    \
    static int narrow_##entry parameters                                                           \
    {                                                                                              \
        int(*to) int_parameters = (int(*) int_parameters)target[COLLX_ENTRY_##base];               \
        int *ints[ARRAYS_MAX] = {NULL};                                                            \
        void *memory = NULL;                                                                       \
        int error = MPI_SUCCESS;                                                                   \
                                                                                                   \
        (void)ints;                                                                                \
        if (comm != MPI_COMM_NULL) /* which is the library's to refuse */                          \
            error = UNFIT_##KIND ? MPI_ERR_COUNT                                                   \
                                 : narrow(ARRAYS(KIND), HOW_MANY(ARRAYS(KIND)), ints, &memory);    \
        if (error)                                                                                 \
            return refuse("MPI_" #entry, comm, error);                                             \
        error = to arguments;                                                                      \
        after;                                                                                     \
        return error;                                                                              \
    }

/* MPI wants the arrays left alone as long as the operation is under way: so may a library read them
 * until then. */
#define KEEP error ? free(memory) : collx_request_keep(*request, memory)

#define INT(KIND) COLLX_PARAMETERS_##KIND(int, int)
#define LARGE(KIND) COLLX_PARAMETERS_##KIND(MPI_Count, MPI_Aint)

/* clang-format off */
#define NARROW_FORMS(KIND, Name, Iname, word)                                                                \
    NARROW(Name##_c, Name, KIND, (LARGE(KIND)), (INT(KIND)), (INTS_##KIND), free(memory))                    \
    NARROW(Iname##_c, Iname, KIND, (LARGE(KIND), MPI_Request *request),                                      \
           (INT(KIND), MPI_Request *request), (INTS_##KIND, request), KEEP)                                  \
    NARROW(Name##_init_c, Name##_init, KIND, (LARGE(KIND), MPI_Info info, MPI_Request *request),             \
           (INT(KIND), MPI_Info info, MPI_Request *request), (INTS_##KIND, info, request), KEEP)
/* clang-format on */

COLLX_COLLECTIVES_WITH_COUNTS(NARROW_FORMS)

/* `real`: what the library has, and what stands for it. */
static void install(void *real[], enum collx_entry entry, enum collx_entry base, void *function)
{
    /* One that knows the twin is asked before us, and gets no second call. */
    void *tool = collx_door.tool[entry] ? NULL : collx_door.tool[base];

    if (real[entry] || !real[base])
        return;
    target[base] = tool ? tool : real[base];
    collx_door.route[entry] = function;
    /* The tool's call comes back by the base's entry, and is routed and traced there. */
    real[entry] = tool ? NULL : function;
    collx_requests_install();
}

void collx_narrow_install(void)
{
    static void *real[COLLX_ENTRIES];

    memcpy(real, collx_door.real, sizeof real);
#define INSTALL(entry, base)                                                                       \
    install(real, COLLX_ENTRY_##entry, COLLX_ENTRY_##base, (void *)narrow_##entry);
#define INSTALL_FORMS(KIND, Name, Iname, word)                                                     \
    INSTALL(Name##_c, Name) INSTALL(Iname##_c, Iname) INSTALL(Name##_init_c, Name##_init)
    COLLX_COLLECTIVES_WITH_COUNTS(INSTALL_FORMS)
    collx_door.real = real;
    pmpi.Bcast_c = (__typeof__(pmpi.Bcast_c))real[COLLX_ENTRY_Bcast_c];
    pmpi.Allreduce_c = (__typeof__(pmpi.Allreduce_c))real[COLLX_ENTRY_Allreduce_c];
}
