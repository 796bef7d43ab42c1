/* Bcast in one copy: algorithms/bcast/bcast_single.c, steps 1 to 4, a and b as there, with the
 * letters of algorithms/within/single.c.  Each call has any root, and goes with help or without;
 * all agree on both.
 *
 * Everybody has the message when it leaves, of this call; and nobody touches a rank's buffer
 * when it has left.  Helpers may stop helping at any time.
 *
 * ok: RANKS=2 CALLS=2 CHUNKS=2
 * ok: RANKS=2 CALLS=3 CHUNKS=1
 * ok: RANKS=3 CALLS=1 CHUNKS=1
 * ok: RANKS=3 CALLS=1 CHUNKS=2 NO_LETTERS
 * ok: RANKS=3 CALLS=2 CHUNKS=1 NO_LETTERS
 * fails: deadlock: RANKS=2 CALLS=1 CHUNKS=1 NO_ANSWER
 * fails: assertion: RANKS=3 CALLS=2 CHUNKS=1 NO_OWNER
 * fails: deadlock: RANKS=2 CALLS=3 CHUNKS=2 NUMBER_WRAPS
 * fails: assertion: RANKS=2 CALLS=2 CHUNKS=1 ANSWER_FIRST
 * fails: assertion: RANKS=3 CALLS=2 CHUNKS=1 NO_CALL_IN_COUNT  chunks are counted from 0 in each call
 * fails: assertion: RANKS=2 CALLS=1 CHUNKS=2 NO_WAIT_HELPED    3 does not wait for what helpers took
 * fails: assertion: RANKS=2 CALLS=1 CHUNKS=2 NOT_GIVEN_BACK    what nobody could write is lost
 * fails: assertion: RANKS=2 CALLS=1 CHUNKS=1 UNWRITTEN_LAST    it is told after the chunk is counted
 * fails: assertion: RANKS=3 CALLS=1 CHUNKS=1 HELP_FIRST        4 comes before 3
 * fails: deadlock: RANKS=2 CALLS=1 CHUNKS=1 NO_WAIT_STEPS      b is left out
 * fails: assertion: RANKS=2 CALLS=2 CHUNKS=1 NO_WAIT_OPEN      2 does not wait for the root's buffer
 */
#define SCRIBBLE 255
byte buffer[RANKS * CHUNKS];
#define mine(what) buffer[me * CHUNKS + what]
#define theirs(rank, what) buffer[(rank) * CHUNKS + what]
#include "single.pml"

byte taken[RANKS];
byte helped[RANKS];
byte unwritten[RANKS];
byte root[CALLS + 1];
bool helps[CALLS + 1];

#ifdef NO_CALL_IN_COUNT
#define base 0
#else
#define base (8 * call)
#endif

/* take(): i = CHUNKS where there is none left. */
inline take(rank)
{
    d_step {
        if
        :: taken[rank] < base + CHUNKS ->
            i = taken[rank] - base;
            taken[rank] = taken[rank] + 1
        :: else -> i = CHUNKS
        fi
    }
}

/* 4, for `rank` */
inline write_chunk(rank)
{
    take(rank);
    if
    :: i == CHUNKS
    :: else ->
        if
        :: theirs(rank, i) = mine(i);
            helped[rank] = helped[rank] + 1
#ifdef UNWRITTEN_LAST
        :: helped[rank] = helped[rank] + 1;
            unwritten[rank] = call
#else
        :: unwritten[rank] = call;
            helped[rank] = helped[rank] + 1
#endif
        fi
    fi;
    i = 0
}

#define is_open(rank) (open[rank] >= call)
#define is_helped(rank) (me != rank && root[call] != rank && is_open(rank))

/* 4.  The root may wait for any buffer. */
inline help()
{
    do
    :: helps[call] && is_helped(0) -> write_chunk(0)
    :: helps[call] && is_helped(1) -> write_chunk(1)
#if RANKS > 2
    :: helps[call] && is_helped(2) -> write_chunk(2)
#endif
    :: helps[call] && me == root[call] && !is_open(0) -> single_wait(is_open(0))
    :: helps[call] && me == root[call] && !is_open(1) -> single_wait(is_open(1))
#if RANKS > 2
    :: helps[call] && me == root[call] && !is_open(2) -> single_wait(is_open(2))
#endif
    :: true -> break
    od
}

inline read_chunk(which)
{
    single_read(root[call], which);
    mine(which) = got;
    got = 0
}

inline receive()
{
#ifndef NO_WAIT_OPEN
    single_wait(is_open(root[call]));
#endif
#ifdef HELP_FIRST
    help();
#endif
    do /* 2 */
    :: take(me);
        if
        :: i == CHUNKS -> break
        :: else -> read_chunk(i); count++
        fi
    od;
    i = 0;
    if /* 3 */
    :: count < CHUNKS ->
#ifndef NO_WAIT_HELPED
        single_wait(helped[me] >= base + CHUNKS - count);
#endif
#ifndef NOT_GIVEN_BACK
        if
        :: unwritten[me] == call ->
            do
            :: i < CHUNKS -> read_chunk(i); i++
            :: else -> break
            od
        :: else
        fi
#endif
    :: else
    fi;
    atomic {
        i = 0;
        count = 0
    }
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
    byte call, i, count, got, letters, at, other;

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
        taken[me] = base; /* 1 */
        helped[me] = base;
        if
        :: root[call] == me ->
            step[me] = step[me] + 1; /* a */
            open[me] = call
        :: else ->
            open[me] = call;
            receive();
            step[me] = step[me] + 1
        fi;
        help();
#ifndef NO_WAIT_STEPS
        if
        :: root[call] == me -> single_await_all(step[me]) /* b */
        :: else
        fi;
#endif
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
            root[i] = (i == 1 -> 0 : any); /* ranks are all alike */
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
