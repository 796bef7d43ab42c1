#include "pmpi/calls.h"

#include "pmpi/agree.h"
#include "pmpi/kept.h"
#include "pmpi/lifetime.h"
#include "pmpi/progress.h"
#include "pmpi/select.h"
#include "pmpi/setup.h"
#include "pmpi/trace.h"
#include "pmpi/types.h"
#include "pmpi/world.h"
#include "trace/recorder.h"

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
ROUTED(Bcast, COLLX_BCAST, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
       BCAST(false))
ROUTED(Bcast_c, COLLX_BCAST,
       (void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm), BCAST(true))
ROUTED(Allreduce, COLLX_ALLREDUCE,
       (const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
       ALLREDUCE(false))
ROUTED(Allreduce_c, COLLX_ALLREDUCE,
       (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
        MPI_Comm comm),
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

int collx_call_mpi(enum collx_kind kind, const struct collx_call *call)
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

bool collx_call_is_refused(int error)
{
    int class = MPI_SUCCESS;

    if (error)
        pmpi.Error_class(error, &class);
    return class == MPI_ERR_COMM || class == MPI_ERR_COUNT || class == MPI_ERR_TYPE ||
           class == MPI_ERR_BUFFER || class == MPI_ERR_ROOT || class == MPI_ERR_OP ||
           class == MPI_ERR_ARG;
}

bool collx_call_is_wrong(const struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_call *call)
{
    if (comm == &collx_comm_unknown || comm->inter || kind == COLLX_BARRIER || !call->count)
        return false;
    return call->count < 0 || (MPI_Datatype)call->datatype == MPI_DATATYPE_NULL ||
           (kind == COLLX_BCAST && (call->root < 0 || call->root >= comm->size)) ||
           (kind == COLLX_ALLREDUCE && (MPI_Op)call->op == MPI_OP_NULL);
}

/* --- communicators on their way to having routes ---------------------------------------------- */

/* Set by all ranks of MPI_COMM_WORLD alike, before they make calls. */
static uint64_t warm_up = COLLX_WARMUP_CALLS;

void collx_calls_warm_up(uint64_t calls)
{
    warm_up = calls;
}

/* Bytes of a call, as far as they count; nobody else need come to the same. */
static uint64_t bytes_of(const struct collx_call *call)
{
    /* Of a derived one MPI could be asked, by means that a setup makes: the calls have to do. */
    const struct collx_datatype *type = collx_datatype_predefined((MPI_Datatype)call->datatype);
    uint64_t bytes;

    if (!type)
        return 0;
    if (__builtin_mul_overflow((uint64_t)call->count, (uint64_t)type->size, &bytes))
        return COLLX_WARMUP_BYTES;
    return bytes < COLLX_WARMUP_BYTES ? bytes : COLLX_WARMUP_BYTES;
}

/* Whether the communicator is due already, as one rank may know and others not; unless all know
 * that none does.  Where calls take long it is, to this rank's job, and another one, which may not
 * know, has to be told. */
static bool ask(struct collx_comm *comm)
{
    const bool known = comm->may_be_long || comm->calls >= COLLX_WARMUP_AGAIN;
    const bool expected = comm->rank == 0 && known && collx_kept_expects(comm);
    /* Those whose key is known have met, which takes as long to find out as to ask. */
    const bool met = comm->identity || collx_agree_has_met(comm, NULL);

    if (met && !known)
        return false;
    return collx_comm_is_due(
        comm, expected || comm->passed >= COLLX_WARMUP_BYTES || warm_up == COLLX_WARMUP_CROWD, met);
}

/* The communicator is due to be set up, or it is time to ask whether it is. */
static __attribute__((noinline)) void meet(struct collx_comm *comm)
{
    bool due = comm->calls >= comm->due_at;

    if (!due) {
        const uint64_t next = comm->meet_at * COLLX_WARMUP_FACTOR;
        comm->meet_at = next < comm->due_at ? next : comm->due_at;
        due = ask(comm);
    }
    if (due)
        collx_comm_setup(comm);
}

/* The call has gone well, as far as MPI tells.  When it is worth it all ranks set the communicator
 * up, at the end of the same call. */
static inline void count(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_call *call)
{
    if (collx_call_is_wrong(comm, kind, call))
        return;
    const bool many = kind != COLLX_BARRIER && call->count >= COLLX_WARMUP_COUNT;
    comm->may_be_long |= many || kind == COLLX_BCAST;
    if (many)
        comm->passed += bytes_of(call);
    if (__builtin_expect(++comm->calls >= comm->meet_at, 0))
        meet(comm);
}

static inline __attribute__((always_inline)) int warm(enum collx_kind kind, struct collx_slot *slot,
                                                      struct collx_call *call)
{
    struct collx_comm *comm = slot->state;

    call->route = 0;
    call->reason = COLLX_REASON_WARMUP;
    int error = collx_call_mpi(kind, call);
    if (__builtin_expect(!error, 1) || !collx_call_is_refused(error))
        count(comm, kind, call);
    return error;
}

/* What takes asking MPI, for which there has to be a communicator of ours; where there is none the
 * setup says so to all.  Of nothing MPI may well not look at the type. */
static bool is_refused(const struct collx_comm *comm, enum collx_kind kind,
                       const struct collx_call *call)
{
    struct collx_signature signature;

    return kind != COLLX_BARRIER && call->count && !collx_self_init(comm->comm) &&
           !collx_select_sign(comm, kind, call, &signature);
}

/* Where not even the first calls may go to the MPI library. */
static int set_up(enum collx_kind kind, struct collx_slot *slot, struct collx_call *call)
{
    struct collx_comm *comm = slot->state;

    /* One rank alone may have got it wrong, and would wait for the others here. */
    if (collx_call_is_wrong(comm, kind, call) || is_refused(comm, kind, call)) {
        call->route = 0;
        call->reason = COLLX_REASON_BAD_ARGUMENT;
        return collx_call_mpi(kind, call);
    }
    collx_comm_setup(comm);
    return comm->slot[kind].run(&comm->slot[kind], call);
}

/* A communicator that nobody knows is looked at before the call, then.  What is none, and not
 * MPI_COMM_NULL, is reported as a wrong argument of MPI_Comm_test_inter; once is enough. */
static int first_at_once(enum collx_kind kind, struct collx_call *call)
{
    MPI_Comm handle = (MPI_Comm)call->comm;
    struct collx_comm *comm = &collx_comm_unknown;
    int inter = -1;

    call->route = 0;
    call->reason = COLLX_REASON_WARMUP;
    if (handle != MPI_COMM_NULL && (collx_world_up() || collx_sessions_any())) {
        int error = pmpi.Comm_test_inter(handle, &inter);
        /* MPICH 5 returns success where a handler of the program's has been told. */
        if (error || inter < 0)
            return error;
        comm = collx_comm_add(handle);
    }
    if (comm != &collx_comm_unknown)
        return comm->slot[kind].run(&comm->slot[kind], call);
    return collx_call_mpi(kind, call);
}

/* The first call on a communicator: only when MPI has found it good is it looked at, so that what
 * is no communicator is reported by MPI, and calls before MPI_Init or after MPI_Finalize too. */
static int first(enum collx_kind kind, struct collx_slot *slot, struct collx_call *call)
{
    (void)slot;
    if (__builtin_expect(!warm_up, 0))
        return first_at_once(kind, call);
    call->route = 0;
    call->reason = COLLX_REASON_WARMUP;
    int error = collx_call_mpi(kind, call);
    if (!collx_call_is_refused(error)) {
        struct collx_comm *comm = collx_comm_add((MPI_Comm)call->comm);
        if (comm != &collx_comm_unknown && !comm->inter)
            count(comm, kind, call);
    }
    return error;
}

#define COUNTING(word, KIND)                                                                       \
    static int warm_##word(struct collx_slot *slot, struct collx_call *call)                       \
    {                                                                                              \
        return warm(KIND, slot, call);                                                             \
    }                                                                                              \
    static int set_up_##word(struct collx_slot *slot, struct collx_call *call)                     \
    {                                                                                              \
        return set_up(KIND, slot, call);                                                           \
    }                                                                                              \
    static int first_##word(struct collx_slot *slot, struct collx_call *call)                      \
    {                                                                                              \
        return first(KIND, slot, call);                                                            \
    }
COUNTING(barrier, COLLX_BARRIER)
COUNTING(bcast, COLLX_BCAST)
COUNTING(allreduce, COLLX_ALLREDUCE)

struct collx_comm collx_comm_unknown = {
    .slot =
        {
            [COLLX_BARRIER] = {.run = first_barrier},
            [COLLX_BCAST] = {.run = first_bcast},
            [COLLX_ALLREDUCE] = {.run = first_allreduce},
        },
};

static uint64_t usual_calls(int ranks)
{
    const uint64_t calls = COLLX_WARMUP_CALLS / (((uint64_t)ranks + 1) / 2);

    return calls < COLLX_WARMUP_EARLY ? COLLX_WARMUP_EARLY : calls;
}

void collx_calls_begin(struct collx_comm *comm)
{
    if (comm->inter) {
        for (int kind = 0; kind < COLLX_ROUTED; kind++)
            collx_calls_to_mpi(comm, (enum collx_kind)kind, COLLX_REASON_INTERCOMM);
        return;
    }
    const bool usual = warm_up == COLLX_WARMUP_CALLS || !collx_agree_has_met(comm, NULL);
    comm->due_at = usual ? usual_calls(comm->size) : warm_up;
    comm->meet_at = comm->due_at < COLLX_WARMUP_EARLY ? comm->due_at : COLLX_WARMUP_EARLY;
    comm->slot[COLLX_BARRIER].run = comm->due_at ? warm_barrier : set_up_barrier;
    comm->slot[COLLX_BCAST].run = comm->due_at ? warm_bcast : set_up_bcast;
    comm->slot[COLLX_ALLREDUCE].run = comm->due_at ? warm_allreduce : set_up_allreduce;
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        comm->slot[kind].state = comm;
}
