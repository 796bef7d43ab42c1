#include "pmpi/comm.h"

#include "pmpi/layouts.h"
#include "pmpi/lifetime.h"
#include "pmpi/messages.h"
#include "pmpi/progress.h"
#include "pmpi/setup.h"
#include "pmpi/types.h"
#include "pmpi/warmup.h"
#include "pmpi/world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DELETED = 1 };

/* The first table, which takes no memory: most programs need no other, and a rank that has none
 * left still knows the few communicators at a time that there are spare states for. */
enum { FIRST_BITS = 6 };
static struct collx_comm_table first = {
    .shift = 64 - FIRST_BITS,
    .mask = (1u << FIRST_BITS) - 1,
    .entry = {[0 ...(1 << FIRST_BITS) - 1] = {.comm = &collx_comm_unknown}},
};

struct collx_comm_table *_Atomic collx_comms = &first;

/* Guards writing to the table.  Never held across a call into MPI: MPI may call deleted() while it
 * holds a lock of its own, which such a call would wait for. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned used; /* entries that are not free, deleted ones included */

/* The key under which states hang on communicators. */
static atomic_int keyval = MPI_KEYVAL_INVALID;
/* Guards making it, and what is known of types before.  deleted() does not take it. */
static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
static bool types_known;

static struct collx_comm_entry *at(struct collx_comm_table *table, unsigned i)
{
    return &table->entry[i & table->mask];
}

static uintptr_t handle_at(struct collx_comm_table *table, unsigned i)
{
    return atomic_load_explicit(&at(table, i)->handle, memory_order_relaxed);
}

/* Where `handle` is; where it is not, the first place that it could have. */
static unsigned place(struct collx_comm_table *table, uintptr_t handle)
{
    unsigned i = (unsigned)((handle * 0x9e3779b97f4a7c15u) >> table->shift), free_at = 0;
    bool any = false;

    for (;; i++) {
        uintptr_t found = handle_at(table, i);
        if (found == handle)
            return i;
        if (found <= DELETED && !any) {
            any = true;
            free_at = i;
        }
        if (!found)
            return free_at;
    }
}

static void insert(struct collx_comm_table *table, uintptr_t handle, struct collx_comm *comm)
{
    struct collx_comm_entry *entry = at(table, place(table, handle));

    if (!atomic_load_explicit(&entry->handle, memory_order_relaxed))
        used++;
    /* Relaxed, like what reads them (collx_comm_find): who uses the communicator has synchronised
     * with who has made it, and so with this. */
    atomic_store_explicit(&entry->comm, comm, memory_order_relaxed);
    atomic_store_explicit(&entry->handle, handle, memory_order_relaxed);
}

static void delete (struct collx_comm_table *table, uintptr_t handle)
{
    unsigned i = place(table, handle);

    if (handle_at(table, i) != handle)
        return;
    /* A program may well pass a handle of 0 or 1 by mistake; it finds this. */
    atomic_store_explicit(&at(table, i)->comm, &collx_comm_unknown, memory_order_relaxed);
    if (handle_at(table, i + 1)) {
        /* Searches pass here on their way to what lies beyond. */
        atomic_store_explicit(&at(table, i)->handle, DELETED, memory_order_relaxed);
        return;
    }
    /* Nothing beyond: this place, and deleted ones before it, are free again. */
    for (; used && handle_at(table, i) == handle; i--, used--) {
        atomic_store_explicit(&at(table, i)->handle, 0, memory_order_relaxed);
        handle = DELETED;
    }
}

/* For communicators that there is no memory for: a rank that did not count the calls on one like
 * the others would be waited for.  A few, since an MPI library does not get far without memory
 * either. */
enum { SPARE = 16 };
static struct collx_comm spare[SPARE];
/* Acquire where one is taken pairs with the release where it is given back: who had it before has
 * done with it. */
static atomic_bool spare_used[SPARE];
_Static_assert(SPARE < 1 << FIRST_BITS, "they can be found without any memory");

/* Zeroed; NULL: there is none. */
static struct collx_comm *state_create(void)
{
    struct collx_comm *state = malloc(sizeof *state);

    for (int i = 0; !state && i < SPARE; i++)
        if (!atomic_exchange_explicit(&spare_used[i], true, memory_order_acquire))
            state = &spare[i];
    /* Not by calloc(), which looks for memory where those freed last are not. */
    if (state)
        memset(state, 0, sizeof *state);
    return state;
}

static void state_destroy(struct collx_comm *state)
{
    free(state->identity);
    if (state >= spare && state < spare + SPARE)
        atomic_store_explicit(&spare_used[state - spare], false, memory_order_release);
    else
        free(state);
}

/* Room for `handle`, at most half full, as long as there is memory; deleted entries are dropped on
 * the way. */
