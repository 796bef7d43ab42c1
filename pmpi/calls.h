/* The three collectives that are routed, on their way from the door to a slot. */
#ifndef COLLX_CALLS_H
#define COLLX_CALLS_H

#include "pmpi/comm.h"
#include "pmpi/pmpi.h"

/* All further calls go to the MPI library, for `reason` (enum collx_reason): those of one kind, or
 * all. */
void collx_calls_to_mpi(struct collx_comm *comm, enum collx_kind kind, unsigned reason);
void collx_calls_all_to_mpi(struct collx_comm *comm, unsigned reason);

/* Hand the call to the MPI library; returns its error code. */
static inline int collx_call_mpi(enum collx_kind kind, const struct collx_call *call)
{
    MPI_Comm comm = (MPI_Comm)call->comm;
    MPI_Datatype type = (MPI_Datatype)call->datatype;
    MPI_Op op = (MPI_Op)call->op;

    if (kind == COLLX_BARRIER)
        return pmpi.Barrier(comm);
    if (kind == COLLX_BCAST)
        return call->large ? pmpi.Bcast_c(call->rbuf, call->count, type, call->root, comm)
                           : pmpi.Bcast(call->rbuf, (int)call->count, type, call->root, comm);
    return call->large ? pmpi.Allreduce_c(call->sbuf, call->rbuf, call->count, type, op, comm)
                       : pmpi.Allreduce(call->sbuf, call->rbuf, (int)call->count, type, op, comm);
}

/* Whether MPI refused a call, which returned `error`, for its arguments.  Then it may have been
 * made by one rank alone, and must not count where all count alike.  One that failed later does,
 * since others may have succeeded in it. */
bool collx_error_is_refusal(int error);
static inline bool collx_call_is_refused(int error)
{
    return error && collx_error_is_refusal(error);
}

/* Whether MPI is going to refuse it, or has: where a handler of the program's has been told of an
 * error, MPICH 5 returns success.  This is what no MPI takes, and no more: a call that went well on
 * others has to count.  One of no elements may, where an MPI was built to check nothing, whatever
 * its type and operation. */
static inline bool collx_call_is_wrong(const struct collx_comm *comm, enum collx_kind kind,
                                       const struct collx_call *call)
{
    if (comm == &collx_comm_unknown || comm->inter || kind == COLLX_BARRIER || !call->count)
        return false;
    return call->count < 0 || (MPI_Datatype)call->datatype == MPI_DATATYPE_NULL ||
           (kind == COLLX_BCAST && (call->root < 0 || call->root >= comm->size)) ||
           (kind == COLLX_ALLREDUCE && (MPI_Op)call->op == MPI_OP_NULL);
}

/* Put the entries into the door's table: those that record a trace, or those that do not. */
void collx_calls_install(bool traced);

#endif
