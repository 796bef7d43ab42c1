/* MPI_Comm_free and MPI_Comm_disconnect, which call what a program has hung on the communicator.
 *
 * Libraries do their last collectives in such delete callbacks.  Those that MPI calls after ours
 * find no state any more, and must not make another one: MPI would not delete it again, so it would
 * be taken for that of the next communicator with this handle.  And as each rank may have hung
 * things on it in an order of its own, ours may come before theirs on some ranks alone.  So all
 * calls on it go to the MPI library meanwhile.
 */
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "trace/recorder.h"

#include <string.h>

/* Of each thread: another one may be making a communicator with the handle that has just become
 * free. */
static _Thread_local uintptr_t going;

bool collx_comm_is_going(MPI_Comm comm)
{
    return going && going == (uintptr_t)comm;
}

static int let_go(enum collx_entry entry, MPI_Comm *comm)
{
    int (*real)(MPI_Comm *) = (int (*)(MPI_Comm *))collx_door.real[entry];
    const uintptr_t before = going; /* a callback frees what a library has for this communicator */
    struct collx_slot slot[COLLX_ROUTED];

    if (!comm)
        return real(comm);
    const MPI_Comm handle = *comm;
    struct collx_comm *state = collx_comm_find(handle);
    memcpy(slot, state->slot, sizeof slot);
    for (int kind = 0; kind < COLLX_ROUTED && state != &collx_comm_unknown; kind++)
        collx_calls_to_mpi(state, (enum collx_kind)kind, COLLX_REASON_WARMUP);
    going = (uintptr_t)handle;
    int error = real(comm);
    going = before;
    /* It was one that cannot be freed, as MPI_COMM_WORLD. */
    if (error && state != &collx_comm_unknown && collx_comm_find(handle) == state)
        memcpy(state->slot, slot, sizeof slot);
    return error;
}

static int comm_free(MPI_Comm *comm)
{
    return let_go(COLLX_ENTRY_Comm_free, comm);
}

static int comm_disconnect(MPI_Comm *comm)
{
    return let_go(COLLX_ENTRY_Comm_disconnect, comm);
}

void collx_comm_free_install(void)
{
    collx_door.route[COLLX_ENTRY_Comm_free] = (void *)comm_free;
    collx_door.route[COLLX_ENTRY_Comm_disconnect] = (void *)comm_disconnect;
}
