/* Allreduce of small vectors in two groups: run_small of algorithms/allreduce/allreduce_shm.c, with
 * the tables of algorithms/allreduce/allreduce_shares.c.  The even ranks are one group, the odd
 * ones the other; each has a table with a share of each rank, of which its members write their own,
 * and one of them, the relay, that of an outsider.
 *
 * What is read, from whatever table, is what was told in this round, and nobody overwrites what may
 * still be read.
 *
 * ok: RANKS=2 CALLS=4
 * ok: RANKS=3 CALLS=3
 * ok: RANKS=4 CALLS=2
 * fails: assertion: RANKS=3 CALLS=3 RELAXED_POST
 * fails: assertion: RANKS=3 CALLS=3 RELAXED_WAIT
 * fails: assertion: RANKS=3 CALLS=3 ONE_SLOT
 * fails: assertion: RANKS=3 CALLS=2 BLIND         relays do not wait for what they pass on
 * fails: assertion: RANKS=3 CALLS=2 POST_FIRST    relays post before the copy is there
 * fails: deadlock: RANKS=3 CALLS=1 RELAY_LAST     when they have everybody's
 */
#ifdef ONE_SLOT
#define SLOTS 1
#else
#define SLOTS 2
#endif
#define FLAGS (2 * RANKS * SLOTS)
#define MOST CALLS
#include "flags.pml"

byte data[FLAGS];
#define TORN 255
#define group(rank) ((rank) % 2)
#define slot(table, rank) (((table) * RANKS + (rank)) * SLOTS + round % SLOTS)
/* The outsiders of the even ranks are 1, 3, …, those of the odd ones 0, 2, …: so both are numbered
 * by their halves; and so are the members. */
#define members(table) ((RANKS + 1 - (table)) / 2)
#define relay(table, rank) ((rank) / 2 % members(table) * 2 + (table))

inline put(table, rank)
{
    /* What was in this slot nobody reads any more. */
    if
    :: round > SLOTS -> all_seen(_pid, 0, round - SLOTS)
    :: else
    fi;
    data[slot(table, rank)] = TORN;
    data[slot(table, rank)] = round
}

inline pass_on()
{
    other = 0;
    do
    :: other < RANKS ->
        if
        :: group(other) != group(_pid) && relay(group(_pid), other) == _pid ->
#ifndef BLIND
            wait_for(_pid, slot(group(other), other), round);
#endif
#ifdef POST_FIRST
            post(_pid, slot(group(_pid), other), round);
#endif
            assert(data[slot(group(other), other)] == round);
            put(group(_pid), other);
#ifndef POST_FIRST
            post(_pid, slot(group(_pid), other), round)
#endif
        :: else
        fi;
        other++
    :: else -> break
    od
}

active [RANKS] proctype rank()
{
    byte round, other, k;

    do
    :: round < CALLS ->
        round++;
        put(group(_pid), _pid); /* 1 */
        knows[_pid].written[_pid] = round;
        post(_pid, slot(group(_pid), _pid), round);
#ifndef RELAY_LAST
        pass_on(); /* 2 */
#endif
        other = 0;
        do /* 3 */
        :: other < RANKS ->
            if
            :: other == _pid
            :: else -> wait_for(_pid, slot(group(_pid), other), round)
            fi;
            assert(knows[_pid].written[other] >= round &&
                   data[slot(group(_pid), other)] == round);
            other++
        :: else -> break
        od;
#ifdef RELAY_LAST
        pass_on();
#endif
        knows[_pid].seen[_pid] = round
    :: else -> break
    od
}
