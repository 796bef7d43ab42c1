/* Bcast in one copy: algorithms/bcast_single.c, steps 1 to 3 and a to c as there, with the letters
 * of algorithms/single.c.  Each call has any root, which helps or does not; all agree on both.
 *
 * Everybody has the message when it leaves, of this call; and nobody touches a rank's buffer
 * when it has left.  The root may stop helping at any time.
 *
 * ok: RANKS=2 CALLS=2 CHUNKS=2
 * ok: RANKS=2 CALLS=3 CHUNKS=1
 * ok: RANKS=3 CALLS=1 CHUNKS=1
 * ok: RANKS=3 CALLS=2 CHUNKS=1 NO_LETTERS
 * fails: deadlock: RANKS=2 CALLS=1 CHUNKS=1 NO_ANSWER
 * fails: assertion: RANKS=3 CALLS=2 CHUNKS=1 NO_OWNER
 * fails: deadlock: RANKS=2 CALLS=3 CHUNKS=2 NUMBER_WRAPS
 * fails: assertion: RANKS=2 CALLS=2 CHUNKS=1 ANSWER_FIRST
 * fails: deadlock: RANKS=2 CALLS=2 CHUNKS=2 NO_CALL_IN_SHARE  `share` begins anew with each call
 * fails: assertion: RANKS=2 CALLS=1 CHUNKS=2 NO_WAIT_PUSHED    3 does not wait for the root's part
 * fails: assertion: RANKS=2 CALLS=1 CHUNKS=2 NOT_GIVEN_BACK    what the root could not write is lost
 * fails: deadlock: RANKS=2 CALLS=1 CHUNKS=1 NO_WAIT_STEPS      c is left out
 * fails: assertion: RANKS=2 CALLS=2 CHUNKS=1 NO_WAIT_OPEN      2 does not wait for the root's buffer
 */
#define SCRIBBLE 255
byte buffer[RANKS * CHUNKS];
#define mine(what) buffer[me * CHUNKS + what]
#define theirs(rank, what) buffer[(rank) * CHUNKS + what]
#include "single.pml"

byte share[RANKS];
byte pushed[RANKS];
byte failed[RANKS]; /* beside it */
byte root[CALLS + 1];
bool helps[CALLS + 1];

#define base (8 * call)
#ifdef NO_CALL_IN_SHARE
#define share_base 0
#else
#define share_base base
#endif
/* take(): i = CHUNKS where there is none left. */
inline take(rank)
{
    d_step {
        if
        :: share[rank] >= share_base && share[rank] < share_base + CHUNKS ->
            i = share[rank] - share_base;
            share[rank] = share[rank] + 1
        :: else -> i = CHUNKS
        fi
    }
}

/* b, for one */
inline push(rank)
{
    done = pushed[rank];
    if
    :: done >= base -> lost = failed[rank]
    :: else -> done = base; lost = 0
    fi;
    if
    :: lost
    :: else ->
        take(rank);
        if
        :: i == CHUNKS
        :: else ->
            if
            :: theirs(rank, i) = mine(i)
            :: lost = i + 1
            fi;
            failed[rank] = lost;
            pushed[rank] = done + 1
        fi
    fi;
    atomic {
        i = 0;
        done = 0;
        lost = 0
    }
}

inline run_root()
{
    do
    :: helps[call] ->
        /* One that has opened. */
        if
        :: me != 0 && open[0] >= call -> push(0)
        :: me != 1 && open[1] >= call -> push(1)
#if RANKS > 2
        :: me != 2 && open[2] >= call -> push(2)
#endif
        :: true -> break
        fi
    :: !helps[call] -> break
    od;
    step[me] = step[me] + 1;
#ifndef NO_WAIT_STEPS
    single_await_all(step[me]) /* c */
#endif
}

inline read_chunk(which)
{
    single_read(root[call], which);
    mine(which) = got;
    got = 0
}

inline run_other()
{
#ifndef NO_WAIT_OPEN
    single_wait(open[root[call]] >= call);
#endif
    do /* 2 */
    :: take(me);
        if
        :: i == CHUNKS -> break
        :: else -> read_chunk(i); count++
        fi
    od;
    if /* 3 */
    :: count < CHUNKS ->
#ifndef NO_WAIT_PUSHED
        single_wait(pushed[me] >= base + CHUNKS - count);
#endif
        lost = failed[me];
#ifndef NOT_GIVEN_BACK
        if
        :: lost -> i = lost - 1; read_chunk(i)
        :: else
        fi
#endif
    :: else
    fi;
    atomic {
        i = 0;
        count = 0;
        lost = 0
    }
    step[me] = step[me] + 1
}

inline fill(value)
{
    i = 0;
    do
    :: i < CHUNKS -> mine(i) = value; i++
    :: else -> break
    od;
    i = 0
}

inline all_are(value)
{
    i = 0;
    do
    :: i < CHUNKS -> assert(mine(i) == value); i++
    :: else -> break
    od;
    i = 0
}

proctype member(byte me)
{
    byte call, i, count, done, lost, got, letters, at, other;

    atomic { fill(SCRIBBLE) }
    do
    :: call < CALLS ->
        call++;
        atomic {
            all_are(SCRIBBLE);
            if
            :: root[call] == me -> fill(call)
            :: else
            fi
        }
        share[me] = share_base; /* 1, a */
        open[me] = call;
        if
        :: root[call] == me -> run_root()
        :: else -> run_other()
        fi;
        atomic {
            all_are(call);
            fill(SCRIBBLE)
        }
    :: else -> break
    od;
    all_are(SCRIBBLE)
}

init {
    byte i = 1;
    byte any;

    atomic {
        do
        :: i <= CALLS ->
            select(any : 0 .. RANKS - 1);
            root[i] = any;
            select(any : 0 .. 1);
            helps[i] = any;
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < RANKS -> run member(i); i++
        :: else -> break
        od
    }
}
