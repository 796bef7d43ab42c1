/* Bcast between nodes: run_bytes() of algorithms/bcast/bcast_nodes.c.  On one node there are RANKS
 * ranks, of which the first leads; each other one of the NODES has one rank, that needs no ring.
 * The root of each call is any of all these, and a call has as many of the PIECES as Spin likes.
 * Leaders pass pieces on along a chain, from the root's node on round all nodes: so ours gets them,
 * or passes them on, or both.
 *
 * What is read, or passed on, is this piece, and nobody overwrites what somebody has still to read
 * or pass on; nor the result beside the flag that releases a piece.  Messages order nothing on this
 * node.  A sender waits for the receiver, as it may; SENT_AHEAD: it does not.
 *
 * Nobody looks at a flag but to wait for it.  So a rank does all that it can of a piece at once:
 * who comes too early or too late is found by the clocks (flags.pml), whoever runs first.
 *
 * ok: RANKS=2 NODES=3 PIECES=5
 * ok: RANKS=3 NODES=2 PIECES=5
 * ok: RANKS=3 NODES=2 PIECES=4 SENT_AHEAD
 * ok: RANKS=2 NODES=2 PIECES=6 SLOTS=3 RESULTS=4
 * ok: RANKS=3 NODES=1 PIECES=5
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 RELAXED_POST
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 RELAXED_WAIT
 * fails: assertion: RANKS=2 NODES=2 PIECES=4 SLOTS=3 RESULTS=2  fewer results than slots
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 SLOTS=1       a leader has two pieces at once
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 NO_WAIT       a writer does not wait
 * fails: assertion: RANKS=2 NODES=2 PIECES=4 LATE_WAIT     it waits for a piece too few
 * fails: assertion: RANKS=3 NODES=2 PIECES=3 NOT_ALL       not for the last rank
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 GET_FIRST     after the piece has come
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 RELEASE_FIRST before the data is there
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 ARRIVE_FIRST  before the data is read
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 ARRIVE_SOON   as e, while e is passed on
 * fails: assertion: RANKS=2 NODES=2 PIECES=3 PASS_LATE     likewise, of another one's piece
 * fails: assertion: RANKS=2 NODES=2 PIECES=2 BLIND         a reader does not wait
 * fails: deadlock: RANKS=2 NODES=3 PIECES=1 NO_LAST  a call's last piece is not passed on
 * fails: deadlock: RANKS=2 NODES=2 PIECES=2 SLOTS=1 SOON_WAIT  a writer waits for a piece too many
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef RESULTS
#define RESULTS 2
#endif
#define FLAGS (RANKS + 1)
#define MOST PIECES
#define KINDS 2 /* what is in slots, and results */
#include "flags.pml"

#define arrived(rank) (rank)
#define released RANKS
#define slot(e) ((e) % SLOTS)
#define is_own(root) ((root) < RANKS)
/* Ours is node 0; behind its ranks come those of nodes 1, 2, …. */
#define node_of(root) (is_own(root) -> 0 : (root) - RANKS + 1)
#define place(node) ((node + NODES - node_of(root[e])) % NODES)
#define before(node) ((node + NODES - 1) % NODES)
#define behind(node) ((node + 1) % NODES)
#define gets(node) (place(node) > 0)
#define passes(node) (place(node) < NODES - 1)
#define TORN 255
byte root[PIECES + 1];
bool ends[PIECES + 1]; /* a call */
byte data[SLOTS], result[RESULTS];
/* The last piece that a node's leader has begun to send, and to receive. */
byte offered[NODES], wanted[NODES];

#define writer(e) (is_own(root[e]) -> root[e] : 0)
#define is_writer (me == writer(e))
#if defined LATE_WAIT
#define NEED (e - SLOTS - 1)
#elif defined SOON_WAIT
#define NEED (e - SLOTS + 1)
#else
#define NEED (e - SLOTS)
#endif
#ifdef NOT_ALL
#define AWAITED (RANKS - 1)
#else
#define AWAITED RANKS
#endif

/* A leader gets piece `in`, and passes on piece `out`; 0: none. */
inline cross(node, in, out)
{
    if
    :: in && gets(node) -> wanted[node] = in
    :: else
    fi;
    if
    :: out && passes(node) -> offered[node] = out
    :: else
    fi;
    if
    :: in && gets(node) -> offered[before(node)] >= in
    :: else
    fi;
#ifndef SENT_AHEAD
    if
    :: out && passes(node) -> wanted[behind(node)] >= out
    :: else
    fi
#endif
}

