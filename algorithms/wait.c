#include "algorithms/wait.h"

#include "algorithms/missing.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* Rounds of yielding between two pokes at MPI's progress, which costs as much as a yield. */
    PROGRESS_EVERY = 4,
    /* With more ranks than CPUs a yield lets those run that we wait for, takes nothing from one
     * that works, and costs a tenth of sleeping and being woken.  A rank that sleeps leaves a CPU
     * to which the kernel moves one of the others; once it is woken three are on one CPU and one on
     * the other, and it takes tens of milliseconds until the kernel sees to that.  CP2K with four
     * ranks on two CPUs was like that for a fifth of its time, instead of a thirtieth, and 4 %
     * slower.  So it sleeps when it has waited for long; or, after this many yields, from when on
     * they are no use: there is nobody to yield to, or only processes that a launcher has put into
     * scheduling groups of their own, or one that has had more of the CPU than this one, which
     * Linux before 6.6 holds against it; or where CPU time is rationed. */
    YIELDS_CROWDED = 28,
    /* Polls, for each rank on this CPU, for such as are on others: 5 us of two.  There are as many
     * on those, which come to an end of what they do within a turn or two of each, and a yield to a
     * rank that waits for the same takes 2 to 5 us. */
    POLLS_A_RANK = 64,
    /* Polls between two looks whether that is still so, which disturb those who come. */
    LOOK_EVERY = 32,
    /* Who has a CPU never sleeps: others may get at this rank's memory, or take its long messages,
     * through MPI, which has to be called for each of their steps.  After this time of waiting it
     * does nothing else, and a rank of a crowd sleeps. */
    YIELD_US = 30000,
    /* Sleeping ends after this, woken or not, so that MPI keeps going. */
    SLEEP_US = 100,
};

int collx_pauses_per_poll(void)
{
    enum { TRIES = 5, PAUSES = 64, GAP_NS = 30, MOST = 8 };
    static atomic_int known;
    int pauses = atomic_load_explicit(&known, memory_order_relaxed);
    uint64_t least = UINT64_MAX;

    if (pauses)
        return pauses;
    for (int try = 0; try < TRIES; try++) {
        uint64_t begin = collx_clock_ns();
        for (int i = 0; i < PAUSES; i++)
            collx_pause();
        uint64_t took = collx_clock_ns() - begin;
        least = took < least ? took : least;
    }
    pauses = (int)((GAP_NS * PAUSES + least / 2) / (least ? least : 1));
    pauses = pauses < 1 ? 1 : pauses > MOST ? MOST : pauses;
    atomic_store_explicit(&known, pauses, memory_order_relaxed);
    return pauses;
}

static bool is_there(const struct collx_wait *wait, int i, uint64_t value)
{
    return wait->reached ? wait->reached(wait->with, i, value)
                         : collx_flag_reached(collx_wait_flag(wait, i), value);
}

static bool reached(const struct collx_wait *wait, uint64_t value, int *next)
{
    /* Flags only grow: those that have been seen to be there need no second look. */
    while (*next < wait->count && is_there(wait, *next, value))
        ++*next;
    return *next == wait->count;
}

/* Whether everybody waits for `rank`, as far as can be told here. */
static bool is_missing(const struct collx_wait *wait, int rank, uint64_t value)
{
    if (wait->missing)
        return wait->missing(wait->with, rank);
    if (wait->count == 1)
        return rank == wait->rank && !is_there(wait, 0, value);
    return rank < wait->count && !is_there(wait, rank, value);
}

static bool is_beside(const struct collx_team *team, int rank, int32_t here)
{
    int32_t seen = __atomic_load_n(&team->seen[rank], __ATOMIC_RELAXED);

    return rank != team->rank && (!seen || seen == here);
}

/* Whether of the ranks on this CPU others will wait for this one first, as far as can be told. */
static bool is_next_here(const struct collx_team *team, const struct collx_wait *wait, int32_t here)
{
    int rank = -1;

    for (int i = 1; wait->after && i < team->size; i++) {
        rank = wait->after(wait->with, i);
        if (rank < 0 || rank == team->rank || is_beside(team, rank, here))
            break;
    }
    return rank == team->rank;
}

/* How many ranks are on this CPU; 0, if it may be of use to those who are missing.  It is of none
 * where all of them were last seen on others, and whoever would get it could only wait for them,
 * too.  Not where nobody would get it: to yield then costs nothing, and polls disturb those who
 * come.  Nor where nobody is missing: then somebody has yet to pass on that all have come.  What is
 * a moment too old costs a moment, so relaxed is enough. */
static int count_idle(const struct collx_team *team, const struct collx_wait *wait, uint64_t value)
{
    const int32_t here = 1 + sched_getcpu();
    bool some = false;
    int ranks = 1;

    if (__atomic_load_n(&team->seen[team->rank], __ATOMIC_RELAXED) != here)
        __atomic_store_n(&team->seen[team->rank], here, __ATOMIC_RELAXED);
    const bool keeps = is_next_here(team, wait, here);
    for (int rank = 0; rank < team->size; rank++) {
        bool beside = is_beside(team, rank, here);
        ranks += beside;
        if (beside && !keeps && wait->behind && wait->behind(wait->with, rank))
            return 0;
        /* Of those elsewhere, one is enough. */
        if ((beside || !some) && is_missing(wait, rank, value)) {
            if (beside)
                return 0;
            some = true;
        }
    }
    return ranks > 1 && some ? ranks : 0;
}

