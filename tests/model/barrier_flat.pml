/* Barrier of a few ranks: run_pair and run_flat of algorithms/barrier_shm.c.
 *
 * Nobody leaves before all have entered, and what each did before it entered has happened before
 * what anybody does afterwards.
 *
 * ok: RANKS=2 CALLS=4
 * ok: RANKS=3 CALLS=3
 * ok: RANKS=4 CALLS=3
 * fails: assertion: RANKS=3 CALLS=2 RELAXED_POST
 * fails: assertion: RANKS=3 CALLS=2 RELAXED_WAIT
 * fails: assertion: RANKS=3 CALLS=2 NOT_ALL       the last rank is not waited for
 * fails: deadlock: RANKS=3 CALLS=2 EXACTLY        a flag that has gone further does not count
 * fails: deadlock: RANKS=3 CALLS=2 BOOLEAN        flags of one bit
 */
#define FLAGS RANKS
#define MOST CALLS
#include "flags.pml"

#if defined EXACTLY
#define there(rank) (flags[rank] == round)
#elif defined BOOLEAN
#define there(rank) (flags[rank] % 2 == round % 2)
#else
#define there(rank) reached(rank, round)
#endif
#ifdef NOT_ALL
#define OTHERS (RANKS - 1)
#else
#define OTHERS RANKS
#endif

active [RANKS] proctype rank()
{
    byte round, other, k;

    do
    :: round < CALLS ->
        round++;
        knows[_pid].written[_pid] = round; /* entered */
        post(_pid, _pid, round);
        other = 0;
        do
        :: other < OTHERS ->
            if
            :: other == _pid
            :: other != _pid && there(other) -> wait_for(_pid, other, round)
            fi;
            other++
        :: else -> break
        od;
        all_written(_pid, round)
    :: else -> break
    od
}
