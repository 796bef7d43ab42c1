/* Waiting for flags in shared memory.
 *
 * A flag is a number that only grows: its writer stores the number of the round it has reached,
 * a waiter waits until it is at least the number of its own.  So nobody ever resets a flag, and a
 * fast rank may be a round ahead of a slow one that still looks at the last.
 *
 * Most waits end within the spins below.  Those that do not go to collx_wait_long, which yields the
 * CPU, keeps MPI going, sleeps (never without a limit) when nothing happens for long, and says once
 * who is missing.
 */
#ifndef COLLX_WAIT_H
#define COLLX_WAIT_H

#include "base/algorithm.h"
#include "hw/shm.h"

#include <stdatomic.h>

/* Alone on its line: whoever polls it must not be disturbed by other writers. */
struct collx_flag {
    _Alignas(COLLX_LINE) _Atomic uint64_t value;
};
_Static_assert(sizeof(struct collx_flag) == COLLX_LINE, "an array of flags has one a line");

static inline void collx_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* `flag` has reached `value`.  Acquire: what its writer stored before its release of the flag
 * (collx_flag_post) is seen by what follows; without it a payload could be read too early. */
static inline bool collx_flag_reached(const _Atomic uint64_t *flag, uint64_t value)
{
    return atomic_load_explicit(flag, memory_order_acquire) >= value;
}

/* Release: pairs with the acquire in collx_flag_reached.  Without it the flag could be seen before
 * the payload that it announces, or before our reads of what the next round overwrites. */
static inline void collx_flag_post(_Atomic uint64_t *flag, uint64_t value)
{
    atomic_store_explicit(flag, value, memory_order_release);
}

/* Flags to wait for: `count` of them, `stride` bytes apart, belonging to ranks 0, 1, … of the team
 * or, where count is 1, to `rank`. */
struct collx_wait {
    const _Atomic uint64_t *flag;
    size_t stride;
    int count, rank;
    const char *what; /* for the message: "Barrier" */
};

/* Wait until all have reached `value`, however long it takes. */
void collx_wait_long(struct collx_team *team, const struct collx_wait *wait, uint64_t value);

/* Wait for one flag, of team rank `rank`. */
static inline void collx_wait_for(struct collx_team *team, const _Atomic uint64_t *flag,
                                  uint64_t value, int rank, const char *what)
{
    for (int spin = team->spins; spin >= 0; spin--) {
        if (__builtin_expect(collx_flag_reached(flag, value), 1))
            return;
        collx_pause();
    }
    collx_wait_long(team, &(struct collx_wait){flag, 0, 1, rank, what}, value);
}

/* Wait for the flags of all ranks, `stride` bytes apart. */
static inline void collx_wait_all(struct collx_team *team, const _Atomic uint64_t *flags,
                                  size_t stride, uint64_t value, const char *what)
{
    const char *flag = (const char *)flags;

    for (int rank = 0; rank < team->size; rank++, flag += stride) {
        int spin = team->spins;
        while (!collx_flag_reached((const _Atomic uint64_t *)flag, value)) {
            if (--spin < 0) {
                collx_wait_long(team, &(struct collx_wait){flags, stride, team->size, 0, what},
                                value);
                return;
            }
            collx_pause();
        }
    }
}

#endif
