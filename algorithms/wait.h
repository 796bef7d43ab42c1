/* Waiting for flags in shared memory.
 *
 * A flag is a number that only grows: its writer stores the number of the round it has reached,
 * a waiter waits until it is at least the number of its own.  So nobody ever resets a flag, and a
 * fast rank may be a round ahead of a slow one that still looks at the last.
 *
 * Most waits end within the spins below.  Those that do not go to collx_wait_long, which yields the
 * CPU, keeps MPI going, sleeps when nothing happens for long (never without a limit), and says once
 * who is missing.
 */
#ifndef COLLX_WAIT_H
#define COLLX_WAIT_H

#include "base/algorithm.h"
#include "hw/shm.h"

#include <stdatomic.h>

/* Room for a small payload beside a flag: both travel in one line, in one trip. */
enum { COLLX_INLINE = 52 };

/* A flag has one writer at a time, which knows its last value (or several that count on it), and
 * nobody else writes to its line: whoever polls it must not be disturbed. */
struct collx_flag {
    _Alignas(COLLX_LINE) _Atomic uint64_t value;
    unsigned char payload[COLLX_INLINE];
    _Atomic uint32_t claimed; /* nobody acts on it: collx_flag_claim() */
    /* Waiters that sleep until the flag is posted; only where there are more ranks than CPUs. */
    _Atomic uint32_t sleepers;
};
_Static_assert(offsetof(struct collx_flag, sleepers) == 64,
               "a flag, its payload and what claims them are in one cache line");
_Static_assert(sizeof(struct collx_flag) == COLLX_LINE, "an array of flags has one a line");

/* Claim a line (algorithms/within/copy.h), by a store to a word in it that nobody acts on.  That
 * takes it in whatever state it is.  A prefetch for writing does nothing where the CPU has fetched
 * the line by itself, for reading, as it does with lines that are used one after the other; and a
 * flag that is not claimed costs a trip that nothing else hides: a Bcast of 8 bytes takes 0.17 us
 * instead of 0.29 between CPUs far apart. */
static inline void collx_flag_claim(_Atomic uint32_t *claimed)
{
    /* Relaxed: nothing depends on it, nor on who else stores there. */
    atomic_store_explicit(claimed, 1, memory_order_relaxed);
}

static inline void collx_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* How many of these to make between two polls.  A poll that meets the line on its way to the writer
 * takes it back from there, and costs a whole round trip more; one that comes much later than the
 * line wastes what it comes later.  30 ns are a third of a trip; what a pause takes is between 10
 * and 140 cycles, so it is measured, once. */
int collx_pauses_per_poll(void);

static inline void collx_poll_gap(const struct collx_team *team)
{
    for (int i = 0; i < team->pauses; i++)
        collx_pause();
}

/* A number that another rank posts has reached `least`.  Acquire: what its writer stored before its
 * release of the number is seen by what follows; without it a payload could be read too early. */
static inline bool collx_number_reached(const _Atomic uint64_t *number, uint64_t least)
{
#if defined(__aarch64__)
    /* There an acquiring load waits until this rank's own releases before it are out, of which most
     * waits follow one.  A fence behind the last load does not. */
    if (atomic_load_explicit(number, memory_order_relaxed) < least)
        return false;
    atomic_thread_fence(memory_order_acquire);
    return true;
#else
    return atomic_load_explicit(number, memory_order_acquire) >= least;
#endif
}

/* Its partner is collx_flag_post. */
static inline bool collx_flag_reached(const struct collx_flag *flag, uint64_t value)
{
    return collx_number_reached(&flag->value, value);
}

/* Wake those who sleep until this flag is posted. */
void collx_flag_wake(struct collx_flag *flag);

/* Release: pairs with the acquire in collx_flag_reached.  Without it the flag could be seen before
 * the payload that it announces, or before our reads of what the next round overwrites. */
static inline void collx_flag_post(const struct collx_team *team, struct collx_flag *flag,
                                   uint64_t value)
{
    atomic_store_explicit(&flag->value, value, memory_order_release);
    if (__builtin_expect(team->crowded, 0))
        collx_flag_wake(flag);
}

