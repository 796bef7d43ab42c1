/* All tell all something, in two slots in turn: Allreduce of small vectors (run_small of
 * algorithms/allreduce_shm.c), which reads each slot when its flag is there, and algorithms/meet.h
 * (MEET), which waits for all flags first, and what has been told may be read until the next round.
 *
 * LINED: what is told in a round goes on in a numbered line beside that of the flag, or does not, as
 * Spin likes (algorithms/numbered.h).
 *
 * Of two ranks, each returns what it has read of the other's.
 *
 * What is read is what was told in this round, and nobody overwrites what may still be read or
 * returned.
 *
 * ok: RANKS=2 CALLS=6
 * ok: RANKS=3 CALLS=4
 * ok: RANKS=4 CALLS=3
 * ok: RANKS=2 CALLS=6 LINED
 * ok: RANKS=3 CALLS=3 LINED
 * ok: RANKS=2 CALLS=6 MEET
 * ok: RANKS=3 CALLS=4 MEET
 * ok: RANKS=4 CALLS=3 MEET
 * fails: assertion: RANKS=2 CALLS=3 RELAXED_POST
 * fails: assertion: RANKS=2 CALLS=3 RELAXED_WAIT
 * fails: assertion: RANKS=2 CALLS=3 ONE_SLOT
 * fails: assertion: RANKS=3 CALLS=3 ONE_SLOT MEET
 * fails: assertion: RANKS=2 CALLS=3 POST_FIRST    the flag is posted before the data is there
 * fails: assertion: RANKS=3 CALLS=3 NOT_ALL       the last rank is not waited for
 * fails: assertion: RANKS=3 CALLS=4 BOOLEAN       flags tell that a slot is full, not of which round
 * fails: assertion: RANKS=2 CALLS=4 RETURN_LATE   what has been read is returned in the next round
 * fails: assertion: RANKS=2 CALLS=3 LINED ONE_SLOT
 * fails: assertion: RANKS=2 CALLS=2 LINED FLAG_ALONE    nobody looks at the line's number
 * fails: assertion: RANKS=2 CALLS=2 LINED LINE_FIRST    the line is numbered before its data is there
 */
#ifdef ONE_SLOT
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
#define slot(rank) ((rank) * SLOTS + round % SLOTS)
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
    /* What was in this slot nobody reads any more. */
    if
    :: round > SLOTS -> all_seen(_pid, 0, round - SLOTS)
    :: else
    fi;
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
        if
        :: round > SLOTS -> all_seen(_pid, 1, round - SLOTS)
        :: else
        fi;
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
    assert(knows[_pid].written[rank] >= round && data[slot(rank)] == round)
}

active [RANKS] proctype rank()
{
    byte round, other, k;

    do
    :: round < CALLS ->
        round++;
        tell();
#ifdef RETURN_LATE
        if
        :: round > 1 -> give_back(data[(1 - _pid) * SLOTS + (round - 1) % SLOTS])
        :: else
        fi;
#endif
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
#if RANKS == 2 && !defined RETURN_LATE
        give_back(data[slot(1 - _pid)]);
#endif
#ifdef LINED
        knows[_pid].seen[RANKS + _pid] = round;
#endif
        knows[_pid].seen[_pid] = round
    :: else -> break
    od
}
