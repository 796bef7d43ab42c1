/* Allreduce in one copy: algorithms/allreduce/allreduce_single.c, by slices, and the whole vector
 * (WHOLE), in place or not, with the letters of algorithms/within/single.c.
 *
 * Operands and results that a rank reads are of this call; when it has left, nobody needs its
 * buffers any more.
 *
 * ok: RANKS=2 CALLS=2
 * ok: RANKS=2 CALLS=2 IN_PLACE
 * ok: RANKS=3 CALLS=2 IN_PLACE NO_LETTERS
 * ok: RANKS=2 CALLS=2 WHOLE
 * ok: RANKS=2 CALLS=2 WHOLE IN_PLACE
 * ok: RANKS=3 CALLS=2 WHOLE IN_PLACE NO_LETTERS
 * fails: deadlock: RANKS=2 CALLS=1 NO_ANSWER
 * fails: deadlock: RANKS=2 CALLS=2 NUMBER_WRAPS
 * fails: assertion: RANKS=2 CALLS=1 NO_WAIT_STEP           3 does not wait for the slice
 * fails: assertion: RANKS=2 CALLS=2 NO_WAIT_STEPS          4 is left out
 * fails: assertion: RANKS=2 CALLS=1 STEP_FIRST             2 steps before its slice is there
 * fails: assertion: RANKS=2 CALLS=1 WHOLE IN_PLACE NO_WAIT_PLACE   2 does not wait for the others
 * fails: assertion: RANKS=2 CALLS=2 WHOLE NO_WAIT_STEPS    3 is left out
 */
#define SCRIBBLE 255
#define OPERAND call
#define RESULT (16 + call)
#ifdef WHOLE
#define PIECES 2 /* that fit into the work memory */
#else
#define PIECES RANKS /* slices */
#endif
/* All send buffers, then all receive buffers, or the same again. */
#ifdef IN_PLACE
#define RECEIVE 0
#else
#define RECEIVE (RANKS * PIECES)
#endif
byte memory[2 * RANKS * PIECES];
#define send_at(rank, piece) ((rank) * PIECES + (piece))
#define receive_at(rank, piece) (RECEIVE + (rank) * PIECES + (piece))
#define mine(what) memory[what]
#define theirs(rank, what) memory[what]
#include "single.pml"

/* Of everybody's operand of a piece; `other` is the caller's. */
inline read_operands(piece)
{
    other = 0;
    do
    :: other < RANKS ->
        if
        :: other == me
        :: else ->
            single_wait(open[other] >= call);
            single_read(other, send_at(other, piece));
            assert(got == OPERAND);
            got = 0
        fi;
        other++
    :: else -> other = 0; break
    od
}

inline take_step()
{
    step[me] = step[me] + 1
}

inline run_slices()
{
    read_operands(me); /* 2 */
#ifdef STEP_FIRST
    take_step();
#endif
    memory[receive_at(me, me)] = RESULT;
#ifndef STEP_FIRST
    take_step();
#endif
    i = 1;
    do /* 3 */
    :: i < RANKS ->
        other = (me + i) % RANKS;
#ifndef NO_WAIT_STEP
        single_wait(step[other] >= step[me]);
#endif
        single_read(other, receive_at(other, other));
        assert(got == RESULT);
        memory[receive_at(me, other)] = got;
        got = 0;
        i++
    :: else -> break
    od;
    atomic {
        i = 0;
        other = 0
    }
    take_step();
#ifndef NO_WAIT_STEPS
    single_await_all(step[me]) /* 4 */
#endif
}

inline run_whole()
{
    do
    :: i < PIECES -> /* 2 */
        read_operands(i);
        take_step();
#if defined IN_PLACE && !defined NO_WAIT_PLACE
        single_await_all(step[me]);
#endif
        memory[receive_at(me, i)] = RESULT;
        i++
    :: else -> i = 0; break
    od;
#ifndef NO_WAIT_STEPS
    single_await_all(step[me]) /* 3 */
#endif
}

/* What the program does with its buffers before and after a call. */
inline fill(value)
{
    i = 0;
    do
    :: i < PIECES ->
        memory[receive_at(me, i)] = SCRIBBLE;
        memory[send_at(me, i)] = value;
        i++
    :: else -> break
    od;
    i = 0
}

inline all_are_results()
{
    i = 0;
    do
    :: i < PIECES -> assert(memory[receive_at(me, i)] == RESULT); i++
    :: else -> break
    od;
    i = 0
}

active [RANKS] proctype member()
{
    byte call, i, got, letters, at, other;
    byte me = _pid;

    do
    :: call < CALLS ->
        atomic {
            call++;
            fill(OPERAND)
        }
        open[me] = call; /* 1 */
#ifdef WHOLE
        run_whole();
#else
        run_slices();
#endif
        atomic {
            all_are_results();
            fill(SCRIBBLE)
        }
    :: else -> break
    od
}
