/* Bcast in groups of ranks, each with a ring of its own: pass_chunk() of
 * algorithms/bcast/bcast_groups.c, steps 1 to 4 as in bcast_groups.h.  Rank r is in group r mod
 * GROUPS.  The root of each chunk is any rank, as Spin likes; all ranks agree on that.  A leader
 * passes on what lies in the ring of the root's group; in the code it may have a copy, and is done
 * with that ring sooner.
 *
 * What is read is this chunk, and nobody overwrites what somebody has still to read or pass on, in
 * whatever ring.
 *
 * What a rank does until it posts is one step: who comes too early or too late is found by the
 * clocks (flags.pml), whoever runs first.
 *
 * ok: RANKS=4 GROUPS=2 CHUNKS=4 SLOTS=2
 * ok: RANKS=4 GROUPS=2 CHUNKS=4 SLOTS=1
 * ok: RANKS=5 GROUPS=2 CHUNKS=3 SLOTS=1
 * ok: RANKS=4 GROUPS=3 CHUNKS=4 SLOTS=1
 * ok: RANKS=3 GROUPS=3 CHUNKS=6 SLOTS=2
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 RELAXED_POST
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 RELAXED_WAIT
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 NO_MEMBERS   members are not waited for
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 NO_GUESTS    nor guests
 * fails: assertion: RANKS=4 GROUPS=3 CHUNKS=3 SLOTS=2 ONE_GUEST    one of two guests is
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 LAST_GUEST   not the first of a group is
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 LATE_WAIT    2 waits for a chunk too few
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 NOT_COUNTED  nobody counts when guests came
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 ROOT_COUNTS  the root alone does
 * fails: assertion: RANKS=3 GROUPS=3 CHUNKS=3 SLOTS=1 GUESTS_PAST  those before e - SLOTS forgotten
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=4 SLOTS=2 MEMBERS_DONE members speak for guests
 * fails: assertion: RANKS=5 GROUPS=2 CHUNKS=4 SLOTS=1 MOST_DONE    the fastest is believed
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=2 SLOTS=2 POST_FIRST   3 posts before the data is there
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 DONE_FIRST   4 before the data is read
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=4 SLOTS=2 PASS_LATE    4 before the data is passed on
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=3 SLOTS=2 FLAT         members read in the root's ring
 * fails: assertion: RANKS=4 GROUPS=2 CHUNKS=2 SLOTS=2 TWO_WRITERS  a leader in the root's group
 * fails: deadlock: RANKS=4 GROUPS=2 CHUNKS=1 SLOTS=2 NO_LEADER leaders read in their own
 * fails: deadlock: RANKS=4 GROUPS=2 CHUNKS=2 SLOTS=1 SOON_WAIT 2 waits for a chunk too many
 */
/* Slots' flags come first, group by group, then one a rank. */
#define FLAGS (GROUPS * SLOTS + RANKS)
#define MOST CHUNKS
#include "flags.pml"

#define group(rank) ((rank) % GROUPS)
#define is_first(rank) ((rank) < GROUPS)
#define alone(rank) (is_first(rank) && (rank) + GROUPS >= RANKS)
#define slot(group, e) ((group) * SLOTS + (e) % SLOTS)
#define done(rank) (GROUPS * SLOTS + (rank))
#define home(e) group(root[e])
/* In the ring of a group. */
#define writer(ring, e) (home(e) == (ring) -> root[e] : (ring))
#define reads(rank, ring, e) \
    ((rank) != writer(ring, e) && \
     (group(rank) == (ring) || (home(e) == (ring) && is_first(rank))))
byte root[CHUNKS + 1];
byte data[GROUPS * SLOTS];

