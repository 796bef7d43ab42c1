/* All tell all something, in two slots in turn: Allreduce of small vectors (run_small of
 * algorithms/allreduce/allreduce_shm.c), which reads each slot when its flag is there, and
 * algorithms/within/meet.h (MEET), which waits for all flags first, and what has been told may be
 * read until the next round. SWAPPED: two ranks have two slots together, and swap them after each
 * round.
 *
 * LINED: what is told in a round goes on in a numbered line beside that of the flag, or does not, as
 * Spin likes (algorithms/within/numbered.h).
 *
 * What is read is what was told in this round, and nobody overwrites what may still be read.
 *
 * ok: RANKS=2 CALLS=6 SWAPPED
 * ok: RANKS=3 CALLS=4
 * ok: RANKS=4 CALLS=3
 * ok: RANKS=2 CALLS=6 SWAPPED LINED
 * ok: RANKS=3 CALLS=3 LINED
 * ok: RANKS=2 CALLS=6 MEET
 * ok: RANKS=3 CALLS=4 MEET
 * ok: RANKS=4 CALLS=3 MEET
 * fails: assertion: RANKS=2 CALLS=3 RELAXED_POST
 * fails: assertion: RANKS=2 CALLS=3 RELAXED_WAIT
 * fails: assertion: RANKS=2 CALLS=3 SWAPPED RELAXED_POST
 * fails: assertion: RANKS=2 CALLS=3 SWAPPED RELAXED_WAIT
 * fails: assertion: RANKS=2 CALLS=3 ONE_SLOT
 * fails: assertion: RANKS=3 CALLS=3 ONE_SLOT MEET
 * fails: assertion: RANKS=2 CALLS=3 SWAPPED OWN_SHARE   a rank reads what it has told itself
 * fails: assertion: RANKS=2 CALLS=3 SWAPPED MEET        likewise, and as late as in the next round
 * fails: assertion: RANKS=2 CALLS=3 POST_FIRST    the flag is posted before the data is there
 * fails: assertion: RANKS=3 CALLS=3 NOT_ALL       the last rank is not waited for
 * fails: assertion: RANKS=3 CALLS=4 BOOLEAN       flags tell that a slot is full, not of which round
 * fails: assertion: RANKS=2 CALLS=3 LINED ONE_SLOT
 * fails: assertion: RANKS=2 CALLS=2 LINED FLAG_ALONE    nobody looks at the line's number
 * fails: assertion: RANKS=2 CALLS=2 LINED LINE_FIRST    the line is numbered before its data is there
 */
#if defined ONE_SLOT || defined SWAPPED
#define SLOTS 1
#else
#define SLOTS 2
#endif
/* A flag in each slot, which tells of every other round alone, and the number of its line. */
#define SHARES (RANKS * SLOTS)
#define MOST CALLS
#ifdef LINED
#define FLAGS (2 * SHARES)
#define KINDS 2
byte lined[CALLS + 1]; /* 1: no, 2: yes, 0: nobody has said yet */
byte line[SHARES];
#else
#define FLAGS SHARES
#endif
#include "flags.pml"

byte data[SHARES];
#define TORN 255
#ifdef SWAPPED
#define slot(rank) ((rank + round) % 2)
/* What is overwritten is of the round before; the other one told it, and this rank alone reads it. */
#define free_to_write(kind) assert(knows[_pid].seen[kind * RANKS + _pid] >= round - 1)
#else
#define slot(rank) ((rank) * SLOTS + round % SLOTS)
#define free_to_write(kind) \
    if \
    :: round > SLOTS -> all_seen(_pid, kind, round - SLOTS) \
    :: else \
    fi
#endif
#if defined SWAPPED && !defined OWN_SHARE && !defined MEET
#define is_read(rank) (rank != _pid)
#else
#define is_read(rank) true
#endif
#define number(rank) (SHARES + slot(rank))
#ifdef NOT_ALL
#define TOLD (RANKS - 1)
#else
#define TOLD RANKS
#endif
#ifdef BOOLEAN
#define since 1
#else
#define since round
#endif

inline tell()
{
#ifdef POST_FIRST
    post(_pid, slot(_pid), round);
#endif
    free_to_write(0); /* nobody reads what was in this slot any more */
    data[slot(_pid)] = TORN;
    d_step {
        data[slot(_pid)] = round;
        knows[_pid].written[_pid] = round
    }
#ifndef POST_FIRST
    post(_pid, slot(_pid), round)
#endif
}

inline choose()
{
    atomic {
        if
        :: lined[round] == 0 -> lined[round] = 1
        :: lined[round] == 0 -> lined[round] = 2
        :: else
        fi
    }
}

inline tell_line()
{
    if
    :: lined[round] == 2 ->
#ifdef LINE_FIRST
        post(_pid, number(_pid), round);
#endif
        free_to_write(1);
        line[slot(_pid)] = TORN;
        d_step {
            line[slot(_pid)] = round;
            knows[_pid].written[RANKS + _pid] = round
        }
#ifndef LINE_FIRST
        post(_pid, number(_pid), round)
#endif
    :: else
    fi
}

inline use_line(rank)
{
    if
    :: lined[round] == 2 && rank != _pid ->
#ifndef FLAG_ALONE
        wait_for(_pid, number(rank), round);
#endif
        assert(knows[_pid].written[RANKS + rank] >= round && line[slot(rank)] == round)
    :: else
    fi
}

inline listen(rank)
{
    if
    :: rank == _pid || rank >= TOLD
    :: else -> wait_for(_pid, slot(rank), since)
    fi
}

inline use(rank)
{
    assert(!is_read(rank) || (knows[_pid].written[rank] >= round && data[slot(rank)] == round))
}

active [RANKS] proctype rank()
{
    byte round, other, k;

    do
    :: round < CALLS ->
        round++;
        tell();
#ifdef LINED
        choose();
        tell_line();
#endif
        other = 0;
        do
        :: other < RANKS ->
            listen(other);
#ifndef MEET
            use(other);
#endif
#ifdef LINED
            use_line(other);
#endif
            other++
        :: else -> break
        od;
#ifdef MEET
        other = 0;
        do
        :: other < RANKS -> use(other); other++
        :: else -> break
        od;
#endif
#ifdef LINED
        knows[_pid].seen[RANKS + _pid] = round;
#endif
        knows[_pid].seen[_pid] = round
    :: else -> break
    od
}
