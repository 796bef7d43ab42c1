#include "hw/budget.h"

#include "hw/cgroups.h"
#include "hw/shm.h"

#include <errno.h>
#include <stdbool.h>

/* The part of a cgroup's memory that is for us is one in so many. */
enum { CGROUP_PARTS = 8 };

size_t collx_budget_part(size_t size, int members)
{
    const size_t all = (size_t)members;

    return (collx_page_up(size) + all - 1) / all;
}

static void look(struct collx_cgroups *at, enum collx_cgroup_version version, void *with)
{
    const char *file = version == COLLX_CGROUP_V2 ? "memory.max" : "memory.limit_in_bytes";
    int64_t *most = with, bytes;

    /* "max", or -1 or more than anybody has: no limit. */
    if (collx_cgroup_numbers(at, file, &bytes, NULL) && bytes >= 0 && bytes / CGROUP_PARTS < *most)
        *most = bytes / CGROUP_PARTS;
}

int64_t collx_budget_allowed(const char *root, int64_t most)
{
    collx_cgroups_walk(root, 0, "memory", look, &most);
    return most;
}

int collx_budget_take(struct collx_budget *budget, size_t bytes, size_t share)
{
    /* Relaxed, here and below: a number that orders nothing else. */
    size_t taken = __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);

    do {
        if (taken > share || bytes > share - taken)
            return -EDQUOT;
    } while (!__atomic_compare_exchange_n(&budget->taken, &taken, taken + bytes, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 0;
}

void collx_budget_give(struct collx_budget *budget, size_t bytes)
{
    __atomic_fetch_sub(&budget->taken, bytes, __ATOMIC_RELAXED);
}

size_t collx_budget_taken(const struct collx_budget *budget)
{
    return __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);
}
