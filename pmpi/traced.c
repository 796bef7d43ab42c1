/* Entries that record the collectives that collx does not route: all but three, in all forms.
 *
 * Each is made from one line of COLLECTIVES below, which says what of its parameters the trace
 * wants. `bytes` is what this rank contributes, or where it contributes nothing, what it receives.
 */
#include "pmpi/trace.h"

#include "base/clock.h"
#include "pmpi/calls.h"
#include "pmpi/peers.h"
#include "pmpi/requests.h"
#include "pmpi/signatures.h"
#include "pmpi/types.h"

/* --- bytes ----------------------------------------------------------------------------------- */

/* `before`, here and below, is the call's to tell. */
#define bytes_of(count, type) collx_trace_bytes(before, count, type)

static int own_rank(MPI_Comm comm)
{
    int rank = 0;

    pmpi.Comm_rank(comm, &rank);
    return rank;
}

static int64_t sum_int(const int *counts, int n)
{
    int64_t sum = 0;

    for (int i = 0; counts && i < n; i++)
        sum += counts[i];
    return sum;
}

static int64_t sum_large(const MPI_Count *counts, int n)
{
    int64_t sum = 0;

    for (int i = 0; counts && i < n; i++)
        sum += counts[i];
    return sum;
}

static uint64_t each_int(bool before, const int *counts, const MPI_Datatype *types, int n)
{
    uint64_t sum = 0;

    for (int i = 0; counts && types && i < n; i++)
        sum += bytes_of(counts[i], types[i]);
    return sum;
}

static uint64_t each_large(bool before, const MPI_Count *counts, const MPI_Datatype *types, int n)
{
    uint64_t sum = 0;

    for (int i = 0; counts && types && i < n; i++)
        sum += bytes_of(counts[i], types[i]);
    return sum;
}

#define SUM(counts, n) _Generic((counts), const int * : sum_int, default : sum_large)((counts), (n))
#define EACH(counts, types, n)                                                                     \
    _Generic((counts), const int * : each_int, default : each_large)(before, (counts), (types), (n))

/* A rank that works in place contributes what is in its receive buffer, or at the root of a scatter
 * receives what is in its send buffer. */
#define IN_PLACE_OR(there, bytes) (sendbuf == MPI_IN_PLACE ? (there) : (bytes))
#define SEND                                                                                       \
    (sendbuf == MPI_IN_PLACE ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype))
/* In an intercommunicator the group of the root says MPI_PROC_NULL on its other ranks: they have
 * nothing to do with it, and the other arguments may be anything. */
#define MATTERS(bytes) (root == MPI_PROC_NULL ? 0 : (bytes))
/* And MPI_ROOT on that one, which sends to all of the other group, or receives from it. */
#define AT_ROOT(bytes, elsewhere) (root == MPI_ROOT ? (bytes) : (elsewhere))
/* The part of one of several counts that is this rank's own. */
#define OWN(counts) ((counts) ? (counts)[own_rank(comm)] : 0)

/* --- what is recorded of each ----------------------------------------------------------------- */

/* clang-format off */
/* X(KIND, Name, Iname, bytes, op, root), for those that are not routed … */
#define COLLECTIVES(X) \
    X(REDUCE, Reduce, Ireduce, MATTERS(bytes_of(count, type)), op, root) \
    X(GATHER, Gather, Igather, MATTERS(AT_ROOT(bytes_of(recvcount, recvtype) * (unsigned)collx_peers_count(comm), SEND)), MPI_OP_NULL, root) \
    X(GATHERV, Gatherv, Igatherv, MATTERS(AT_ROOT(bytes_of(SUM(recvcounts, collx_peers_count(comm)), recvtype), IN_PLACE_OR(bytes_of(OWN(recvcounts), recvtype), bytes_of(sendcount, sendtype)))), MPI_OP_NULL, root) \
    X(SCATTER, Scatter, Iscatter, MATTERS(AT_ROOT(bytes_of(sendcount, sendtype) * (unsigned)collx_peers_count(comm), recvbuf == MPI_IN_PLACE ? bytes_of(sendcount, sendtype) : bytes_of(recvcount, recvtype))), MPI_OP_NULL, root) \
    X(SCATTERV, Scatterv, Iscatterv, MATTERS(AT_ROOT(bytes_of(SUM(sendcounts, collx_peers_count(comm)), sendtype), recvbuf == MPI_IN_PLACE ? bytes_of(OWN(sendcounts), sendtype) : bytes_of(recvcount, recvtype))), MPI_OP_NULL, root) \
    X(ALLGATHER, Allgather, Iallgather, SEND, MPI_OP_NULL, -1) \
    X(ALLGATHERV, Allgatherv, Iallgatherv, IN_PLACE_OR(bytes_of(OWN(recvcounts), recvtype), bytes_of(sendcount, sendtype)), MPI_OP_NULL, -1) \
    X(ALLTOALL, Alltoall, Ialltoall, SEND * (unsigned)collx_peers_count(comm), MPI_OP_NULL, -1) \
    X(ALLTOALLV, Alltoallv, Ialltoallv, IN_PLACE_OR(bytes_of(SUM(recvcounts, collx_peers_count(comm)), recvtype), bytes_of(SUM(sendcounts, collx_peers_count(comm)), sendtype)), MPI_OP_NULL, -1) \
    X(ALLTOALLW, Alltoallw, Ialltoallw, IN_PLACE_OR(EACH(recvcounts, recvtypes, collx_peers_count(comm)), EACH(sendcounts, sendtypes, collx_peers_count(comm))), MPI_OP_NULL, -1) \
    X(REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter, bytes_of(SUM(recvcounts, collx_peers_count_own(comm)), type), op, -1) \
    X(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block, bytes_of(recvcount, type) * (unsigned)collx_peers_count_own(comm), op, -1) \
    X(SCAN, Scan, Iscan, bytes_of(count, type), op, -1) \
    X(EXSCAN, Exscan, Iexscan, bytes_of(count, type), op, -1) \
    X(NEIGHBOR_ALLGATHER, Neighbor_allgather, Ineighbor_allgather, bytes_of(sendcount, sendtype), MPI_OP_NULL, -1) \
    X(NEIGHBOR_ALLGATHERV, Neighbor_allgatherv, Ineighbor_allgatherv, bytes_of(sendcount, sendtype), MPI_OP_NULL, -1) \
    X(NEIGHBOR_ALLTOALL, Neighbor_alltoall, Ineighbor_alltoall, bytes_of(sendcount, sendtype) * (unsigned)collx_peers_count_out(comm), MPI_OP_NULL, -1) \
    X(NEIGHBOR_ALLTOALLV, Neighbor_alltoallv, Ineighbor_alltoallv, bytes_of(SUM(sendcounts, collx_peers_count_out(comm)), sendtype), MPI_OP_NULL, -1) \
    X(NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, Ineighbor_alltoallw, EACH(sendcounts, sendtypes, collx_peers_count_out(comm)), MPI_OP_NULL, -1)

