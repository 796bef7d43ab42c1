/* Allreduce of large vectors: algorithms/allreduce/allreduce_pipe.c, in its order C(g-1) A(g+1)
 * B(g), with calls of …, 3, 2, 1 chunks one after the other.
 *
 * A rank returns slices that nobody else reads, which are as those of two ranks here.
 *
 * What is combined and copied out is this chunk's, and nobody overwrites what is still to be read
 * or returned, or claims it in a call of one chunk.
 *
 * ok: RANKS=2 CALLS=3
 * ok: RANKS=3 CALLS=2
 * ok: RANKS=4 CALLS=2
 * fails: assertion: RANKS=2 CALLS=2 RELAXED_POST
 * fails: assertion: RANKS=2 CALLS=2 RELAXED_WAIT
 * fails: assertion: RANKS=2 CALLS=3 ONE_IN
 * fails: assertion: RANKS=2 CALLS=3 ONE_OUT
 * fails: assertion: RANKS=2 CALLS=3 IN_EARLY      A(g+1) before C(g-1)
 * fails: assertion: RANKS=2 CALLS=2 POST_FIRST    B posts before its slice is there
 * fails: assertion: RANKS=2 CALLS=2 CLAIM_USED    what the others combine now
 * fails: assertion: RANKS=2 CALLS=3 RETURN_LATE     after the post of B
 * fails: assertion: RANKS=3 CALLS=2 NO_WAIT_B
 * fails: assertion: RANKS=3 CALLS=2 NO_WAIT_C
 */
#define CHUNKS (CALLS * (CALLS + 1) / 2)
#define FLAGS (4 * RANKS)
#define MOST CHUNKS
#define KINDS 2
#include "flags.pml"

#define TORN 255
#define IN 0
#define OUT 1
#define BUFFERS (2 * RANKS)
#if defined ONE_IN
#define buffers(kind) (kind == IN -> 1 : 2)
#elif defined ONE_OUT
#define buffers(kind) (kind == OUT -> 1 : 2)
#else
#define buffers(kind) 2
#endif
/* What a rank's chunk holds for the others, and the slice that it has combined. */
byte data[4 * RANKS];
#define buffer(kind, rank, g) data[2 * (kind * RANKS + (rank)) + (g) % buffers(kind)]
#define flag(kind, rank, g) (2 * (kind * RANKS + (rank)) + (g) % 2) /* copied, reduced */

inline fill(kind, g)
{
    d_step {
        if
        :: (g) > buffers(kind) -> may_write(_pid, kind, (g) - buffers(kind))
        :: else
        fi;
        buffer(kind, _pid, g) = TORN
    }
    d_step {
        buffer(kind, _pid, g) = g;
        knows[_pid].written[kind * RANKS + _pid] = g
    }
}

#ifdef RETURN_LATE
#define returns(kind) false
#else
#define returns(kind) (RANKS == 2 && kind == IN)
#endif

/* Wait for everybody's flag, then read everybody's data. */
inline use(kind, waits, g)
{
    other = 0;
    do
    :: other < RANKS ->
        if
        :: other == _pid || !waits
        :: else -> wait_for(_pid, flag(kind, other, g), g)
        fi;
        other++
    :: else -> break
    od;
    other = 0;
    /* One step: who overwrites it meanwhile is found by the clocks. */
    d_step {
        do
        :: other < RANKS ->
            assert(other == _pid || (knows[_pid].written[kind * RANKS + other] >= (g) &&
                                     buffer(kind, other, g) == (g)));
            other++
        :: else -> break
        od;
        other = 0
    }
    if
    :: returns(kind) -> give_back(buffer(kind, 1 - _pid, g))
    :: else
    fi;
    knows[_pid].seen[kind * RANKS + _pid] = g
}

#ifdef NO_WAIT_B
#define waits_b false
#else
#define waits_b true
#endif
#ifdef NO_WAIT_C
#define waits_c false
#else
#define waits_c true
#endif

/* What a short vector writes next: nobody looks there any more. */
inline claim(kind, g)
{
    if
    :: chunks == 1 && (g) > 2 -> all_seen(_pid, kind, (g) - 2)
    :: else
    fi
}

inline step_copy_in(g) /* A */
{
    fill(IN, g);
    post(_pid, flag(IN, _pid, g), g);
    claim(OUT, g)
}

inline step_combine(g) /* B */
{
#ifdef CLAIM_USED
    claim(IN, g + 2);
#endif
    use(IN, waits_b, g);
#ifdef POST_FIRST
    post(_pid, flag(OUT, _pid, g), g);
    fill(OUT, g)
#else
    fill(OUT, g);
    post(_pid, flag(OUT, _pid, g), g);
#ifdef RETURN_LATE
    give_back(buffer(IN, 1 - _pid, g));
#endif
    claim(IN, g + 1);
    /* And the flags of g + 1, which were those of g - 1. */
    claim(OUT, g + 1)
#endif
}

inline step_copy_out(g) /* C */
{
    use(OUT, waits_c, g)
}

active [RANKS] proctype rank()
{
    byte call, chunks, g, i, other, k; /* g: chunks before this call */

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
