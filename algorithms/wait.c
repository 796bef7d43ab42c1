#include "algorithms/wait.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

enum {
    /* Rounds of yielding between two pokes at MPI's progress, which costs as much as a yield. */
    PROGRESS_EVERY = 4,
    /* Yielding that has led to nothing for this long turns into sleeping: whoever we wait for is
     * not about to come, or waits for a CPU that yielding does not give it. */
    SLEEP_AFTER_US = 2000,
    SLEEP_AFTER_US_CROWDED = 200,
    /* Short enough not to show beside a wait that long, and to keep MPI going. */
    SLEEP_US = 50,
};

static bool reached(const struct collx_wait *wait, uint64_t value, int *next)
{
    /* Flags only grow: those that have been seen to be there need no second look. */
    for (; *next < wait->count; ++*next) {
        const char *flag = (const char *)wait->flag + (size_t)*next * wait->stride;
        if (!collx_flag_reached((const _Atomic uint64_t *)flag, value))
            return false;
    }
    return true;
}

static void report(struct collx_team *team, const struct collx_wait *wait, uint64_t value,
                   uint64_t waited_ns)
{
    char who[256];
    int length = 0, missing = 0;

    for (int i = 0; i < wait->count; i++) {
        const char *flag = (const char *)wait->flag + (size_t)i * wait->stride;
        if (collx_flag_reached((const _Atomic uint64_t *)flag, value))
            continue;
        if (missing++ < 16 && length < (int)sizeof who - 16)
            length += snprintf(who + length, sizeof who - (size_t)length, " %d",
                               wait->count == 1 ? wait->rank : i);
    }
    if (!missing)
        return;
    collx_warn("rank %d of %s has waited %.0f s in MPI_%s for rank%s%s%s. Have they stopped, or "
               "are they in another call? It goes on waiting (COLLX_STALL sets this time)",
               team->rank, team->name, (double)waited_ns / 1e9, wait->what, missing == 1 ? "" : "s",
               who, missing > 16 ? " and others" : "");
}

void collx_wait_long(struct collx_team *team, const struct collx_wait *wait, uint64_t value)
{
    const uint64_t begin = collx_clock_ns();
    const uint64_t patience = team->crowded ? SLEEP_AFTER_US_CROWDED : SLEEP_AFTER_US;
    bool sleepy = false;
    int keep = errno;
    int next = 0;

    for (unsigned round = 1; !reached(wait, value, &next); round++) {
        if (round % PROGRESS_EVERY == 0 || sleepy) {
            team->ops->progress(team->ctx);
            if (reached(wait, value, &next))
                break;
            uint64_t waited = collx_clock_ns() - begin;
            sleepy = waited > patience * 1000;
            if (team->stall_ms && !team->stalled && waited / 1000000 > (uint64_t)team->stall_ms) {
                team->stalled = true;
                report(team, wait, value, waited);
            }
        }
        if (sleepy)
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_US * 1000}, NULL);
        else
            sched_yield();
    }
    errno = keep;
}