#if defined FLAT
#define FROM home(e)
#elif defined NO_LEADER
#define FROM group(me)
#else
#define FROM (is_first(me) -> home(e) : group(me))
#endif
#ifdef TWO_WRITERS
#define leads(me) is_first(me)
#else
#define leads(me) (is_first(me) && group(me) != home(e))
#endif
#if defined LATE_WAIT
#define NEED (e - SLOTS - 1)
#elif defined SOON_WAIT
#define NEED (e - SLOTS + 1)
#else
#define NEED (e - SLOTS)
#endif
#if defined NO_GUESTS
#define awaits_guests false
#elif defined GUESTS_PAST
#define awaits_guests (guests >= e - SLOTS)
#else
#define awaits_guests (guests > all_done)
#endif
#if defined ONE_GUEST
#define is_guest(rank, ring) ((rank) == ((ring) + 1) % GROUPS)
#elif defined LAST_GUEST
#define is_guest(rank, ring) (group(rank) != (ring) && (rank) + GROUPS >= RANKS)
#else
#define is_guest(rank, ring) (group(rank) != (ring) && is_first(rank))
#endif
#ifdef NO_MEMBERS
#define is_awaited(rank) (with_guests && is_guest(rank, group(me)))
#else
#define is_awaited(rank) (group(rank) == group(me) || (with_guests && is_guest(rank, group(me))))
#endif
#ifdef MEMBERS_DONE
#define tells(rank) (group(rank) == group(me))
#else
#define tells(rank) is_awaited(rank)
#endif
#if defined NOT_COUNTED
#define has_guests false
#elif defined ROOT_COUNTS
#define has_guests (root[e] == me)
#else
#define has_guests (home(e) == group(me))
#endif

/* What the flags say by now; it has been acquired for each.  MOST_DONE: of one of them, at least. */
inline look_at_done()
{
    d_step {
#ifdef MOST_DONE
        all_done = 0;
#else
        all_done = e;
#endif
        rank = 0;
        do
        :: rank < RANKS ->
            if
#ifdef MOST_DONE
            :: rank != me && tells(rank) && flags[done(rank)] > all_done ->
#else
            :: tells(rank) && flags[done(rank)] < all_done ->
#endif
                all_done = flags[done(rank)]
            :: else
            fi;
            rank++
        :: else -> break
        od;
        rank = 0;
        do
        :: rank < RANKS ->
            if
            :: tells(rank) && reached(done(rank), all_done) -> take_over(me, done(rank), all_done)
            :: else
            fi;
            rank++
        :: else -> break
        od;
        rank = 0
    }
}

inline make_room()
{
    if
    :: e > all_done + SLOTS ->
        with_guests = awaits_guests;
        rank = 0;
        do
        :: rank < RANKS ->
            if
            :: rank != me && is_awaited(rank) -> wait_for(me, done(rank), NEED)
            :: else
            fi;
            rank++
        :: else -> rank = 0; break
        od;
        look_at_done();
        with_guests = false
    :: else
    fi
}

inline read()
{
    assert(knows[me].written[writer(from, e)] >= e && data[slot(from, e)] == e)
}

/* Nobody reads any more what was there, and its writer is over. */
inline write()
{
    d_step {
        was = data[slot(group(me), e)];
        assert(!was || knows[me].written[writer(group(me), was)] >= was);
        k = 0;
        do
        :: k < RANKS ->
            assert(!was || !reads(k, group(me), was) || k == me || knows[me].seen[k] >= was);
            k++
        :: else -> break
        od;
        k = 0;
        was = 0;
        data[slot(group(me), e)] = e;
        knows[me].written[me] = e
    }
}

proctype member(byte me)
{
    byte e, from, rank, k, was, all_done, guests;
    bool with_guests;

    do
    :: e < CHUNKS ->
        atomic {
            e++;
            if
            :: root[e] == me
            :: else ->
                from = FROM;
                wait_for(me, slot(from, e), e); /* 1 */
#ifdef DONE_FIRST
                post(me, done(me), e);
#endif
                read()
            fi;
#ifdef PASS_LATE
            post(me, done(me), e);
#endif
            if
            :: root[e] == me || (leads(me) && !alone(me)) ->
                make_room(); /* 2 */
#ifdef POST_FIRST
                post(me, slot(group(me), e), e);
#endif
                if
                :: root[e] != me -> read()
                :: else
                fi;
                write(); /* 3 */
#ifndef POST_FIRST
                post(me, slot(group(me), e), e)
#endif
            :: else
            fi
        }
        atomic {
            knows[me].seen[me] = e;
            if
            :: has_guests -> guests = e
            :: else
            fi;
            post(me, done(me), e) /* 4 */
        }
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
            /* Groups of as many ranks are alike: the first root is in the first one. */
            root[i] = (i == 1 && RANKS % GROUPS == 0 -> any - any % GROUPS : any);
            i++
        :: else -> break
        od;
        i = 0;
        any = 0;
        do
        :: i < RANKS -> run member(i); i++
        :: else -> break
        od
    }
}
