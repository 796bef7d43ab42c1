/* The selecting slot: looks at a call's datatype, size and operation, all of them equal on all
 * ranks, and hands it to the algorithm that the policy has for them.
 *
 * What is wrong with a call goes to the MPI library, which reports it as it always did, and does so
 * without talking to other ranks.
 */
#include "pmpi/select.h"

#include "algorithms/reduction/reduce.h"
#include "base/log.h"
#include "pmpi/calls.h"
#include "pmpi/gpu.h"
#include "pmpi/layouts.h"
#include "pmpi/progress.h"
#include "pmpi/types.h"
#include "trace/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An algorithm of a communicator. */
struct route {
    struct collx_slot *slot;
    bool (*takes)(const void *state, const struct collx_call *call);
    uint8_t number; /* struct collx_call.route */
};

struct option {
    size_t last; /* bytes up to which this one holds */
    uint32_t ops;
    bool rank_order; /* is demanded, which the MPI library does not promise */
    int routes;      /* asked one after the other until one takes the call */
    struct route route[COLLX_CANDIDATES];
};

/* A call that went to an algorithm, and what follows from its datatype, operation and count. */
struct past_call {
    uintptr_t datatype, op;
    int64_t count;
    const struct route *route; /* NULL: there was none */
    size_t bytes, elem_bytes;
    collx_reduce_fn *reduce;
    enum collx_op op_kind;
};

struct collx_selection {
    struct collx_comm *comm;
    unsigned calls; /* that went to an algorithm */
    /* Most calls are like the one before, and need not find all that out again: an Allreduce of 8
     * bytes takes 0.10 us then instead of 0.12.  Only of handles that stand for the same as long as
     * the program runs. */
    struct past_call last;
    struct option option[];
};

/* What a call's datatype and operation are. */
enum handles {
    MADE,       /* one of them by the program, which may free it */
    PREDEFINED, /* both, or there are none */
    LASTING,    /* likewise, and elements lie one behind the other: the next call that has the same
                   and as many is like this one, if its buffers are */
};

/* A rank that never waits, because it is always the last, or the root, would never let MPI move
 * what is pending: every so many calls it does.  Rare enough not to show in the time of a call. */
enum { PROGRESS_EVERY = 64 };

/* For call->reason. */
static int pass_to_mpi(enum collx_kind kind, struct collx_call *call)
{
    call->route = 0;
    if (kind == COLLX_ALLREDUCE && call->reason != COLLX_REASON_BAD_ARGUMENT &&
        call->sbuf == call->rbuf)
        call->sbuf = MPI_IN_PLACE; /* as it was, see find_operand */
    return collx_call_mpi(kind, call);
}

static int refuse(enum collx_kind kind, struct collx_call *call)
{
    call->reason = COLLX_REASON_BAD_ARGUMENT;
    return pass_to_mpi(kind, call);
}

static inline bool is_taken(const struct route *route, const struct collx_call *call)
{
    return !route->takes || route->takes(route->slot->state, call);
}

static inline void note_route(struct collx_selection *selection, const struct route *route,
                              struct collx_call *call)
{
    call->route = route->number;
    call->reason = COLLX_REASON_POLICY;
    if (__builtin_expect(++selection->calls % PROGRESS_EVERY == 0, 0))
        collx_progress();
}

/* What went wrong on the way was on a communicator of ours: now it is this one's. */
static inline int end_route(const struct collx_call *call, int error)
{
    if (__builtin_expect(error, 0))
        pmpi.Comm_call_errhandler((MPI_Comm)call->comm, error);
    return error;
}

static inline int run_route(struct collx_selection *selection, const struct route *route,
                            struct collx_call *call)
{
    note_route(selection, route, call);
    return end_route(call, route->slot->run(route->slot, call));
}

