#include "algorithms/between/seg_retired.h"

#include "base/clock.h"
#include "base/process.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    /* For those that are about to end as well, but later. */
    PATIENCE_MS = 100,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct collx_seg_retired *all;
/* Whose they are.  A forked child has the list as well, but it is not the child's to undo, and the
 * lock may be held by a thread that the child has not got.  Relaxed: it orders nothing. */
static _Atomic pid_t owner;

static bool has_all_farewells(const struct collx_seg_retired *retired)
{
    for (int i = 0; i < retired->count; i++)
        if (!collx_seg_reached(collx_seg_read(retired->local, retired->flag[i]), retired->farewell))
            return false;
    return true;
}

static int sweep(bool regardless)
{
    int left = 0;

    if (atomic_load_explicit(&owner, memory_order_relaxed) != collx_process_own())
        return 0;
    pthread_mutex_lock(&lock);
    for (struct collx_seg_retired **at = &all, *each; (each = *at);) {
        if (regardless || has_all_farewells(each)) {
            *at = each->next;
            each->ops->unmake(each->made);
            each->ops->close(each->net);
            free(each);
        } else {
            at = &each->next;
            left++;
        }
    }
    pthread_mutex_unlock(&lock);
    return left;
}

void collx_seg_retire(struct collx_seg_retired *retired)
{
    pthread_mutex_lock(&lock);
    if (atomic_load_explicit(&owner, memory_order_relaxed) != collx_process_own())
        all = NULL;
    atomic_store_explicit(&owner, collx_process_own(), memory_order_relaxed);
    retired->next = all;
    all = retired;
    pthread_mutex_unlock(&lock);
    sweep(false);
}

int collx_seg_retired_sweep(void)
{
    return sweep(false);
}

void collx_seg_retired_finish(void)
{
    const uint64_t begin = collx_clock_ns();

    while (sweep(false) && collx_clock_ns() - begin < PATIENCE_MS * 1000000u)
        sched_yield();
    sweep(true);
}