static bool publish(uintptr_t handle)
{
    struct collx_comm_table *old = atomic_load_explicit(&collx_comms, memory_order_relaxed);
    unsigned bits = FIRST_BITS, live = 1;

    if (2 * (used + 1) <= old->mask)
        return true;
    for (unsigned i = 0; i <= old->mask; i++)
        live += old->entry[i].handle > DELETED;
    while (4 * live > 1u << bits)
        bits++;

    struct collx_comm_table *table =
        calloc(1, sizeof *table + ((size_t)1 << bits) * sizeof(struct collx_comm_entry));
    /* A search ends at an entry that is free; one that was deleted can be used again. */
    if (!table)
        return used < old->mask || handle_at(old, place(old, handle)) == DELETED;
    for (unsigned i = 0; i < 1u << bits; i++)
        table->entry[i].comm = &collx_comm_unknown;
    table->previous = old;
    table->shift = 64 - bits;
    table->mask = (1u << bits) - 1;
    used = 0;
    for (unsigned i = 0; i <= old->mask; i++) {
        uintptr_t known = old->entry[i].handle;
        if (known > DELETED)
            insert(table, known, old->entry[i].comm);
    }
    /* Release: what it holds comes before it; pairs with the load in collx_comm_find. */
    atomic_store_explicit(&collx_comms, table, memory_order_release);
    return true;
}

/* Give back all but the state itself.  Twice is once. */
static void give_up(struct collx_comm *state)
{
    collx_hold_forget(&state->hold);
    collx_comm_teardown(state);
    collx_messages_close(&state->routes.messages);
}

void collx_comm_drop(struct collx_comm *state)
{
    pthread_mutex_lock(&lock);
    delete (atomic_load_explicit(&collx_comms, memory_order_relaxed), (uintptr_t)state->comm);
    pthread_mutex_unlock(&lock);
    state_destroy(state);
}

/* MPI calls this when the communicator is deleted, wherever that happens. */
static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    struct collx_comm *state = value;

    (void)comm, (void)key, (void)extra;
    if (state->unhanging)
        return MPI_SUCCESS;
    give_up(state);
    if (!collx_comm_linger(state))
        collx_comm_drop(state);
    return MPI_SUCCESS;
}

/* Acquire: pairs with the release in find_key(), without which this thread might not find the types
 * that were made known before. */
static int key_now(void)
{
    return atomic_load_explicit(&keyval, memory_order_acquire);
}

/* The lock is for the first communicator alone: others would pay for it in each short life. */
static int find_key(int *key)
{
    int error = MPI_SUCCESS;

    *key = key_now();
    if (*key != MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    pthread_mutex_lock(&key_lock);
    if (!types_known)
        collx_types_init();
    types_known = true;
    *key = key_now();
    if (*key == MPI_KEYVAL_INVALID)
        error = pmpi.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, key, NULL);
    if (!error)
        atomic_store_explicit(&keyval, *key, memory_order_release);
    pthread_mutex_unlock(&key_lock);
    return error;
}

/* Several threads of a process are ranks of it, and would have one state in common: of MPICH's
 * thread communicators, as long as they are more than one.  Each rank finds more of them than
 * processes. */
static bool has_threads_as_ranks(MPI_Comm comm, int size)
{
    MPI_Group group;
    int processes = size;

    if (!pmpi.Threadcomm_init || pmpi.Comm_group(comm, &group))
        return false;
    pmpi.Group_size(group, &processes);
    pmpi.Group_free(&group);
    return processes != size;
}

struct collx_comm *collx_comm_add(MPI_Comm comm)
{
    int inter = 0, size = 0, key;

    /* Where a handler of the program's has been told of an error, MPICH 5 returns success, so a
     * call that went well says nothing: it was on a communicator if that has ranks. */
    if (comm == MPI_COMM_NULL || collx_comm_is_going(comm) || !collx_is_open() ||
        pmpi.Comm_size(comm, &size) || !size || has_threads_as_ranks(comm, size))
        return &collx_comm_unknown;
    struct collx_comm *state = state_create();
    if (!state)
        return &collx_comm_unknown;
    state->comm = comm;
    state->size = size;
    pmpi.Comm_rank(comm, &state->rank);
    pmpi.Comm_test_inter(comm, &inter);
    state->inter = inter;
    collx_warmup_begin(state);

    pthread_mutex_lock(&lock);
    bool added = publish((uintptr_t)comm);
    if (added)
        insert(atomic_load_explicit(&collx_comms, memory_order_relaxed), (uintptr_t)comm, state);
    pthread_mutex_unlock(&lock);
    if (!added) {
        state_destroy(state);
        return &collx_comm_unknown;
    }
    /* Where MPI has no memory for it the other ranks have theirs all the same, and count on this
     * one's. */
    state->unhung = find_key(&key) || pmpi.Comm_set_attr(comm, key, state);
    return state;
}