/* A call that comes while one of the same communicator is in an operation of the program's.  Mostly
 * the operation has left that one, by longjmp or by an exception, on all ranks alike; then what
 * lies in the segment is of half a call, and stays so; nor is it kept for the next communicator,
 * since that would go by these slots. */
static int run_meanwhile(struct collx_slot *slot, struct collx_call *call)
{
    static bool said;
    struct collx_comm *comm = slot->state;

    if (comm->rank == 0)
        collx_warn_once(&said,
                        "an operation of the program's has left a call of MPI_Allreduce on %s, or "
                        "makes calls on it itself: these go to the MPI library. Have the operation "
                        "return, and look at what it found after the call",
                        comm->label);
    call->route = 0;
    call->reason = COLLX_REASON_NOT_TAKEN;
    return collx_call_mpi((enum collx_kind)(slot - comm->slot), call);
}

static inline int run_operating(struct collx_comm *comm, const struct route *route,
                                struct collx_call *call)
{
    struct collx_slot before[COLLX_ROUTED];

    memcpy(before, comm->slot, sizeof before);
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        comm->slot[kind] = (struct collx_slot){.run = run_meanwhile, .state = comm};
    int error = route->slot->run(route->slot, call);
    memcpy(comm->slot, before, sizeof before);
    return error;
}

static __attribute__((noinline)) int
run_with_made(struct collx_selection *selection, const struct route *route, struct collx_call *call)
{
    struct collx_comm *comm = selection->comm;

    note_route(selection, route, call);
    collx_hold_take(&comm->hold, call);
    int error = call->op_kind == COLLX_OP_USER ? run_operating(comm, route, call)
                                               : route->slot->run(route->slot, call);
    collx_hold_drop(&comm->hold);
    return end_route(call, error);
}

static inline int run_as(enum handles handles, struct collx_selection *selection,
                         const struct route *route, struct collx_call *call)
{
    return (handles == MADE ? run_with_made : run_route)(selection, route, call);
}

/* The first one does not take it. */
static __attribute__((noinline)) const struct route *
find_other(const struct collx_selection *selection, const struct option *option,
           enum collx_kind kind, const struct collx_call *call)
{
    static bool said;

    for (int i = 1; i < option->routes; i++)
        if (is_taken(&option->route[i], call))
            return &option->route[i];
    if (option->rank_order && selection->comm->rank == 0)
        collx_warn_once(&said,
                        "%s of elements of %zu bytes on %s goes to the MPI library, in an order of "
                        "its own, although the policy demands order: rank: no algorithm that could "
                        "be set up takes that. COLLX_VERBOSE=1 tells which there are, and `collx "
                        "info` what they take",
                        collx_kind_name(kind), call->elem_bytes, selection->comm->label);
    return NULL;
}

/* MPI allows to call an operation of the program's own for some of the elements at a time.  But
 * MPICH never does, nor does Open MPI of fewer bytes than these, or if the operation does not
 * commute: so there are programs whose operations do not look how many they get. */
static __attribute__((noinline)) bool mpi_gives_whole(const struct collx_call *call)
{
#ifdef MPICH
    (void)call;
    return true;
#else
    enum { PARTS_FROM = 8192 };
    int commutes = 0;

    return call->bytes < PARTS_FROM ||
           (!pmpi.Op_commutative((MPI_Op)call->op, &commutes) && !commutes);
#endif
}

/* What is asked for in rank order nobody else does. */
static inline bool is_whole(const struct option *option, const struct collx_call *call)
{
    return call->op_kind == COLLX_OP_USER && call->count > 1 && call->bytes &&
           !option->rank_order && mpi_gives_whole(call);
}

/* Who takes the call; NULL: the MPI library, for call->reason. */
static inline const struct route *find_route(struct collx_selection *selection,
                                             enum collx_kind kind, struct collx_call *call,
                                             enum handles handles)
{
    const struct option *option = selection->option;

