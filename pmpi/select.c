/* The selecting slot: looks at a call's datatype, size and operation, all of them equal on all
 * ranks, and hands it to the algorithm that the policy has for them.
 *
 * What is wrong with a call goes to the MPI library, which reports it as it always did, and does so
 * without talking to other ranks.
 */
#include "pmpi/select.h"

#include "algorithms/reduce.h"
#include "pmpi/calls.h"
#include "pmpi/progress.h"
#include "pmpi/types.h"
#include "trace/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct option {
    size_t last; /* bytes up to which this one holds */
    uint32_t ops;
    uint8_t route;
    bool (*takes)(const void *state, const struct collx_call *call);
    struct collx_slot *slot; /* NULL: the MPI library */
};

struct collx_selection {
    int size;       /* ranks of the communicator */
    unsigned calls; /* that went to an algorithm */
    struct option option[];
};

/* A rank that never waits, because it is always the last, or the root, would never let MPI move
 * what is pending: every so many calls it does.  Rare enough not to show in the time of a call. */
enum { PROGRESS_EVERY = 64 };

static int pass_to_mpi(enum collx_kind kind, struct collx_call *call, unsigned reason)
{
    call->route = 0;
    call->reason = (uint8_t)reason;
    if (kind == COLLX_ALLREDUCE && reason != COLLX_REASON_BAD_ARGUMENT && call->sbuf == call->rbuf)
        call->sbuf = MPI_IN_PLACE; /* as it was, see run_allreduce */
    return collx_call_mpi(kind, call);
}

static inline int choose(struct collx_selection *selection, enum collx_kind kind,
                         struct collx_call *call)
{
    const struct option *option = selection->option;

    /* Ascending, and the last one has no end. */
    while (call->bytes > option->last || !(option->ops >> call->op_kind & 1))
        option++;
    if (!option->slot)
        return pass_to_mpi(kind, call, COLLX_REASON_POLICY);
    if (option->takes && !option->takes(option->slot->state, call))
        return pass_to_mpi(kind, call, COLLX_REASON_NOT_TAKEN);
    call->route = option->route;
    call->reason = COLLX_REASON_POLICY;
    if (__builtin_expect(++selection->calls % PROGRESS_EVERY == 0, 0))
        collx_progress();
    int error = option->slot->run(option->slot, call);
    /* What went wrong on the way was on a communicator of ours: now it is this one's. */
    if (__builtin_expect(error, 0))
        pmpi.Comm_call_errhandler((MPI_Comm)call->comm, error);
    return error;
}

static int run_barrier(struct collx_slot *slot, struct collx_call *call)
{
    call->bytes = 0;
    call->op_kind = COLLX_OP_NONE;
    return choose(slot->state, COLLX_BARRIER, call);
}

/* Size and layout of the call's buffer.  The facts are those of `type`, or of *room. */
static inline const struct collx_datatype *describe(struct collx_call *call,
                                                    struct collx_datatype *room)
{
    const struct collx_datatype *type = collx_datatype_predefined((MPI_Datatype)call->datatype);

    if (__builtin_expect(!type, 0)) {
        if (!collx_datatype_derived((MPI_Datatype)call->datatype, room))
            return NULL;
        type = room;
    }
    if (call->count < 0)
        return NULL;
    call->contiguous = type->contiguous;
    call->elem_bytes = (size_t)type->size;
    if (__builtin_mul_overflow((size_t)call->count, call->elem_bytes, &call->bytes))
        return NULL;
    /* A predefined type has no place at address 0; MPI_BOTTOM goes with derived ones. */
    if (type != room && call->bytes && !call->rbuf)
        return NULL;
    return type;
}

static int run_bcast(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_selection *selection = slot->state;
    struct collx_datatype room;

    if (call->root < 0 || call->root >= selection->size || !describe(call, &room))
        return pass_to_mpi(COLLX_BCAST, call, COLLX_REASON_BAD_ARGUMENT);
    call->op_kind = COLLX_OP_NONE;
    return choose(selection, COLLX_BCAST, call);
}

static int run_allreduce(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_datatype room;
    const struct collx_datatype *type = describe(call, &room);

    if (!type || call->rbuf == MPI_IN_PLACE)
        return pass_to_mpi(COLLX_ALLREDUCE, call, COLLX_REASON_BAD_ARGUMENT);
    call->op_kind = collx_op_kind((MPI_Op)call->op);
    /* Only an operation of the user's own may be used on any type. */
    if (call->op_kind != COLLX_OP_USER &&
        !collx_datatype_allows(type, call->op_kind, (MPI_Op)call->op))
        return pass_to_mpi(COLLX_ALLREDUCE, call, COLLX_REASON_BAD_ARGUMENT);
    if (call->sbuf == MPI_IN_PLACE) {
        call->sbuf = call->rbuf;
    } else if (type != &room && call->bytes) {
#ifdef MPICH
        /* MPICH refuses buffers that are the same; Open MPI takes it as in place. */
        if (call->sbuf == call->rbuf)
            return pass_to_mpi(COLLX_ALLREDUCE, call, COLLX_REASON_BAD_ARGUMENT);
#endif
        if (!call->sbuf)
            return pass_to_mpi(COLLX_ALLREDUCE, call, COLLX_REASON_BAD_ARGUMENT);
    }
    call->reduce = collx_reduce_kernel(call->op_kind, type->elem);
    return choose(slot->state, COLLX_ALLREDUCE, call);
}

static struct collx_attached *find(struct collx_comm *comm, const struct collx_choice *choice)
{
    for (int i = 0; i < comm->attached_count; i++) {
        struct collx_attached *attached = &comm->attached[i];
        if (attached->algorithm == choice->algorithm &&
            !memcmp(&attached->args, &choice->args, sizeof choice->args))
            return attached;
    }
    return NULL;
}

int collx_select_prepare(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_choice *choices, int count)
{
    bool all_mpi = true;

    free(comm->selection[kind]);
    comm->selection[kind] = NULL;
    for (int i = 0; i < count; i++)
        all_mpi = all_mpi && !choices[i].algorithm;
    if (all_mpi)
        return 0;

    struct collx_selection *selection =
        calloc(1, sizeof *selection + (size_t)count * sizeof(struct option));
    if (!selection)
        return -ENOMEM;
    selection->size = comm->size;
    for (int i = 0; i < count; i++) {
        struct option *option = &selection->option[i];
        option->last =
            choices[i].bytes.last == INT64_MAX ? SIZE_MAX : (size_t)choices[i].bytes.last;
        option->ops = choices[i].ops;
        struct collx_attached *attached = choices[i].algorithm ? find(comm, &choices[i]) : NULL;
        if (attached) {
            option->slot = &attached->slot;
            option->takes = attached->algorithm->takes;
            option->route = attached->route;
        }
    }
    comm->selection[kind] = selection;
    return 0;
}

void collx_select_install(struct collx_comm *comm, enum collx_kind kind)
{
    static int (*const run[COLLX_ROUTED])(struct collx_slot *, struct collx_call *) = {
        [COLLX_BARRIER] = run_barrier,
        [COLLX_BCAST] = run_bcast,
        [COLLX_ALLREDUCE] = run_allreduce,
    };

    if (comm->selection[kind])
        comm->slot[kind] = (struct collx_slot){.run = run[kind], .state = comm->selection[kind]};
    else
        collx_calls_to_mpi(comm, kind, COLLX_REASON_POLICY);
}
