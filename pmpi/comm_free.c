/* MPI_Comm_free, MPI_Comm_disconnect, and what else frees communicators: they call what a program
 * has hung there.
 *
 * Libraries do their last collectives in such delete callbacks.  Those that MPI calls after ours
 * find no state any more, and must not make another one: MPI would not delete it again, so it would
 * be taken for that of the next communicator with this handle.  And as each rank may have hung
 * things on it in an order of its own, ours may come before theirs on some ranks alone.  So what
 * the ranks have together ends before the first callback, and all calls on the communicator go to
 * the MPI library from then on.
 *
 * MPICH deletes a communicator that has messages on their way when the last of them has come, in
 * whatever call that is.  When our callback has been there the state stays, for the calls of those
 * that follow.  When they are over nobody tells us; but the next communicator with this handle has
 * not the name that we leave on this one.
 */
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/kept.h"
#include "pmpi/setup.h"
#include "pmpi/warmup.h"
#include "trace/recorder.h"

#include <string.h>

/* Those that are being freed, the latest last: a callback frees what a library has for the one that
 * it hangs on, and what hangs on that may still use both.  Of each thread: another one may be
 * making a communicator with the handle that has just become free. */
enum { NESTED_MOST = 8, MARK_WORDS = 32 };
struct going {
    uintptr_t comm;
    bool hidden; /* one that MPI has made for itself, of which nobody has told us */
    const void *frame;
    const void *const volatile *mark; /* [MARK_WORDS], on the stack: each word is where it is */
};
static _Thread_local struct going going[NESTED_MOST];
static _Thread_local int depth;

/* What is not above the caller on the stack is over.  What is there now may be other frames, which
 * leave no such room without a word of theirs; AddressSanitizer would have them left alone. */
static __attribute__((no_sanitize_address)) bool is_over(const struct going *one, const void *frame)
{
    bool over = (uintptr_t)one->frame <= (uintptr_t)frame;

    for (int i = 0; i < MARK_WORDS && !over; i++)
        over = one->mark[i] != &one->mark[i];
    return over;
}

/* An error handler of the program's may have left by longjmp, or by an exception. */
static void leave_those_over(const void *frame)
{
    while (depth && is_over(&going[depth - 1], frame))
        depth--;
}

bool collx_comm_is_going(MPI_Comm comm)
{
    bool found = false;

    leave_those_over(__builtin_frame_address(0));
    for (int i = 0; i < depth; i++)
        found = found || going[i].hidden || going[i].comm == (uintptr_t)comm;
    return found;
}

/* Have MPI free an object, of which `what` says how callbacks are to be taken. */
static int free_by_mpi(enum collx_entry entry, void *object, struct going what)
{
    int (*real)(void *) = (int (*)(void *))collx_door.real[entry];
    const void *volatile mark[MARK_WORDS];

    for (int i = 0; i < MARK_WORDS; i++)
        mark[i] = (const void *)&mark[i];
    what.frame = __builtin_frame_address(0);
    what.mark = mark;
    leave_those_over(what.frame);
    const int before = depth;
    if (depth < NESTED_MOST)
        going[depth++] = what;
    int error = real(object);
    depth = before;
    return error;
}

void collx_comm_retire(struct collx_comm *state)
{
    collx_calls_all_to_mpi(state, COLLX_REASON_WARMUP);
    collx_comm_teardown(state);
}

static const char gone_name[] = "freed (collx)";

static bool has_gone_name(MPI_Comm comm)
{
    char name[MPI_MAX_OBJECT_NAME + 1];
    int length;

    /* A call on what is no communicator any more is MPI's to report. */
    return pmpi.Comm_get_name(comm, name, &length) || !strcmp(name, gone_name);
}

struct collx_comm *collx_comm_look(MPI_Comm comm)
{
    struct collx_comm *state = collx_comm_find(comm);

    if (!state->gone || has_gone_name(comm))
        return state;
    collx_comm_drop(state);
    return &collx_comm_unknown;
}

/* The slots of one that has gone; slot->state is the kind. */
static int run_gone(struct collx_slot *slot, struct collx_call *call)
{
    const enum collx_kind kind = (enum collx_kind)(uintptr_t)slot->state;
    struct collx_comm *now = collx_comm_look((MPI_Comm)call->comm);

    if (!now->gone)
        return now->slot[kind].run(&now->slot[kind], call);
    call->route = 0;
    call->reason = COLLX_REASON_WARMUP;
    return collx_call_mpi(kind, call);
}

bool collx_comm_linger(struct collx_comm *state)
{
    const MPI_Comm comm = state->comm;

    /* No others get the handles of the first two. */
    if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || collx_comm_is_going(comm) ||
        pmpi.Comm_set_name(comm, gone_name))
        return false;
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        state->slot[kind] = (struct collx_slot){.run = run_gone, .state = (void *)(uintptr_t)kind};
    state->gone = true;
    return true;
}

static int let_go(enum collx_entry entry, MPI_Comm *comm)
{
    /* Those that cannot be freed are one rank's mistake, which MPI reports. */
    if (!comm || *comm == MPI_COMM_WORLD || *comm == MPI_COMM_SELF)
        return ((int (*)(MPI_Comm *))collx_door.real[entry])(comm);
    struct collx_comm *state = collx_comm_look(*comm);
    const bool known = state != &collx_comm_unknown;

    if (known)
        collx_warmup_settle(state);
    else
        collx_warmup_forget(*comm);
#ifdef MPICH
    /* Lest a late callback's be the first call on it. */
    if (!known)
        state = collx_comm_add(*comm);
#endif
    if (known)
        collx_kept_keep(state);
    if (state != &collx_comm_unknown)
        collx_comm_retire(state);
    if (known || state->unhung)
        collx_comm_unhang(state);
    return free_by_mpi(entry, comm, (struct going){.comm = (uintptr_t)*comm});
}

static int comm_free(MPI_Comm *comm)
{
    return let_go(COLLX_ENTRY_Comm_free, comm);
}

static int comm_disconnect(MPI_Comm *comm)
{
    return let_go(COLLX_ENTRY_Comm_disconnect, comm);
}

/* With a window and with a file goes a communicator that MPI has made of the program's, and copied
 * there what hangs on that: those callbacks may be the first to call anything on it. */
static int win_free(void *window)
{
    return free_by_mpi(COLLX_ENTRY_Win_free, window, (struct going){.hidden = true});
}

static int file_close(void *file)
{
    return free_by_mpi(COLLX_ENTRY_File_close, file, (struct going){.hidden = true});
}

void collx_comm_free_install(void)
{
    if (collx_door.real[COLLX_ENTRY_Win_free])
        collx_door.route[COLLX_ENTRY_Win_free] = (void *)win_free;
    if (collx_door.real[COLLX_ENTRY_File_close])
        collx_door.route[COLLX_ENTRY_File_close] = (void *)file_close;
    collx_door.route[COLLX_ENTRY_Comm_free] = (void *)comm_free;
    collx_door.route[COLLX_ENTRY_Comm_disconnect] = (void *)comm_disconnect;
}