    /* Ascending, and the last one has no end. */
    while (call->bytes > option->last || !(option->ops >> call->op_kind & 1))
        option++;
    call->reason = option->routes ? COLLX_REASON_NOT_TAKEN : COLLX_REASON_POLICY;
    if (!option->routes)
        return NULL;
    call->whole = is_whole(option, call);
    if (!is_taken(option->route, call))
        return find_other(selection, option, kind, call);
    if (handles == LASTING)
        selection->last = (struct past_call){
            .datatype = call->datatype,
            .op = call->op,
            .count = call->count,
            .route = option->route,
            .bytes = call->bytes,
            .elem_bytes = call->elem_bytes,
            .reduce = call->reduce,
            .op_kind = call->op_kind,
        };
    return option->route;
}

/* Whether the call is like the last one; then all is described.  What is at address 0 it is not:
 * there no predefined type has a place. */
static inline bool recall(const struct collx_selection *selection, struct collx_call *call)
{
    const struct past_call *last = &selection->last;

    if (call->datatype != last->datatype || call->count != last->count || !last->route ||
        !call->rbuf || collx_gpu_has(call->rbuf))
        return false;
    call->contiguous = true;
    call->layout = NULL;
    call->bytes = last->bytes;
    call->elem_bytes = last->elem_bytes;
    call->op_kind = last->op_kind;
    call->reduce = last->reduce;
    call->whole = false;
    return true;
}

static int run_barrier(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_selection *selection = slot->state;

    call->bytes = 0;
    call->op_kind = COLLX_OP_NONE;
    const struct route *route = find_route(selection, COLLX_BARRIER, call, PREDEFINED);
    return route ? run_route(selection, route, call) : pass_to_mpi(COLLX_BARRIER, call);
}

/* The CPU cannot get at the buffers, so MPI packs them. */
static void leave_to_mpi(struct collx_call *call)
{
    call->contiguous = false;
    call->layout = NULL;
}

/* Where the facts about a derived type are while a call lasts. */
struct room {
    struct collx_datatype type;
    struct collx_layout_few layout;
};

/* Size and layout of the call's buffer.  What is returned may be in *room, as may the layout. */
static inline const struct collx_datatype *describe(struct collx_call *call, struct room *room)
{
    const struct collx_datatype *type = collx_datatype_predefined((MPI_Datatype)call->datatype);

    if (__builtin_expect(!type, 0)) {
        if (!collx_datatype_derived((MPI_Datatype)call->datatype, &room->type))
            return NULL;
        type = &room->type;
    }
    if (call->count < 0)
        return NULL;
    call->contiguous = type->contiguous;
    call->layout = NULL;
    if (__builtin_expect(!type->contiguous, 0)) {
        call->layout =
            collx_layout_of((MPI_Datatype)call->datatype, type->size, call->count, &room->layout);
        call->contiguous = call->layout && collx_layout_is_contiguous(call->layout);
    }
    /* What a type with gaps takes need not lie where its address is. */
    if (call->contiguous ? collx_gpu_has(call->rbuf) : collx_gpu_may_be())
        leave_to_mpi(call);
    call->elem_bytes = (size_t)type->size;
    if (__builtin_mul_overflow((size_t)call->count, call->elem_bytes, &call->bytes))
        return NULL;
    /* A predefined type has no place at address 0; MPI_BOTTOM goes with derived ones. */
    if (type != &room->type && call->bytes && !call->rbuf)
        return NULL;
    return type;
}

/* Of a described call. */
static inline enum handles handles_of(const struct collx_call *call,
                                      const struct collx_datatype *type, const struct room *room)
{
    if (type == &room->type || call->op_kind == COLLX_OP_USER)
        return MADE;
    return call->contiguous ? LASTING : PREDEFINED;
}

/* What MPI refuses of a Bcast or Allreduce, whatever else its arguments are. */
static inline bool is_out_of_bounds(const struct collx_comm *comm, enum collx_kind kind,
                                    const struct collx_call *call)
{
    return call->rbuf == MPI_IN_PLACE ||
           (kind == COLLX_BCAST && (unsigned)call->root >= (unsigned)comm->size);
}

