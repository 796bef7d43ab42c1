#include "hw/segment.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

const struct collx_seg_ops *collx_seg_find(const char *name)
{
    const struct collx_seg_ops *const *driver = collx_seg_drivers;

    while (*driver && strcmp((*driver)->name, name) != 0)
        driver++;
    return *driver;
}

int collx_seg_connect(const struct collx_seg_ops *ops, struct collx_net *net,
                      const struct collx_seg_address *address, size_t bytes,
                      struct collx_remote **remote, int64_t patience_ms, void (*idle)(void *),
                      void *context, char *why, size_t size)
{
    uint64_t start = collx_clock_ns(), patience = (uint64_t)patience_ms * 1000000u;
    int error;

    while ((error = ops->connect(net, address, bytes, remote, why, size)) == -EAGAIN) {
        if (collx_clock_ns() - start >= patience)
            return -ETIMEDOUT;
        if (idle)
            idle(context);
        /* Who is to make it may be waiting for this CPU. */
        sched_yield();
    }
    return error;
}

int collx_seg_deliver(const struct collx_seg_ops *ops, struct collx_net *net,
                      struct collx_remote *const *remotes, unsigned count, uint8_t *state,
                      void (*store)(void *context, unsigned i), void (*idle)(void *context),
                      void *context)
{
    int missing;

    for (unsigned i = 0; i < count; i++)
        store(context, i);
    while ((missing = ops->check(net, remotes, count, state)) > 0) {
        if (idle)
            idle(context);
        for (unsigned i = 0; i < count; i++)
            if (state[i] == COLLX_SEG_LOST)
                store(context, i);
    }
    return missing;
}
