/* Bcast through a ring of slots: collx_ring_pass_chunk() of algorithms/bcast/bcast_ring.h, steps 1 to 4 as
 * there.  The root of each chunk is any rank, as Spin likes, the slot any one, and any chunk goes in
 * numbered lines, of which there is one beside the flag's; all ranks agree on all that.  Of two
 * ranks, the other one returns the data.  SWINGS: of two, where a rank has read last it writes
 * without waiting.  WIDE: a chunk takes one slot or two, as Spin likes; such a ring has lines only
 * if LINED.
 *
 * What is read is this chunk, and no root overwrites what somebody has still to read or return.
 *
 * ok: RANKS=2 CHUNKS=4 SLOTS=2
 * ok: RANKS=2 CHUNKS=4 SLOTS=2 SWINGS
 * ok: RANKS=3 CHUNKS=3 SLOTS=2
 * ok: RANKS=2 CHUNKS=4 SLOTS=3 SWINGS
 * ok: RANKS=3 CHUNKS=3 SLOTS=1
 * ok: RANKS=2 CHUNKS=4 SLOTS=2 WIDE
 * ok: RANKS=2 CHUNKS=4 SLOTS=2 WIDE SWINGS
 * ok: RANKS=3 CHUNKS=3 SLOTS=2 WIDE
 * ok: RANKS=2 CHUNKS=3 SLOTS=4 WIDE
 * ok: RANKS=2 CHUNKS=3 SLOTS=2 WIDE LINED
 * ok: RANKS=2 CHUNKS=3 SLOTS=2 WIDE LINED SWINGS
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 RELAXED_POST
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 RELAXED_WAIT
 * fails: assertion: RANKS=3 CHUNKS=4 SLOTS=2 NO_WAIT      1 is left out
 * fails: assertion: RANKS=2 CHUNKS=4 SLOTS=2 LATE_WAIT    the root waits for a chunk too few
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 POST_FIRST   2 posts before the data is there
 * fails: assertion: RANKS=2 CHUNKS=4 SLOTS=2 DONE_FIRST   4 before the data is read
 * fails: assertion: RANKS=2 CHUNKS=4 SLOTS=2 RETURN_LATE  3 goes on after 4
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 FLAG_ALONE   3 does not look at the line's number
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 LINE_FIRST   2 numbers a line before its data is there
 * fails: assertion: RANKS=3 CHUNKS=4 SLOTS=2 MOST_DONE    the root believes the fastest, not the slowest
 * fails: assertion: RANKS=3 CHUNKS=3 SLOTS=1 SWINGS       there is a third one, who may still read
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=1 SWINGS DONE_FIRST
 * fails: assertion: RANKS=2 CHUNKS=2 SLOTS=2 WIDE FIRST_ALONE  1 looks at the first slot's used
 * fails: assertion: RANKS=2 CHUNKS=2 SLOTS=2 WIDE LAST_ALONE   or at the last one's
 * fails: assertion: RANKS=2 CHUNKS=2 SLOTS=2 WIDE USE_FIRST    that of the first is set alone
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 WIDE SWINGS FIRST_ALONE
 * fails: assertion: RANKS=2 CHUNKS=3 SLOTS=2 WIDE LINED LAST_ALONE
 */
/* Slots' flags come first, then the numbers of their lines, then one a rank. */
#define FLAGS (2 * SLOTS + RANKS)
/* The data beside a flag, and that in a line. */
#define KINDS 2
#define MOST CHUNKS
#include "flags.pml"

#define TORN 255
#define number (SLOTS + slot)
#define done(rank) (2 * SLOTS + (rank))
byte data[SLOTS], line[SLOTS];
/* The last chunk that was in a slot, and in its line, whoever knows it. */
byte last[SLOTS], last_lined[SLOTS];
byte root[CHUNKS + 1], at[CHUNKS + 1];
bool lined[CHUNKS + 1];
#ifdef WIDE
/* Of two slots that follow each other; the first one's flag counts. */
bool wide[CHUNKS + 1];
#endif

/* The last chunk that was in these slots. */
#if defined FIRST_ALONE
#define was (used[slot])
#elif defined LAST_ALONE
#define was (used[slot + is_wide])
#else
#define was (used[slot + is_wide] > used[slot] -> used[slot + is_wide] : used[slot])
#endif
#ifdef LATE_WAIT
#define NEED (need - 1)
#else
#define NEED need
#endif
#ifdef SWINGS
#define READ 0
#else
#define READ e
#endif

