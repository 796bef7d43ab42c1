/* Barrier of ranks on nodes: run_leader and run_member of algorithms/between/nodes.c.  Each node has RANKS /
 * NODES ranks, of which the first leads.  What leaders do among themselves is schedule.pml's; here
 * each tells each other one that it has come.
 *
 * Nobody leaves before all have entered, and what each did before it entered has happened before
 * what anybody does afterwards.  What the leader hands to its members beside the flag that releases
 * them is read before it is overwritten.
 *
 * ok: NODES=1 RANKS=3 CALLS=3
 * ok: NODES=2 RANKS=2 CALLS=4
 * ok: NODES=2 RANKS=4 CALLS=2
 * ok: NODES=3 RANKS=3 CALLS=2
 * fails: assertion: NODES=2 RANKS=4 CALLS=2 RELAXED_POST
 * fails: assertion: NODES=2 RANKS=4 CALLS=2 RELAXED_WAIT
 * fails: assertion: NODES=1 RANKS=3 CALLS=2 NOT_ALL      the last member is not waited for
 * fails: assertion: NODES=2 RANKS=4 CALLS=2 RELEASE_SOON  before the leaders have met
 * fails: assertion: NODES=1 RANKS=2 CALLS=2 RESULT_SOON  before the members have come
 */
#define MEMBERS (RANKS / NODES)
#define ARRIVED(rank) (rank)
#define RELEASED(rank) (RANKS + rank) /* of the node that it leads */
#define CROSSED(rank) (2 * RANKS + rank)
#define FLAGS (3 * RANKS)
#define MOST CALLS
#define KINDS 2 /* what was done before, and the result */
#include "flags.pml"

#define leader_of(rank) (rank - rank % MEMBERS)
byte result[RANKS]; /* of the node that it leads: whose round */

inline write_result(me)
{
    d_step {
        other = me + 1;
        do
        :: other < me + MEMBERS ->
            assert(knows[me].seen[RANKS + other] >= round - 1);
            other++
        :: else -> break
        od;
        result[me] = round;
        knows[me].written[RANKS + me] = round
    }
}

inline wait_for_members(me, last)
{
    other = me + 1;
    do
    :: other < last -> wait_for(me, ARRIVED(other), round); other++
    :: else -> break
    od
}

inline cross(me)
{
    post(me, CROSSED(me), round);
    other = 0;
    do
    :: other < RANKS ->
        if
        :: other != me -> wait_for(me, CROSSED(other), round)
        :: else
        fi;
        other = other + MEMBERS
    :: else -> break
    od
}

inline lead(me)
{
#ifdef RESULT_SOON
    write_result(me);
#endif
#ifdef NOT_ALL
    wait_for_members(me, me + MEMBERS - 1);
#else
    wait_for_members(me, me + MEMBERS);
#endif
#ifdef RELEASE_SOON
    write_result(me);
    post(me, RELEASED(me), round);
    cross(me)
#else
    cross(me);
#ifndef RESULT_SOON
    write_result(me);
#endif
    post(me, RELEASED(me), round)
#endif
}

inline follow(me)
{
    post(me, ARRIVED(me), round);
    wait_for(me, RELEASED(leader_of(me)), round);
    d_step {
        assert(knows[me].written[RANKS + leader_of(me)] == round);
        assert(result[leader_of(me)] == round)
    }
    knows[me].seen[RANKS + me] = round
}

active [RANKS] proctype rank()
{
    byte round, other, k;

    do
    :: round < CALLS ->
        round++;
        knows[_pid].written[_pid] = round; /* entered */
        if
        :: _pid % MEMBERS == 0 -> lead(_pid)
        :: else -> follow(_pid)
        fi;
        all_written(_pid, round)
    :: else -> break
    od
}
