#include "pmpi/lifetime.h"

#include "algorithms/between/seg_retired.h"
#include "base/process.h"
#include "pmpi/comm.h"
#include "pmpi/messages.h"
#include "pmpi/rma.h"
#include "pmpi/segment.h"
#include "pmpi/trace.h"
#include "pmpi/world.h"

#include <pthread.h>
#include <stdatomic.h>

/* Those that are open.  Relaxed: what is done in one has been synchronised with its begin. */
static atomic_int sessions;

bool collx_sessions_any(void)
{
    return atomic_load_explicit(&sessions, memory_order_relaxed);
}

/* 0: none.  Relaxed: it orders nothing. */
static _Atomic pid_t process;

void collx_process_keep(void)
{
    pid_t none = 0;

    atomic_compare_exchange_strong_explicit(&process, &none, collx_process_own(),
                                            memory_order_relaxed, memory_order_relaxed);
}

bool collx_process_is_child(void)
{
    const pid_t kept = atomic_load_explicit(&process, memory_order_relaxed);

    return kept && kept != collx_process_own();
}

/* Guards what follows: who begins comes before or after all that an end does.  Never held while MPI
 * itself begins or ends, which may take until other ranks do, by what another thread does there.
 * MPI may hold a lock of its own when it calls world_ends(); who else calls MPI with this one held
 * does so where nothing is open, and then nobody is in there. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ending; /* calls under way that end the world, or a session */

/* MPI has one in the life of a process.  Set with the lock held.  Relaxed, as `sessions` above. */
static _Atomic enum { UNSEEN, OPEN, GONE } world;

static int world_now(void)
{
    return atomic_load_explicit(&world, memory_order_relaxed);
}

static void world_is(int now)
{
    atomic_store_explicit(&world, now, memory_order_relaxed);
}

/* Those of this thread: MPI_Finalize may call what ends a session. */
static _Thread_local int own;

/* By the lock nobody would learn more: what it says may be over when the lock is free again.  Who
 * may call collectives has synchronised with what has begun. */
bool collx_is_open(void)
{
    const int now = world_now();

    /* MPI_COMM_WORLD may have come up past collx. */
    return collx_sessions_any() || now == OPEN || (now == UNSEEN && collx_world_up());
}

bool collx_world_is_known(void)
{
    return world_now() == OPEN;
}

/* MPI_Finalize deletes what hangs on MPI_COMM_SELF while MPI can still be used, the latest first;
 * libraries do their last collectives in such callbacks.  Ours was there before theirs.
 *
 * One that fails keeps MPI from calling those that were there before it, on that rank alone.  Open
 * MPI goes on with what hangs on MPI_COMM_WORLD nevertheless, where each rank must be as far as the
 * others: there ours is the latest, and comes first.  By then its version 5 refuses all calls, by
 * ending the job, and no other rank waits for one. */
static int world_ends(MPI_Comm comm, int key, void *value, void *extra)
{
    const bool callable = comm == MPI_COMM_SELF;

    (void)key, (void)value, (void)extra;
    if (!collx_world_is_known())
        return MPI_SUCCESS;
    collx_messages_end(true);
    collx_rma_end(callable);
    pthread_mutex_lock(&lock);
    world_is(GONE);
    if (!collx_is_open()) {
        collx_comms_retire();
        collx_comms_finish(callable);
    }
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static void hang_end_on(MPI_Comm comm)
{
    int key;

    if (!pmpi.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, world_ends, &key, NULL))
        pmpi.Comm_set_attr(comm, key, NULL);
}

/* The loader gives a thread room for all thread-local variables of a library when it first uses one
 * of them, and ends the program where there is no memory for it: this thread has it from now on. */
static void take_room(void)
{
    *(volatile int *)&own = own;
}

void collx_world_begun(void)
{
    take_room();
    collx_world_keep();
    pthread_mutex_lock(&lock);
    world_is(OPEN);
    pthread_mutex_unlock(&lock);
    hang_end_on(MPI_COMM_SELF);
}

void collx_session_begun(void)
{
    take_room();
    pthread_mutex_lock(&lock);
    atomic_fetch_add_explicit(&sessions, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

void collx_world_ending(void)
{
    own++;
    pthread_mutex_lock(&lock);
    ending++;
    const bool open = collx_world_is_known();
    pthread_mutex_unlock(&lock);
    if (open)
        hang_end_on(MPI_COMM_WORLD);
}

/* Counted down before it ends: of two that end at a time one is the last, and what begins
 * meanwhile is another one. */
void collx_session_ending(void)
{
    own++;
    collx_messages_end(true);
    pthread_mutex_lock(&lock);
    ending++;
    atomic_fetch_sub_explicit(&sessions, 1, memory_order_relaxed);
    if (!collx_is_open())
        collx_comms_finish(true);
    pthread_mutex_unlock(&lock);
}

/* The last of all has ended. */
static void end(void)
{
    collx_messages_end(true);
    collx_comms_forget();
    collx_segments_finish();
    collx_seg_retired_finish();
    collx_trace_end();
}

void collx_ended(void)
{
    pthread_mutex_lock(&lock);
    /* One that is still ending may still delete what hangs on communicators. */
    if (!--ending && !collx_is_open())
        end();
    pthread_mutex_unlock(&lock);
    if (!--own)
        collx_messages_end(false);
}
