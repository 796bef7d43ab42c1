#include "hw/budget.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

size_t collx_budget_part(size_t size, int members)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = (size_t)members;

    return ((size + page - 1) / page * page + all - 1) / all;
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
