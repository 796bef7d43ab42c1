/* A communicator on its way to having routes: its calls go to the MPI library and are counted,
 * until a setup is worth it.  All ranks count alike, so all set it up at the end of the same call.
 */
#include "pmpi/warmup.h"

#include "pmpi/agree.h"
#include "pmpi/calls.h"
#include "pmpi/firsts.h"
#include "pmpi/kept.h"
#include "pmpi/lifetime.h"
#include "pmpi/progress.h"
#include "pmpi/select.h"
#include "pmpi/setup.h"
#include "pmpi/types.h"
#include "pmpi/world.h"
#include "trace/recorder.h"

/* Set by all ranks of MPI_COMM_WORLD alike, before they make calls. */
static uint64_t warm_up = COLLX_WARMUP_CALLS;
static int most_ranks = INT_MAX; /* of a communicator that may come to have routes */

void collx_warmup_set(uint64_t calls)
{
    warm_up = calls;
}

void collx_warmup_set_most(int ranks)
{
    most_ranks = ranks;
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
static bool ask(struct collx_comm *comm, bool met)
{
    const bool known = comm->may_be_long || comm->calls >= COLLX_WARMUP_AGAIN;
    const bool expected = comm->rank == 0 && known && collx_kept_expects(comm);

    if (met && !known)
        return false;
    return collx_comm_is_due(
        comm, expected || comm->passed >= COLLX_WARMUP_BYTES || warm_up == COLLX_WARMUP_CROWD, met);
}

/* The communicator is due to be set up, or it is time to ask whether it is. */
static __attribute__((noinline)) void meet(struct collx_comm *comm)
{
    const bool met = collx_agree_has_met(comm);
    bool due = comm->calls >= comm->due_at;

    if (!met && collx_comm_is_barred(comm))
        return;
    if (!due) {
        const uint64_t next = comm->meet_at * COLLX_WARMUP_FACTOR;
        comm->meet_at = next < comm->due_at ? next : comm->due_at;
        due = ask(comm, met);
    }
    if (due)
        collx_comm_setup(comm);
}

/* Of a type that was not the last call's. */
static __attribute__((noinline)) bool is_without_bytes(struct collx_comm *comm, uintptr_t datatype)
{
    MPI_Count size = 0;

    if (!collx_datatype_predefined((MPI_Datatype)datatype))
        return !pmpi.Type_size_x((MPI_Datatype)datatype, &size) && !size;
    comm->last_predefined = datatype;
    return false;
}

/* Whether it has no bytes: which is the same on all ranks, not so the count and the type. */
static inline bool is_empty(struct collx_comm *comm, const struct collx_call *call)
{
    return !call->count ||
           (call->datatype != comm->last_predefined && is_without_bytes(comm, call->datatype));
}

/* Another thread may free a type of the program's as soon as others have what the call gives them,
 * and make another one that has its handle.  So there it is looked at before the call; what is no
 * type is MPI's to report.  NULL: nobody knows the communicator; then a program of sessions alone
 * has none by which that could be asked. */
static __attribute__((noinline)) void
look(const struct collx_comm *comm, const struct collx_call *call, struct collx_handed *handed)
{
    const MPI_Datatype handle = (MPI_Datatype)call->datatype;
    struct collx_datatype type;

    if ((comm ? collx_datatype_predefined(handle) != NULL : !collx_world_is_known()) ||
        collx_self_init(comm ? comm->comm : MPI_COMM_SELF))
        return;
    handed->looked = true;
    handed->empty = !call->count || (collx_datatype_derived(handle, &type) && !type.size);
}

static inline void look_before(const struct collx_comm *comm, enum collx_kind kind,
                               const struct collx_call *call, struct collx_handed *handed)
{
    handed->looked = false;
    if (kind != COLLX_BARRIER && !(comm && call->datatype == comm->last_predefined) &&
        collx_world_has_threads())
        look(comm, call, handed);
}

/* When it is worth it all ranks set the communicator up, at the end of the same call. */
static inline void tally(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_call *call)
{
    const bool many = kind != COLLX_BARRIER && call->count >= COLLX_WARMUP_COUNT;
    comm->may_be_long |= many || kind == COLLX_BCAST;
    if (many)
        comm->passed += bytes_of(call);
    if (__builtin_expect(++comm->calls >= comm->meet_at, 0))
        meet(comm);
}

/* The call has gone well, as far as MPI tells. */
static inline void count(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_call *call, const struct collx_handed *handed)
{
    if (collx_call_is_wrong(comm, kind, call))
        return;
    /* One that MPI refuses on a rank has gone well on the others, which do not need that rank. */
    if (kind != COLLX_BARRIER && (handed->looked ? handed->empty : is_empty(comm, call)))
        return;
    tally(comm, kind, call);
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

/* An error handler of the program's has left it, by longjmp or by an exception, as it may where a
 * Bcast brought more than there was room for: on others it has gone well.  A type of the program's
 * own may have been freed since and cannot be looked at. */
static void count_left(struct collx_comm *comm, const struct collx_handed *left)
{
    const struct collx_call *call = &left->call;
    const bool made =
        left->kind != COLLX_BARRIER && !collx_datatype_predefined((MPI_Datatype)call->datatype);

    if (!collx_call_is_wrong(comm, left->kind, call) &&
        (left->kind == COLLX_BARRIER || call->count) &&
        (made || !is_refused(comm, left->kind, call)))
        tally(comm, left->kind, call);
}

/* Keep what the caller passed.  Each word by itself, which atomics see to: the entry has just
 * stored them so, and a load across two stores waits until both are in the cache, 5 ns a call. */
static inline void keep(struct collx_call *kept, enum collx_kind kind,
                        const struct collx_call *call)
{
#define KEEP(field) __atomic_store_n(&kept->field, call->field, __ATOMIC_RELAXED)
    KEEP(comm);
    if (kind == COLLX_BARRIER)
        return;
    KEEP(sbuf);
    KEEP(rbuf);
    KEEP(count);
    KEEP(datatype);
    KEEP(root);
    if (kind == COLLX_ALLREDUCE)
        KEEP(op);
#undef KEEP
}

/* Have MPI carry the call out, and tell whether it is still to be counted: not if an error handler
 * has made another one on this communicator, which has found this one left and counted it. */
static inline __attribute__((always_inline)) bool
hand_to_mpi(struct collx_comm *comm, enum collx_kind kind, struct collx_call *call, int *error)
{
    struct collx_handed *handed = &comm->handed;

    call->route = 0;
    call->reason = COLLX_REASON_WARMUP;
    keep(&handed->call, kind, call);
    handed->kind = kind;
    look_before(comm, kind, call, handed);
    handed->under_way = true;
    *error = collx_call_mpi(kind, call);
    const bool counts = handed->under_way && !collx_call_is_refused(*error);
    handed->under_way = false;
    return counts;
}

void collx_warmup_settle(struct collx_comm *comm)
{
    if (!comm->handed.under_way)
        return;
    const struct collx_handed left = comm->handed;
    comm->handed.under_way = false;
    count_left(comm, &left);
}

/* It may have been set up since. */
static __attribute__((noinline)) int run_settled(struct collx_comm *comm, enum collx_kind kind,
                                                 struct collx_call *call)
{
    collx_warmup_settle(comm);
    return comm->slot[kind].run(&comm->slot[kind], call);
}

static inline __attribute__((always_inline)) int warm(enum collx_kind kind, struct collx_slot *slot,
                                                      struct collx_call *call)
{
    struct collx_comm *comm = slot->state;
    int error;

    if (__builtin_expect(comm->handed.under_way, 0))
        return run_settled(comm, kind, call);
    if (hand_to_mpi(comm, kind, call, &error))
        count(comm, kind, call, &comm->handed);
    return error;
}

/* Where not even the first calls may go to the MPI library. */
static int set_up(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_comm *comm = slot->state;
    const enum collx_kind kind = (enum collx_kind)(slot - comm->slot);

    /* One rank alone may have got it wrong, and would wait for the others here. */
    if (collx_call_is_wrong(comm, kind, call) || is_refused(comm, kind, call)) {
        call->route = 0;
        call->reason = COLLX_REASON_BAD_ARGUMENT;
        return collx_call_mpi(kind, call);
    }
    collx_comm_setup(comm);
    return slot->run(slot, call);
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

void collx_warmup_forget(MPI_Comm comm)
{
    collx_firsts_take((uintptr_t)comm, &(struct collx_handed){.under_way = false});
}

/* The first call on a communicator: only when MPI has found it good is it looked at, so that what
 * is no communicator is reported by MPI, and calls before MPI_Init or after MPI_Finalize too. */
static int first(struct collx_slot *slot, struct collx_call *call)
{
    const enum collx_kind kind = (enum collx_kind)(slot - collx_comm_unknown.slot);
    struct collx_handed handed = {.kind = kind, .call = *call}, before;

    if (__builtin_expect(!warm_up, 0))
        return first_at_once(kind, call);
    look_before(NULL, kind, call, &handed);
    const bool left = collx_firsts_take(call->comm, &before), put = collx_firsts_put(&handed);
    call->route = 0;
    call->reason = COLLX_REASON_WARMUP;
    const int error = collx_call_mpi(kind, call);
    /* As in hand_to_mpi(). */
    if ((!put || collx_firsts_take(call->comm, &handed)) && !collx_call_is_refused(error)) {
        struct collx_comm *comm = collx_comm_add((MPI_Comm)call->comm);
        if (comm != &collx_comm_unknown && !comm->inter) {
            if (left)
                count_left(comm, &before);
            count(comm, kind, call, &handed);
        }
    } else if (left) {
        collx_firsts_put(&before);
    }
    return error;
}

#define WARM(word, KIND)                                                                           \
    static int warm_##word(struct collx_slot *slot, struct collx_call *call)                       \
    {                                                                                              \
        return warm(KIND, slot, call);                                                             \
    }
WARM(barrier, COLLX_BARRIER)
WARM(bcast, COLLX_BCAST)
WARM(allreduce, COLLX_ALLREDUCE)

struct collx_comm collx_comm_unknown = {
    .slot =
        {
            [COLLX_BARRIER] = {.run = first},
            [COLLX_BCAST] = {.run = first},
            [COLLX_ALLREDUCE] = {.run = first},
        },
};

static uint64_t usual_calls(int ranks)
{
    const uint64_t calls = COLLX_WARMUP_CALLS / (((uint64_t)ranks + 1) / 2);

    return calls < COLLX_WARMUP_EARLY ? COLLX_WARMUP_EARLY : calls;
}

/* All its calls go to the MPI library, and it is never due. */
static void pass(struct collx_comm *comm, unsigned reason)
{
    collx_calls_all_to_mpi(comm, reason);
    comm->meet_at = UINT64_MAX;
}

void collx_warmup_begin(struct collx_comm *comm)
{
    static int (*const warm_run[COLLX_ROUTED])(struct collx_slot *, struct collx_call *) = {
        [COLLX_BARRIER] = warm_barrier,
        [COLLX_BCAST] = warm_bcast,
        [COLLX_ALLREDUCE] = warm_allreduce,
    };

    if (comm->inter) {
        pass(comm, COLLX_REASON_INTERCOMM);
        return;
    }
    if (comm->size > most_ranks) {
        pass(comm, COLLX_REASON_POLICY);
        return;
    }
    const bool usual = warm_up == COLLX_WARMUP_CALLS || !collx_agree_has_met(comm);
    if (!usual && warm_up == COLLX_WARMUP_NEVER) {
        pass(comm, COLLX_REASON_SETUP_FAILED);
        return;
    }
    comm->due_at = usual ? usual_calls(comm->size) : warm_up;
    comm->meet_at = comm->due_at < COLLX_WARMUP_EARLY ? comm->due_at : COLLX_WARMUP_EARLY;
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        comm->slot[kind] =
            (struct collx_slot){.run = comm->due_at ? warm_run[kind] : set_up, .state = comm};
}