void collx_comm_unhang(struct collx_comm *state)
{
    const int key = key_now();

    if (!state->unhung) {
        /* Once MPI is about to end nothing is hung any more. */
        if (key == MPI_KEYVAL_INVALID)
            return;
        state->unhanging = true;
        int error = pmpi.Comm_delete_attr(state->comm, key);
        state->unhanging = false;
        if (error)
            return; /* it hangs there yet */
    }
#ifdef MPICH
    if (key != MPI_KEYVAL_INVALID && !pmpi.Comm_set_attr(state->comm, key, state))
        return;
#endif
    /* What is not freed with its communicator must not be known by its handle. */
    give_up(state);
    collx_comm_drop(state);
}

int collx_comm_hush(MPI_Comm comm, MPI_Errhandler *handler)
{
    int error = pmpi.Comm_get_errhandler(comm, handler);

    return error ? error : pmpi.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

void collx_comm_unhush(MPI_Comm comm, MPI_Errhandler *handler)
{
    MPI_Errhandler now;

    /* Another thread of the program may have set one while we waited for other ranks. */
    if (!pmpi.Comm_get_errhandler(comm, &now)) {
        if (now == MPI_ERRORS_RETURN)
            pmpi.Comm_set_errhandler(comm, *handler);
        pmpi.Errhandler_free(&now);
    }
    pmpi.Errhandler_free(handler);
}

/* Open MPI 5 tells of what it has made itself where a program has given no name: by numbers that
 * are other ones on each rank, and the next time. */
static bool is_made_up(const char *name)
{
    return !strncmp(name, "MPI COMMUNICATOR ", strlen("MPI COMMUNICATOR ")) ||
           !strncmp(name, "MPI COMM ", strlen("MPI COMM "));
}

void collx_comm_name(struct collx_comm *comm)
{
    int length = 0;

    if (pmpi.Comm_get_name(comm->comm, comm->name, &length) || is_made_up(comm->name))
        comm->name[0] = '\0';
    if (!*comm->name)
        snprintf(comm->label, sizeof comm->label, "a communicator of %d ranks", comm->size);
    else
        snprintf(comm->label, sizeof comm->label, "%s", comm->name);
}

/* "[ranks 2, 1 and 9 more of MPI_COMM_WORLD]". */
static void print_ranks(char *text, size_t size, const int *there, int ranks)
{
    enum { MOST = 8 };
    size_t length = (size_t)snprintf(text, size, " [rank%s", ranks == 1 ? "" : "s");

    for (int i = 0; i < ranks && i < MOST && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s %d", i ? "," : "", there[i]);
    if (ranks > MOST && length < size)
        length += (size_t)snprintf(text + length, size - length, " and %d more", ranks - MOST);
    if (length < size)
        snprintf(text + length, size - length, " of MPI_COMM_WORLD]");
}

void collx_comm_label(struct collx_comm *comm)
{
    int *there = malloc((size_t)comm->size * sizeof *there);
    bool other = false;

    if (there && collx_world_has(comm, there))
        for (int i = 0; i < comm->size; i++)
            other = other || there[i] != i;
    const size_t length = strlen(comm->label);
    if (other)
        print_ranks(comm->label + length, sizeof comm->label - length, there, comm->size);
    free(there);
}

void collx_comms_retire(void)
{
    pthread_mutex_lock(&lock);
    struct collx_comm_table *table = atomic_load_explicit(&collx_comms, memory_order_relaxed);
    for (unsigned i = 0; i <= table->mask; i++)
        if (table->entry[i].comm != &collx_comm_unknown)
            collx_comm_retire(table->entry[i].comm);
    pthread_mutex_unlock(&lock);
}

void collx_comms_finish(bool callable)
{
    collx_self_finish(callable);
    collx_world_finish(callable);
    /* The last session may take the keys with it.  A later one makes its own. */
    collx_layouts_finish();
    atomic_store_explicit(&keyval, MPI_KEYVAL_INVALID, memory_order_relaxed);
}

void collx_comms_forget(void)
{
    pthread_mutex_lock(&lock);
    struct collx_comm_table *table = atomic_load_explicit(&collx_comms, memory_order_relaxed);
    for (unsigned i = 0; i <= table->mask; i++) {
        struct collx_comm *state = table->entry[i].comm;
        table->entry[i].handle = 0;
        table->entry[i].comm = &collx_comm_unknown;
        if (state != &collx_comm_unknown) {
            give_up(state);
            state_destroy(state);
        }
    }
    used = 0;
    pthread_mutex_unlock(&lock);
}