/* One more, on a flag that several count on, without knowing its last value.  Release: likewise;
 * who sees a number sees what all have stored who counted up to it. */
static inline void collx_flag_count(const struct collx_team *team, struct collx_flag *flag)
{
    atomic_fetch_add_explicit(&flag->value, 1, memory_order_release);
    if (__builtin_expect(team->crowded, 0))
        collx_flag_wake(flag);
}

/* Flags to wait for: `count` of them, `stride` bytes apart, belonging to ranks 0, 1, … of the team
 * or, where count is 1, to `rank`. */
struct collx_wait {
    struct collx_flag *flag;
    size_t stride;
    int count, rank;
    const char *what; /* for the message: "Barrier" */
    /* Called again and again during a long wait, with `with`: what others may want of us.  NULL:
     * nothing. */
    void (*meanwhile)(void *with);
    /* Called with `with`: whether number `i` of what is waited for is there, which may be anything
     * then; flag and stride do not count.  Nobody is woken by it, who waits long looks again and
     * again.  NULL: flags. */
    bool (*reached)(const void *with, int i, uint64_t value);
    /* For the message, called with `with`: whether this rank of the team is one that everybody
     * waits for.  NULL: those are whose flags have not been posted. */
    bool (*missing)(const void *with, int rank);
    /* Called with `with`: whether this rank, for which nobody waits, could get on with something
     * else if it had our CPU.  NULL: no rank could. */
    bool (*behind)(const void *with, int rank);
    /* Called with `with`: the rank of the team that will be waited for `i` waits after this one, as
     * far as can be told; < 0: nobody knows.  Whoever is the first of those on our CPU does not
     * give it to such as are behind.  NULL: nobody knows. */
    int (*after)(const void *with, int i);
    /* Those who are missing may themselves wait for others, which only they know. */
    bool relayed;
    /* Not all of those need be missing: it cannot be told which. */
    bool vague;
    void *with;
};

static inline struct collx_flag *collx_wait_flag(const struct collx_wait *wait, int i)
{
    return (struct collx_flag *)((char *)wait->flag + (size_t)i * wait->stride);
}

/* Wait until all have reached `value`, however long it takes. */
void collx_wait_long(struct collx_team *team, const struct collx_wait *wait, uint64_t value);

/* Poll one flag, as long as is good where every rank has a CPU.  Whether it was posted. */
static inline bool collx_spin_for(const struct collx_team *team, const struct collx_flag *flag,
                                  uint64_t value)
{
    for (int spin = team->spins; spin >= 0; spin--) {
        if (__builtin_expect(collx_flag_reached(flag, value), 1))
            return true;
        collx_poll_gap(team);
    }
    return false;
}

/* Wait for one flag, of team rank `rank`. */
static inline void collx_wait_for(struct collx_team *team, struct collx_flag *flag, uint64_t value,
                                  int rank, const char *what)
{
    if (__builtin_expect(!collx_spin_for(team, flag, value), 0))
        collx_wait_long(team,
                        &(struct collx_wait){.flag = flag, .count = 1, .rank = rank, .what = what},
                        value);
}

/* Wait for the flags of all other ranks, `stride` bytes apart.  Our own has to be posted by then: a
 * long wait looks at it, too.  A short one does not, for that would be to wait until the post has
 * got through to the line: a whole trip more. */
static inline void collx_wait_others(struct collx_team *team, struct collx_flag *flags,
                                     size_t stride, uint64_t value, const char *what)
{
    const struct collx_wait wait = {
        .flag = flags, .stride = stride, .count = team->size, .what = what};

    for (int rank = 0; rank < team->size; rank++) {
        int spin = team->spins;
        if (rank == team->rank)
            continue;
        while (!collx_flag_reached(collx_wait_flag(&wait, rank), value)) {
            if (--spin < 0) {
                collx_wait_long(team, &wait, value);
                return;
            }
            collx_poll_gap(team);
        }
    }
}

#endif