/* What the flags say by now; it has been acquired for each.  MOST_DONE: of one of them, at least. */
inline look_at_done(me)
{
    d_step {
#ifdef MOST_DONE
        all_done = need;
#else
        all_done = e;
#endif
        k = 0;
        do
        :: k < RANKS ->
#ifdef MOST_DONE
            all_done = (flags[done(k)] > all_done -> flags[done(k)] : all_done);
#else
            all_done = (flags[done(k)] < all_done -> flags[done(k)] : all_done);
#endif
            k++
        :: else -> break
        od;
        k = 0
    }
    rank = 0;
    do
    :: rank < RANKS ->
        if
        :: reached(done(rank), all_done) -> wait_for(me, done(rank), all_done)
        :: else
        fi;
        rank++
    :: else -> rank = 0; break
    od
}

inline wait_for_slot(me)
{
    need = was;
    if
    :: need > all_done ->
        rank = 0;
        do
        :: rank < RANKS ->
            if
            :: rank == me
            :: else -> wait_for(me, done(rank), NEED)
            fi;
            rank++
        :: else -> rank = 0; break
        od;
        look_at_done(me)
    :: else
    fi;
    need = 0
}

/* 2, for one of a chunk's slots. */
inline fill(me, place)
{
    d_step {
        may_write(me, 0, last[place]);
        data[place] = TORN
    }
    d_step {
        data[place] = e;
        last[place] = e;
        knows[me].written[me] = e;
        knows[me].seen[me] = e;
        knows[me].seen[RANKS + me] = e
    }
}

inline use(value)
{
    used[slot] = value;
#if defined WIDE && !defined USE_FIRST
    used[slot + is_wide] = value
#endif
}

proctype member(byte me)
{
    byte e, slot, rank, k, need, all_done;
    byte used[SLOTS];
    bool writes, in_line, is_wide;

    do
    :: e < CHUNKS ->
        d_step {
            e++;
            slot = at[e];
            writes = (root[e] == me);
            in_line = lined[e];
#ifdef WIDE
            is_wide = wide[e]
#endif
        }
        if
        :: writes ->
#ifndef NO_WAIT
            wait_for_slot(me); /* 1 */
#endif
#ifdef POST_FIRST
            post(me, slot, e);
#endif
            fill(me, slot); /* 2 */
#ifdef WIDE
            if
            :: is_wide -> fill(me, slot + 1)
            :: else
            fi;
#endif
#ifndef POST_FIRST
            post(me, slot, e);
#endif
            if
            :: in_line ->
#ifdef LINE_FIRST
                post(me, number, e);
#endif
                d_step {
                    may_write(me, 1, last_lined[slot]);
                    line[slot] = TORN
                }
                d_step {
                    line[slot] = e;
                    last_lined[slot] = e;
                    knows[me].written[RANKS + me] = e
                }
#ifndef LINE_FIRST
                post(me, number, e)
#endif
            :: else
            fi;
            use(e)
        :: else ->
            wait_for(me, slot, e); /* 3 */
#ifdef DONE_FIRST
            post(me, done(me), e);
#endif
            assert(knows[me].written[root[e]] >= e && data[slot] == e && data[slot + is_wide] == e);
            if
            :: in_line ->
#ifndef FLAG_ALONE
                wait_for(me, number, e);
#endif
                assert(knows[me].written[RANKS + root[e]] >= e && line[slot] == e)
            :: else
            fi;
#ifdef RETURN_LATE
            post(me, done(me), e);
#endif
#if RANKS == 2
            give_back(data[slot]);
#ifdef WIDE
            if
            :: is_wide -> give_back(data[slot + 1])
            :: else
            fi;
#endif
#endif
            d_step {
                knows[me].seen[me] = e;
                knows[me].seen[RANKS + me] = e;
                use(READ)
            }
        fi;
        post(me, done(me), e) /* 4 */
    :: else -> break
    od
}

init {
    byte i = 1;
    byte any;

    atomic {
        do
        :: i <= CHUNKS ->
            select(any : 0 .. RANKS - 1);
            root[i] = (i == 1 -> 0 : any); /* they are all alike */
#ifdef WIDE
            select(any : 0 .. SLOTS - 1);
            at[i] = (i == 1 -> any % 2 : any); /* pairs of them are all alike */
            if
            :: any % 2 == 0 -> wide[i] = true
            :: true
            fi;
#else
            select(any : 0 .. SLOTS - 1);
            at[i] = (i == 1 -> 0 : any); /* they are all alike */
#endif
#if !defined WIDE || defined LINED
            select(any : 0 .. 1);
            lined[i] = any;
#endif
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