/* … and those whose blocking form is (pmpi/calls.c). */
#define ROUTED(X) \
    X(BCAST, Bcast, Ibcast, MATTERS(bytes_of(count, type)), MPI_OP_NULL, root) \
    X(ALLREDUCE, Allreduce, Iallreduce, bytes_of(count, type), op, -1)

/* --- the entries ----------------------------------------------------------------------------- */

#define RECORDED(entry, form_, KIND, parameters, arguments, bytes_, op_, root_, after)                       \
    static int traced_##entry parameters                                                                     \
    {                                                                                                        \
        int (*real) parameters = (int (*) parameters)collx_door.real[COLLX_ENTRY_##entry];                   \
        const bool before = collx_trace_looks_before(comm);                                                  \
        const uint64_t bytes = before ? (bytes_) : 0;                                                        \
        uint64_t begin = collx_clock_ns();                                                                   \
        int error = real arguments;                                                                          \
        struct collx_trace_event event = {                                                                   \
            .begin_ns = begin,                                                                               \
            .end_ns = collx_clock_ns(),                                                                      \
            .kind = COLLX_##KIND,                                                                            \
            .form = form_,                                                                                   \
            .reason = COLLX_REASON_NOT_ROUTED,                                                               \
            .root = root_,                                                                                   \
        };                                                                                                   \
        if (!error) {                                                                                        \
            event.bytes = before ? bytes : (bytes_);                                                         \
            event.op = (uint8_t)collx_op_kind(op_);                                                          \
        }                                                                                                    \
        uint64_t number = collx_trace_add(&event, comm, collx_call_is_refused(error), __builtin_return_address(0)); \
        after;                                                                                               \
        return error;                                                                                        \
    }

#define WATCH if (!error) collx_request_watch(*request, number)

#define LATER(KIND, Iname, Name, suffix, P, A, bytes, op, root)                                              \
    RECORDED(Iname##suffix, COLLX_NONBLOCKING, KIND, (P, MPI_Request *request), (A, request), bytes, op, root, WATCH) \
    RECORDED(Name##_init##suffix, COLLX_PERSISTENT, KIND, (P, MPI_Info info, MPI_Request *request), (A, info, request), bytes, op, root, (void)number)

#define NOW(KIND, Name, suffix, P, A, bytes, op, root)                                                       \
    RECORDED(Name##suffix, COLLX_BLOCKING, KIND, (P), (A), bytes, op, root, (void)number)

#define INT(KIND) COLLX_PARAMETERS_##KIND(int, int)
#define LARGE(KIND) COLLX_PARAMETERS_##KIND(MPI_Count, MPI_Aint)

#define ALL_FORMS(KIND, Name, Iname, bytes, op, root)                                                        \
    NOW(KIND, Name, , INT(KIND), COLLX_ARGUMENTS_##KIND, bytes, op, root)                                    \
    NOW(KIND, Name, _c, LARGE(KIND), COLLX_ARGUMENTS_##KIND, bytes, op, root)                                \
    LATER_FORMS(KIND, Name, Iname, bytes, op, root)
#define LATER_FORMS(KIND, Name, Iname, bytes, op, root)                                                      \
    LATER(KIND, Iname, Name, , INT(KIND), COLLX_ARGUMENTS_##KIND, bytes, op, root)                           \
    LATER(KIND, Iname, Name, _c, LARGE(KIND), COLLX_ARGUMENTS_##KIND, bytes, op, root)

COLLECTIVES(ALL_FORMS)
ROUTED(LATER_FORMS)
LATER(BARRIER, Ibarrier, Barrier, , MPI_Comm comm, comm, 0, MPI_OP_NULL, -1)
/* clang-format on */

void collx_traced_install(void)
{
#define INSTALL(entry)                                                                             \
    if (collx_door.real[COLLX_ENTRY_##entry])                                                      \
        collx_door.route[COLLX_ENTRY_##entry] = (void *)traced_##entry;
#define INSTALL_NOW(KIND, Name, ...) INSTALL(Name) INSTALL(Name##_c)
#define INSTALL_LATER(KIND, Name, Iname, ...)                                                      \
    INSTALL(Iname) INSTALL(Iname##_c) INSTALL(Name##_init) INSTALL(Name##_init_c)

    COLLECTIVES(INSTALL_NOW)
    COLLECTIVES(INSTALL_LATER)
    ROUTED(INSTALL_LATER)
    INSTALL(Ibarrier)
    INSTALL(Barrier_init)
}