/* Of what lies in the slot of piece `p`. */
inline use(p)
{
    assert(knows[me].written[writer(p)] >= p && data[slot(p)] == p)
}

inline wait_for_others()
{
    if
    :: e > SLOTS ->
        rank = 0;
        do
        :: rank < AWAITED ->
            if
            :: rank != me -> wait_for(me, arrived(rank), NEED)
            :: else
            fi;
            rank++
        :: else -> rank = 0; break
        od
    :: else
    fi
}

/* From now on the piece comes into the slot: nobody reads what was there any more. */
inline begin_to_write()
{
    if
    :: e > SLOTS ->
        all_seen(me, 0, e - SLOTS);
        assert(knows[me].seen[me] >= e - SLOTS)
    :: else
    fi;
    data[slot(e)] = TORN
}

inline release()
{
    if
    :: e > RESULTS -> all_seen(me, 1, e - RESULTS)
    :: else
    fi;
    result[e % RESULTS] = e;
    knows[me].seen[RANKS + me] = e;
    assert(flags[released] == e - 1);
    post(me, released, e)
}

/* To have arrived there once more tells nothing new: who waits may have seen the first time. */
inline arrive(value)
{
    if
    :: value > flags[arrived(me)] -> post(me, arrived(me), value)
    :: else
    fi
}

inline write_piece()
{
    if
    :: gets(0) -> cross(0, e, last)
    :: else
    fi;
    if
    :: last -> use(last); knows[me].seen[me] = last
    :: else
    fi;
#ifdef RELEASE_FIRST
    release();
#endif
    data[slot(e)] = e;
    knows[me].written[me] = e;
#ifndef RELEASE_FIRST
    release()
#endif
}

inline read_piece()
{
#ifndef BLIND
    wait_for(me, released, e);
#endif
#ifdef ARRIVE_FIRST
    arrive(e);
#endif
    use(e);
    assert(result[e % RESULTS] == e);
    knows[me].seen[RANKS + me] = e
}

proctype member(byte me)
{
    byte e, last, rank, k;

    do
    :: atomic {
        e < PIECES ->
        e++;
        if
        :: is_writer ->
#if !defined NO_WAIT && !defined GET_FIRST
            wait_for_others();
#endif
            begin_to_write();
            write_piece();
#ifdef GET_FIRST
            wait_for_others()
#endif
        :: else -> read_piece()
        fi;
        if
        :: is_writer && gets(0) -> last = e
        :: else ->
#ifdef PASS_LATE
            arrive(e);
#endif
            if
            :: me == 0 -> cross(0, 0, e); use(e)
            :: else
            fi;
            knows[me].seen[me] = e
        fi;
#ifdef ARRIVE_SOON
        arrive(e);
#else
        arrive(e - (last > 0));
#endif
        if
        :: ends[e] && last ->
#ifndef NO_LAST
            cross(0, 0, last);
#endif
            use(last);
            knows[me].seen[me] = last;
            last = 0;
            arrive(e)
        :: else
        fi
    }
    :: e == PIECES -> break
    od
}

proctype outsider(byte node)
{
    byte e, last;

    do
    :: atomic {
        e < PIECES ->
        e++;
        if
        :: gets(node) -> cross(node, e, last); last = e
        :: else -> cross(node, 0, e)
        fi;
        if
        :: ends[e] && last -> cross(node, 0, last); last = 0
        :: else
        fi
    }
    :: e == PIECES -> break
    od
}

init {
    byte i = 1;
    byte any;
    bool another;

    atomic {
        do
        :: i <= PIECES ->
            if
            :: i == 1 || ends[i - 1] -> select(any : 0 .. RANKS + NODES - 2)
            :: else
            fi;
            /* Those that do not lead are alike: the first of them that is a root is rank 1. */
            any = (is_own(any) && any > 1 && !another -> 1 : any);
            root[i] = any;
            another = another || (is_own(any) && any > 0);
            if
            :: i < PIECES
            :: ends[i] = true
            fi;
            i++
        :: else -> break
        od;
        any = 0;
        another = false;
        i = 0;
        do
        :: i < RANKS -> run member(i); i++
        :: else -> break
        od;
        i = 1;
        do
        :: i < NODES -> run outsider(i); i++
        :: else -> i = 0; break
        od
    }
}
