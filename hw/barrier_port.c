#include "hw/barrier_port.h"

#include "base/options.h"
#include "base/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const struct collx_bar_ops *const ops = &collx_barrier_wires;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct collx_bar *bar;
static struct collx_bar_caps own;
static unsigned users;
static uint64_t taken; /* channels */
/* Those that were, as far as others may not have left them yet: the board would let this node have
 * them anew, for it cannot tell a channel that was left from that of a job that has died. */
static uint64_t left;
/* Whose the port is.  Looked at before the lock, which a thread may have held that a forked child
 * has not got.  Relaxed: it orders nothing. */
static _Atomic pid_t owner;

static bool is_own(void)
{
    return atomic_load_explicit(&owner, memory_order_relaxed) == collx_process_own();
}

int collx_bar_port_open(struct collx_bar_caps *caps, char *why, size_t size)
{
    const char *spec = collx_option_text(COLLX_OPTION_HWBARRIER);
    int error = 0;

    if (!*spec) {
        snprintf(why, size, "COLLX_HWBARRIER does not say what wires there are");
        return -ENOENT;
    }
    if (atomic_load_explicit(&owner, memory_order_relaxed) && !is_own()) {
        snprintf(why, size, "the port is of the process that this one was forked from");
        return -EBUSY;
    }
    pthread_mutex_lock(&mutex);
    if (!users)
        error = ops->open(&bar, spec, &own, why, size);
    if (!error) {
        users++;
        atomic_store_explicit(&owner, collx_process_own(), memory_order_relaxed);
        *caps = own;
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

void collx_bar_port_close(void)
{
    if (!is_own())
        return;
    pthread_mutex_lock(&mutex);
    if (!--users) {
        ops->close(bar);
        bar = NULL;
        taken = 0;
        atomic_store_explicit(&owner, 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&mutex);
}

uint64_t collx_bar_port_free(void)
{
    pthread_mutex_lock(&mutex);
    for (unsigned channel = 0; channel < own.channels; channel++)
        if (left & ~taken & 1ull << channel && ops->lingers(bar, channel) == 0)
            left &= ~(1ull << channel);
    uint64_t channels = ((1ull << own.channels) - 1) & ~taken & ~left;
    pthread_mutex_unlock(&mutex);
    return channels;
}

int collx_bar_port_attach(unsigned channel, uint64_t participants, unsigned self, char *why,
                          size_t size)
{
    const uint64_t bit = 1ull << channel;
    int error = -EBUSY;

    pthread_mutex_lock(&mutex);
    if (taken & bit) {
        snprintf(why, size, "channel %u is another communicator's", channel);
    } else {
        error = ops->attach(bar, channel, participants, self, why, size);
        if (error)
            ops->detach(bar, channel);
        else
            taken |= bit;
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

int collx_bar_port_enter(unsigned channel)
{
    pthread_mutex_lock(&mutex);
    int error = ops->enter(bar, channel);
    pthread_mutex_unlock(&mutex);
    return error;
}

int collx_bar_port_test(unsigned channel)
{
    pthread_mutex_lock(&mutex);
    int released = ops->test(bar, channel);
    pthread_mutex_unlock(&mutex);
    return released;
}

int collx_bar_port_settle(void)
{
    pthread_mutex_lock(&mutex);
    int error = ops->settle(bar);
    pthread_mutex_unlock(&mutex);
    return error;
}

int collx_bar_port_missing(unsigned channel, uint64_t *nodes)
{
    pthread_mutex_lock(&mutex);
    int error = ops->missing(bar, channel, nodes);
    pthread_mutex_unlock(&mutex);
    return error;
}

void collx_bar_port_detach(unsigned channel)
{
    if (!is_own())
        return;
    pthread_mutex_lock(&mutex);
    ops->detach(bar, channel);
    taken &= ~(1ull << channel);
    left |= 1ull << channel;
    pthread_mutex_unlock(&mutex);
}

void collx_bar_port_counts(struct collx_bar_counts *counts)
{
    pthread_mutex_lock(&mutex);
    ops->counts(bar, counts);
    pthread_mutex_unlock(&mutex);
}
