/* Barrier of a few ranks: run_pair and run_flat of algorithms/barrier/barrier_shm.c.
 *
 * Nobody leaves before all have entered, and what each did before it entered has happened before
 * what anybody does afterwards.  Nobody still looks at a flag when its rank claims it.
 *
 * ok: RANKS=2 CALLS=4
 * ok: RANKS=3 CALLS=3
 * ok: RANKS=4 CALLS=3
 * fails: assertion: RANKS=3 CALLS=2 RELAXED_POST
 * fails: assertion: RANKS=3 CALLS=2 RELAXED_WAIT
 * fails: assertion: RANKS=3 CALLS=2 NOT_ALL       the last rank is not waited for
 * fails: assertion: RANKS=3 CALLS=2 ONE_FLAG      others look at it for this round
 * fails: assertion: RANKS=3 CALLS=3 BOOLEAN       flags tell that their rank came, not to which round
 */
#ifdef ONE_FLAG
#define flag_of(rank) (rank)
#define FLAGS RANKS
#else
#define flag_of(rank) ((rank) * 2 + round % 2)
#define FLAGS (RANKS * 2)
#endif
#define MOST CALLS
#include "flags.pml"

inline look(other)
{
#ifdef BOOLEAN
    d_step {
        flags[flag_of(other)] > 0 ->
        take_over(_pid, flag_of(other), flags[flag_of(other)])
    }
#else
    wait_for(_pid, flag_of(other), round)
#endif
}

/* The round for which others may have looked last at the flag that is claimed. */
#ifdef ONE_FLAG
#define claimed round
#else
#define claimed (round - 1)
#endif
#ifdef NOT_ALL
#define OTHERS (RANKS - 1)
#else
#define OTHERS RANKS
#endif

byte left[RANKS]; /* the last round that each has done with looking */

active [RANKS] proctype rank()
{
    byte round, other, k;

    do
    :: round < CALLS ->
        round++;
        knows[_pid].written[_pid] = round; /* entered */
        post(_pid, flag_of(_pid), round); /* 1 */
        other = 0;
        do /* 2 */
        :: other < OTHERS ->
            if
            :: other == _pid
            :: other != _pid -> look(other)
            fi;
            other++
        :: else -> break
        od;
        all_written(_pid, round);
        left[_pid] = round;
        other = 0;
        do /* 3: its flag of the next round, which was that of the last */
        :: other < RANKS ->
            assert(other == _pid || left[other] >= claimed);
            other++
        :: else -> break
        od
    :: else -> break
    od
}
