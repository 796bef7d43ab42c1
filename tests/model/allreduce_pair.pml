/* Allreduce of large vectors between two ranks: algorithms/allreduce/allreduce_pair.c, in its order
 * C(g-1) A(g+1) B(g), with calls of …, 3, 2, 1 chunks one after the other.
 *
 * What is combined is this chunk's, what is copied out is its result, and nobody writes into a
 * buffer that the other one still uses, or claims flags at which it still looks.
 *
 * ok: RANKS=2 CALLS=3
 * ok: RANKS=2 CALLS=4
 * fails: assertion: RANKS=2 CALLS=2 RELAXED_POST
 * fails: assertion: RANKS=2 CALLS=2 RELAXED_WAIT
 * fails: assertion: RANKS=2 CALLS=2 ONE_BUFFER
 * fails: assertion: RANKS=2 CALLS=3 IN_EARLY      A(g+1) before C(g-1)
 * fails: assertion: RANKS=2 CALLS=2 POST_FIRST    B posts before the result is there
 * fails: assertion: RANKS=2 CALLS=3 COPY_LATE     B posts before it has copied the result
 * fails: assertion: RANKS=2 CALLS=2 CLAIM_EARLY   before B has waited
 * fails: assertion: RANKS=2 CALLS=2 NO_WAIT_B
 * fails: assertion: RANKS=2 CALLS=2 NO_WAIT_C
 */
#define CHUNKS (CALLS * (CALLS + 1) / 2)
#define FLAGS (4 * RANKS)
#define MOST CHUNKS
#define KINDS 2
#include "flags.pml"

/* An operand is its owner's, the result of the one who combines. */
#define OPERAND 0
#define RESULT 1
#define TORN 255
#define other (1 - _pid)
#ifdef ONE_BUFFER
#define BUFFERS 1
#else
#define BUFFERS 2
#endif
byte half[2 * RANKS];
#define buffer(rank, g) half[2 * (rank) + (g) % BUFFERS]
#define flag(kind, rank, g) (2 * ((kind) * RANKS + (rank)) + (g) % 2) /* copied, reduced */
#define holds(kind, g) (2 * (g) + (kind))

inline store(kind, rank, g)
{
    buffer(rank, g) = TORN;
    d_step {
        buffer(rank, g) = holds(kind, g);
        knows[_pid].written[(kind) * RANKS + _pid] = g
    }
}

inline load(kind, rank, writer, g)
{
    assert(knows[_pid].written[(kind) * RANKS + (writer)] >= (g) &&
           buffer(rank, g) == holds(kind, g))
}

inline claim(g)
{
    if
    :: chunks == 1 && (g) > 1 ->
        all_seen(_pid, OPERAND, (g) - 1);
        all_seen(_pid, RESULT, (g) - 1)
    :: else
    fi
}

inline step_copy_in(g) /* A */
{
    if
    :: (g) > BUFFERS -> all_seen(_pid, OPERAND, (g) - BUFFERS);
        assert(knows[_pid].seen[RESULT * RANKS + _pid] >= (g) - BUFFERS)
    :: else
    fi;
    store(OPERAND, _pid, g);
    post(_pid, flag(OPERAND, _pid, g), g)
}

inline step_combine(g) /* B */
{
#ifdef CLAIM_EARLY
    claim(g);
#endif
#ifndef NO_WAIT_B
    wait_for(_pid, flag(OPERAND, other, g), g);
#endif
    load(OPERAND, other, other, g);
#ifdef POST_FIRST
    post(_pid, flag(RESULT, _pid, g), g);
#endif
    store(RESULT, other, g);
#ifdef COPY_LATE
    post(_pid, flag(RESULT, _pid, g), g);
#endif
    load(RESULT, other, _pid, g);
    knows[_pid].seen[OPERAND * RANKS + _pid] = g;
#if !defined POST_FIRST && !defined COPY_LATE
    post(_pid, flag(RESULT, _pid, g), g);
#endif
    claim(g)
}

inline step_copy_out(g) /* C */
{
#ifndef NO_WAIT_C
    wait_for(_pid, flag(RESULT, other, g), g);
#endif
    load(RESULT, _pid, other, g);
    knows[_pid].seen[RESULT * RANKS + _pid] = g
}

active [RANKS] proctype rank()
{
    byte call, chunks, g, i, k; /* g: chunks before this call */

    do
    :: call < CALLS ->
        call++;
        chunks = CALLS + 1 - call;
        step_copy_in(g + 1);
        i = 1;
        do
        :: i <= chunks ->
#ifdef IN_EARLY
            if
            :: i < chunks -> step_copy_in(g + i + 1)
            :: else
            fi;
#endif
            if
            :: i > 1 -> step_copy_out(g + i - 1)
            :: else
            fi;
#ifndef IN_EARLY
            if
            :: i < chunks -> step_copy_in(g + i + 1)
            :: else
            fi;
#endif
            step_combine(g + i);
            i++
        :: else -> break
        od;
        step_copy_out(g + chunks);
        g = g + chunks;
        i = 0
    :: else -> break
    od
}