/* Up to so many elements MPI takes buffers that are the same as in place; more it refuses, if it
 * looks. */
#ifdef MPICH
enum { SAME_UP_TO = 0 };
#else
enum { SAME_UP_TO = 1 };
#endif

static __attribute__((noinline)) bool is_of_kind(const struct collx_call *call,
                                                 struct collx_datatype *type)
{
    return collx_datatype_of_kind(type, (MPI_Op)call->op) &&
           (!call->bytes || (call->sbuf && call->rbuf));
}

/* Where our operand is.  Whether MPI takes it: `predefined`, that has no place at address 0. */
static inline bool find_operand(struct collx_call *call, bool predefined)
{
    if (call->sbuf == MPI_IN_PLACE)
        call->sbuf = call->rbuf;
    else if (call->sbuf == call->rbuf && call->sbuf != MPI_BOTTOM && call->count > SAME_UP_TO)
        return !collx_same_buffers_refused();
    else if (predefined && call->bytes && !call->sbuf)
        return false;
    if (call->sbuf != call->rbuf && collx_gpu_has(call->sbuf))
        leave_to_mpi(call);
    return true;
}

static inline const struct collx_datatype *describe_bcast(struct collx_call *call,
                                                          struct room *room)
{
    call->op = 0;
    call->op_kind = COLLX_OP_NONE;
    call->reduce = NULL;
    return describe(call, room);
}

static inline const struct collx_datatype *describe_allreduce(struct collx_call *call,
                                                              struct room *room)
{
    const struct collx_datatype *type = describe(call, room);

    if (!type)
        return NULL;
    call->op_kind = collx_op_kind((MPI_Op)call->op);
    if (call->op_kind == COLLX_OP_NONE)
        return NULL;
    /* Only an operation of the user's own may be used on any type. */
    if (call->op_kind != COLLX_OP_USER) {
        if (type == &room->type ? !is_of_kind(call, &room->type)
                                : !collx_datatype_allows(type, call->op_kind, (MPI_Op)call->op))
            return NULL;
    }
    call->reduce = collx_reduce_kernel(call->op_kind, type->elem);
    return find_operand(call, type != &room->type) ? type : NULL;
}

/* All that follows from the arguments of a Bcast or Allreduce, as in describe(); NULL: MPI does not
 * take them. */
static inline const struct collx_datatype *describe_kind(enum collx_kind kind,
                                                         struct collx_call *call, struct room *room)
{
    return kind == COLLX_BCAST ? describe_bcast(call, room) : describe_allreduce(call, room);
}

/* Whether somebody takes the call, and then *error; else call->reason. */
static __attribute__((noinline)) bool take(struct collx_selection *selection, enum collx_kind kind,
                                           struct collx_call *call, int *error)
{
    struct room room;
    const struct collx_datatype *type = describe_kind(kind, call, &room);

    call->reason = COLLX_REASON_BAD_ARGUMENT;
    if (!type)
        return false;
    const enum handles handles = handles_of(call, type, &room);
    const struct route *route = find_route(selection, kind, call, handles);
    if (route)
        *error = run_as(handles, selection, route, call);
    return route != NULL;
}

/* A call that is not like the last one.  What the MPI library has of these is called from here,
 * where there is less on the stack than in take(). */
static __attribute__((noinline)) int run_new(struct collx_selection *selection,
                                             enum collx_kind kind, struct collx_call *call)
{
    int error;

    return take(selection, kind, call, &error) ? error : pass_to_mpi(kind, call);
}

static int run_bcast(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_selection *selection = slot->state;

    if (is_out_of_bounds(selection->comm, COLLX_BCAST, call))
        return refuse(COLLX_BCAST, call);
    if (recall(selection, call))
        return run_route(selection, selection->last.route, call);
    return run_new(selection, COLLX_BCAST, call);
}

