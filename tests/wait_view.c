#include "tests/wait_view.h"

#include "algorithms/wait.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local int yields;

/* The C library's, counted. */
int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

struct looks {
    int count;
    unsigned missing;
};

static bool reached(const void *with, int i, uint64_t value)
{
    struct looks *looks = (struct looks *)(uintptr_t)with;

    (void)i, (void)value;
    looks->count += !yields;
    return yields;
}

static bool is_missing(const void *with, int rank)
{
    const struct looks *looks = with;

    return looks->missing >> rank & 1;
}

int wait_looks(struct collx_team *team, unsigned missing, bool relayed)
{
    struct looks looks = {.missing = missing};

    yields = 0;
    collx_wait_long(team,
                    &(struct collx_wait){.count = 1,
                                         .what = "Test",
                                         .reached = reached,
                                         .missing = is_missing,
                                         .relayed = relayed,
                                         .with = &looks},
                    1);
    return looks.count;
}
