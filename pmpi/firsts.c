#include "pmpi/firsts.h"

#include <pthread.h>
#include <stdlib.h>

/* Mostly there is one at a time, which no lock is taken for: on communicators of few calls that
 * would be much of what collx costs. */
static struct {
    _Atomic uintptr_t comm; /* 0: it is free */
    struct collx_handed handed;
} single;

/* Further ones. */
static struct collx_handed *others;
static int others_room;
static atomic_int others_count;
/* Guards them.  Never held across a call into MPI. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Relaxed, these two: who changes it holds the lock; who makes the next call on a communicator has
 * synchronised with the one before. */
static int others_now(void)
{
    return atomic_load_explicit(&others_count, memory_order_relaxed);
}

static void others_are(int count)
{
    atomic_store_explicit(&others_count, count, memory_order_relaxed);
}

static bool put_single(const struct collx_handed *first)
{
    uintptr_t none = 0;

    /* Acquire: pairs with the release in take_single(), whose thread reads what is written over
     * here. */
    if (!first->call.comm ||
        !atomic_compare_exchange_strong_explicit(&single.comm, &none, first->call.comm,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    single.handed = *first;
    return true;
}

static bool put_other(const struct collx_handed *first)
{
    const int count = others_now();

    if (count == others_room) {
        struct collx_handed *more = realloc(others, (size_t)(count + 8) * sizeof *others);
        if (!more)
            return false;
        others = more;
        others_room += 8;
    }
    others[count] = *first;
    others_are(count + 1);
    return true;
}

bool collx_firsts_put(const struct collx_handed *first)
{
    if (put_single(first))
        return true;
    pthread_mutex_lock(&lock);
    const bool put = put_other(first);
    pthread_mutex_unlock(&lock);
    return put;
}

static bool take_single(uintptr_t comm, struct collx_handed *first)
{
    /* Relaxed: as above. */
    if (!comm || atomic_load_explicit(&single.comm, memory_order_relaxed) != comm)
        return false;
    *first = single.handed;
    atomic_store_explicit(&single.comm, 0, memory_order_release);
    return true;
}

static bool take_other(uintptr_t comm, struct collx_handed *first)
{
    const int last = others_now() - 1;
    int i = last;

    while (i >= 0 && others[i].call.comm != comm)
        i--;
    if (i < 0)
        return false;
    *first = others[i];
    others[i] = others[last];
    others_are(last);
    return true;
}

bool collx_firsts_take(uintptr_t comm, struct collx_handed *first)
{
    if (take_single(comm, first))
        return true;
    if (!others_now())
        return false;
    pthread_mutex_lock(&lock);
    const bool taken = take_other(comm, first);
    pthread_mutex_unlock(&lock);
    return taken;
}