/* What a rank of a crowd does before it yields: poll, as long as that holds up none of those who
 * are missing.  Returns whether all have come. */
static bool poll_elsewhere(const struct collx_team *team, const struct collx_wait *wait,
                           uint64_t value, int *next)
{
    int ranks = 1;

    if (!team->seen || wait->relayed)
        return false;
    for (int i = 0; i < POLLS_A_RANK * ranks; i++) {
        if (i % LOOK_EVERY == 0 && !(ranks = count_idle(team, wait, value)))
            return false;
        collx_poll_gap(team);
        if (reached(wait, value, next))
            return true;
    }
    return false;
}

/* The half of the flag that changes with every post: what the kernel compares before it lets a
 * waiter sleep. */
static uint32_t *futex_of(struct collx_flag *flag)
{
    return (uint32_t *)&flag->value + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/*   waiter                                poster
 *   1. count itself as a sleeper          a. post the flag
 *   2. look at the flag again             b. look whether anybody sleeps, and wake all
 *   3. sleep while it is as seen
 * 1 and b both read and write `sleepers`, so one comes first.  If 1 does, b sees a sleeper.  If b
 * does, 1 acquires what b releases, and 2 sees what was posted in a.  Either way no post goes
 * unnoticed; with a plain look in b, both sides could miss the other, and the waiter would sleep to
 * its limit. */
static void sleep_until_posted(struct collx_flag *flag, uint64_t value)
{
    const struct timespec limit = {.tv_nsec = SLEEP_US * 1000};

    atomic_fetch_add_explicit(&flag->sleepers, 1, memory_order_acq_rel); /* 1 */
    uint64_t seen = atomic_load_explicit(&flag->value, memory_order_relaxed);
    if (seen < value) /* 2, 3 */
        syscall(SYS_futex, futex_of(flag), FUTEX_WAIT, (uint32_t)seen, &limit, NULL, 0);
    atomic_fetch_sub_explicit(&flag->sleepers, 1, memory_order_relaxed);
}

void collx_flag_wake(struct collx_flag *flag)
{
    int keep = errno;

    if (atomic_fetch_add_explicit(&flag->sleepers, 0, memory_order_acq_rel)) /* b */
        syscall(SYS_futex, futex_of(flag), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = keep;
}

/* One rank speaks for all; whatever the order, it says what is true.  So it looks who is missing
 * before it claims to be the one. */
static void report(struct collx_team *team, const struct collx_wait *wait, uint64_t value,
                   uint64_t waited_ns)
{
    struct collx_missing missing = {.count = 0};

    for (int rank = 0; rank < team->size; rank++)
        if (is_missing(wait, rank, value))
            collx_missing_add(&missing, team, rank);
    team->stalled = missing.count;
    if (!missing.count ||
        (team->stall_said && __atomic_exchange_n(team->stall_said, 1, __ATOMIC_RELAXED)))
        return;
    collx_warn("rank %d of %s has waited %s in %s%s for %s%s%s. Have they stopped, or "
               "are they in another call%s? It goes on waiting (COLLX_STALL sets this time)",
               team->rank, team->name, collx_clock_text(waited_ns).text, team->ops->prefix,
               wait->what, wait->vague && missing.count > 1 ? "some of " : "",
               collx_missing_text(&missing), wait->relayed ? ", or others that these wait for" : "",
               team->ops->stall_advice);
}

/* Whether anybody else has had this CPU since the last time. */
static bool others_ran(long *switches)
{
    const long before = *switches;
    struct rusage usage = {.ru_nivcsw = before};

    getrusage(RUSAGE_THREAD, &usage);
    *switches = usage.ru_nivcsw;
    return *switches != before;
}

void collx_wait_long(struct collx_team *team, const struct collx_wait *wait, uint64_t value)
{
    struct collx_waited waited = {.ns = 0};
    bool settled = false; /* how it goes on, for the rest of this wait */
    long switches = -1;   /* at the first look some have been */
    int keep = errno;
    int next = 0;

    for (unsigned round = 1; !reached(wait, value, &next); round++) {
        if (wait->meanwhile)
            wait->meanwhile(wait->with);
        if (round % PROGRESS_EVERY == 0 || settled) {
            team->ops->progress(team->ctx);
            if (reached(wait, value, &next))
                break;
            /* The first look is a few yields late, but most waits are over by then. */
            uint64_t ns = collx_waited_look(&waited, collx_clock_ns());
            settled = settled || ns > YIELD_US * 1000 ||
                      (team->crowded && round >= YIELDS_CROWDED &&
                       (team->rationed || !others_ran(&switches)));
            if (team->stall_ms && !team->stalled && ns / 1000000 > (uint64_t)team->stall_ms)
                report(team, wait, value, ns);
        }
        if (!settled || !team->crowded) {
            if (!poll_elsewhere(team, wait, value, &next))
                sched_yield();
        } else if (!wait->reached) {
            sleep_until_posted(collx_wait_flag(wait, next), value);
        } else {
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_US * 1000}, NULL);
        }
    }
    errno = keep;
}
