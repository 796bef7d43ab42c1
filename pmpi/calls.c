#include "pmpi/calls.h"

#include "pmpi/signatures.h"
#include "pmpi/trace.h"

/* --- the entries: describe the call, find the communicator, go ------------------------------- */

static inline int dispatch(enum collx_kind kind, struct collx_call *call)
{
    struct collx_slot *slot = &collx_comm_find((MPI_Comm)call->comm)->slot[kind];

    return slot->run(slot, call);
}

/* Two of each: one goes straight to the slot, the other, which the door is given when there is a
 * trace, records it.  The trace reads the call site from the address that we return to, which is
 * the caller's own, since the door only jumped.  What is not set here is left as it is: clearing it
 * would show in the time of a call. */
#define ROUTED(Name, KIND, parameters, describe)                                                   \
    static int call_##Name parameters                                                              \
    {                                                                                              \
        struct collx_call call;                                                                    \
        describe;                                                                                  \
        return dispatch(KIND, &call);                                                              \
    }                                                                                              \
    static int traced_##Name parameters                                                            \
    {                                                                                              \
        struct collx_call call;                                                                    \
        describe;                                                                                  \
        return collx_trace_call(KIND, &call, __builtin_return_address(0));                         \
    }

#define BARRIER() call.comm = (uintptr_t)comm
#define BCAST(is_large)                                                                            \
    call.sbuf = call.rbuf = buffer, call.count = count, call.datatype = (uintptr_t)type,           \
    call.root = root, call.comm = (uintptr_t)comm, call.large = is_large
#define ALLREDUCE(is_large)                                                                        \
    call.sbuf = sendbuf, call.rbuf = recvbuf, call.count = count, call.datatype = (uintptr_t)type, \
    call.op = (uintptr_t)op, call.comm = (uintptr_t)comm, call.large = is_large

ROUTED(Barrier, COLLX_BARRIER, (MPI_Comm comm), BARRIER())
ROUTED(Bcast, COLLX_BCAST, (COLLX_PARAMETERS_BCAST(int, int)), BCAST(false))
ROUTED(Bcast_c, COLLX_BCAST, (COLLX_PARAMETERS_BCAST(MPI_Count, MPI_Aint)), BCAST(true))
ROUTED(Allreduce, COLLX_ALLREDUCE, (COLLX_PARAMETERS_ALLREDUCE(int, int)), ALLREDUCE(false))
ROUTED(Allreduce_c, COLLX_ALLREDUCE, (COLLX_PARAMETERS_ALLREDUCE(MPI_Count, MPI_Aint)),
       ALLREDUCE(true))

void collx_calls_install(bool traced)
{
#define INSTALL(Name)                                                                              \
    if (collx_door.real[COLLX_ENTRY_##Name])                                                       \
    collx_door.route[COLLX_ENTRY_##Name] = traced ? (void *)traced_##Name : (void *)call_##Name
    INSTALL(Barrier);
    INSTALL(Bcast);
    INSTALL(Bcast_c);
    INSTALL(Allreduce);
    INSTALL(Allreduce_c);
#undef INSTALL
}

/* --- to the MPI library ---------------------------------------------------------------------- */

/* The slots of a collective that the MPI library carries out: one function each, for nothing is
 * slower than it must be on the way to where the program wanted to go anyway.  slot->state is the
 * reason. */
#define TO_MPI(word, KIND)                                                                         \
    static int run_##word(struct collx_slot *slot, struct collx_call *call)                        \
    {                                                                                              \
        call->route = 0;                                                                           \
        call->reason = (uint8_t)(uintptr_t)slot->state;                                            \
        return collx_call_mpi(KIND, call);                                                         \
    }
TO_MPI(barrier, COLLX_BARRIER)
TO_MPI(bcast, COLLX_BCAST)
TO_MPI(allreduce, COLLX_ALLREDUCE)

void collx_calls_to_mpi(struct collx_comm *comm, enum collx_kind kind, unsigned reason)
{
    static int (*const run[COLLX_ROUTED])(struct collx_slot *, struct collx_call *) = {
        [COLLX_BARRIER] = run_barrier,
        [COLLX_BCAST] = run_bcast,
        [COLLX_ALLREDUCE] = run_allreduce,
    };

    comm->slot[kind] = (struct collx_slot){.run = run[kind], .state = (void *)(uintptr_t)reason};
}

void collx_calls_all_to_mpi(struct collx_comm *comm, unsigned reason)
{
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        collx_calls_to_mpi(comm, (enum collx_kind)kind, reason);
}

bool collx_error_is_refusal(int error)
{
    int class = MPI_SUCCESS;

    pmpi.Error_class(error, &class);
    return class == MPI_ERR_COMM || class == MPI_ERR_COUNT || class == MPI_ERR_TYPE ||
           class == MPI_ERR_BUFFER || class == MPI_ERR_ROOT || class == MPI_ERR_OP ||
           class == MPI_ERR_ARG;
}
