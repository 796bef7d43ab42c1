#include "tests/wait_view.h"

#include "algorithms/wait.h"
#include "base/clock.h"

#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NAPS = 10 };
static _Thread_local int yields, sleeps;
static _Thread_local int awake;       /* of the yields, those before the first sleep */
static _Thread_local uint64_t asleep; /* since when, by the clock */

/* The C library's, counted. */
int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!sleeps++) {
        awake = yields;
        asleep = collx_clock_ns();
    }
    return (int)syscall(SYS_nanosleep, time, left);
}

struct looks {
    int count; /* before the first yield */
    int come;  /* 0: at the first yield */
    unsigned missing, behind;
    const int *after; /* [3]; NULL: nobody knows */
    uint64_t until;   /* by the clock; 0: it is not asked */
};

static bool reached(const void *with, int i, uint64_t value)
{
    struct looks *looks = (struct looks *)(uintptr_t)with;

    (void)i, (void)value;
    if (looks->until)
        return sleeps == NAPS || collx_clock_ns() >= looks->until;
    looks->count += !yields;
    return looks->come ? looks->count >= looks->come : yields > 0;
}

static bool is_missing(const void *with, int rank)
{
    const struct looks *looks = with;

    return looks->missing >> rank & 1;
}

static bool is_behind(const void *with, int rank)
{
    const struct looks *looks = with;

    return looks->behind >> rank & 1;
}

static int after(const void *with, int i)
{
    const struct looks *looks = with;

    return looks->after[i - 1];
}

static void wait_for(struct collx_team *team, struct looks *looks, bool relayed)
{
    yields = sleeps = 0;
    collx_wait_long(team,
                    &(struct collx_wait){.count = 1,
                                         .what = "Test",
                                         .reached = reached,
                                         .missing = is_missing,
                                         .behind = looks->behind ? is_behind : NULL,
                                         .after = looks->after ? after : NULL,
                                         .relayed = relayed,
                                         .with = looks},
                    1);
}

int wait_looks(struct collx_team *team, unsigned missing, unsigned behind, const int after_it[3],
               bool relayed)
{
    struct looks looks = {.missing = missing, .behind = behind, .after = after_it};

    wait_for(team, &looks, relayed);
    return looks.count;
}

int wait_yields(struct collx_team *team, unsigned missing, int come)
{
    struct looks looks = {.missing = missing, .come = come};

    wait_for(team, &looks, false);
    return yields;
}

int wait_sleeps(struct collx_team *team, int ms)
{
    struct looks looks = {.until = collx_clock_ns() + (uint64_t)ms * 1000000};

    wait_for(team, &looks, false);
    return sleeps;
}

int wait_yields_awake(struct collx_team *team, int *ms)
{
    uint64_t begin = collx_clock_ns();

    *ms = INT_MAX;
    if (!wait_sleeps(team, 10000))
        return INT_MAX;
    *ms = (int)((asleep - begin) / 1000000);
    return awake;
}

int wait_yields_between(struct collx_team *team)
{
    return wait_sleeps(team, 10000) == NAPS ? yields - awake : INT_MAX;
}