static int run_allreduce(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_selection *selection = slot->state;

    if (is_out_of_bounds(selection->comm, COLLX_ALLREDUCE, call))
        return refuse(COLLX_ALLREDUCE, call);
    if (call->op != selection->last.op || !recall(selection, call))
        return run_new(selection, COLLX_ALLREDUCE, call);
    if (!find_operand(call, true))
        return refuse(COLLX_ALLREDUCE, call);
    return run_route(selection, selection->last.route, call);
}

bool collx_select_sign(const struct collx_comm *comm, enum collx_kind kind,
                       const struct collx_call *call, struct collx_signature *signature)
{
    struct collx_call described = *call;
    struct room room;
    const struct collx_datatype *type;

    *signature = (struct collx_signature){.kind = (uint8_t)kind};
    if (kind == COLLX_BARRIER)
        return true;
    if (is_out_of_bounds(comm, kind, call))
        return false;
    type = describe_kind(kind, &described, &room);
    if (!type)
        return false;
    signature->bytes = described.bytes;
    if (kind == COLLX_BCAST) {
        signature->root = call->root;
        return true;
    }
    signature->op = (uint8_t)described.op_kind;
    if (described.bytes)
        signature->elem_bytes = (uint32_t)described.elem_bytes;
    /* An operation of the user's own takes what is the same to MPI as a predefined type, too. */
    if (described.bytes && described.op_kind != COLLX_OP_USER)
        signature->elem = type->elem;
    return true;
}

static void add_route(struct option *option, struct collx_comm *comm,
                      const struct collx_candidate *candidate)
{
    for (int i = 0; i < comm->routes.attached_count; i++) {
        struct collx_attached *attached = &comm->routes.attached[i];
        if (attached->algorithm == candidate->algorithm &&
            !memcmp(&attached->args, candidate->args, sizeof attached->args))
            option->route[option->routes++] =
                (struct route){&attached->slot, attached->algorithm->takes, attached->route};
    }
}

int collx_select_prepare(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_choice *choices, int count)
{
    bool all_mpi = true;

    free(comm->routes.selection[kind]);
    comm->routes.selection[kind] = NULL;
    for (int i = 0; i < count; i++)
        all_mpi = all_mpi && !choices[i].candidates;
    if (all_mpi)
        return 0;

    struct collx_selection *selection =
        calloc(1, sizeof *selection + (size_t)count * sizeof(struct option));
    if (!selection)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        struct option *option = &selection->option[i];
        option->last =
            choices[i].bytes.last == INT64_MAX ? SIZE_MAX : (size_t)choices[i].bytes.last;
        option->ops = choices[i].ops;
        option->rank_order = choices[i].rank_order;
        for (int c = 0; c < choices[i].candidates; c++)
            add_route(option, comm, &choices[i].candidate[c]);
    }
    comm->routes.selection[kind] = selection;
    return 0;
}

void collx_select_install(struct collx_comm *comm, enum collx_kind kind)
{
    static int (*const run[COLLX_ROUTED])(struct collx_slot *, struct collx_call *) = {
        [COLLX_BARRIER] = run_barrier,
        [COLLX_BCAST] = run_bcast,
        [COLLX_ALLREDUCE] = run_allreduce,
    };

    struct collx_selection *selection = comm->routes.selection[kind];

    if (!selection) {
        collx_calls_to_mpi(comm, kind, COLLX_REASON_POLICY);
        return;
    }
    selection->comm = comm;
    selection->calls = 0;
    comm->slot[kind] = (struct collx_slot){.run = run[kind], .state = selection};
}

uint64_t collx_select_calls(const struct collx_comm *comm, enum collx_kind kind)
{
    return comm->routes.selection[kind] ? comm->routes.selection[kind]->calls : 0;
}
