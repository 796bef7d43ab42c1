/* Flags in shared memory (algorithms/wait.h), as the other models use them: each has one writer and
 * only grows, a waiter waits until it is at least some value.
 *
 * What release and acquire guarantee is in the clocks.  A rank knows of each rank up to which round
 * its stores have happened before what it does itself, and up to which its reads are over.  A post
 * hands over what its writer knows, with that value of the flag; a wait takes over what came with
 * the value that it waits for, and no more, even if the flag has gone further.  Who reads what he
 * does not know to be written, or overwrites what he does not know to have been read, would have a
 * data race in C, and fails here, whatever the order in which Spin happens to run the two.
 *
 * RANKS and FLAGS are how many there are, MOST is the largest value of a flag.  Of data there may be
 * several KINDS, counted in rounds each: rank r's of kind i are at i * RANKS + r of a clock.
 *
 * Mutants of everything that includes this:
 *   RELAXED_POST   the post is no release
 *   RELAXED_WAIT   the wait is no acquire
 */
#ifndef KINDS
#define KINDS 1
#endif
typedef clock {
    byte written[KINDS * RANKS];
    byte seen[KINDS * RANKS]
}
typedef history {
    clock at[MOST + 1]
}
byte flags[FLAGS];
clock knows[RANKS];
history told[FLAGS];

#define reached(flag, value) (flags[flag] >= (value))

inline hand_over(me, flag, value)
{
#ifndef RELAXED_POST
    k = 0;
    do
    :: k < KINDS * RANKS ->
        told[flag].at[value].written[k] = knows[me].written[k];
        told[flag].at[value].seen[k] = knows[me].seen[k];
        k++
    :: else -> break
    od;
    k = 0
#else
    skip
#endif
}

inline take_over(me, flag, value)
{
#ifndef RELAXED_WAIT
    k = 0;
    do
    :: k < KINDS * RANKS ->
        knows[me].written[k] = (knows[me].written[k] > told[flag].at[value].written[k] ->
            knows[me].written[k] : told[flag].at[value].written[k]);
        knows[me].seen[k] = (knows[me].seen[k] > told[flag].at[value].seen[k] ->
            knows[me].seen[k] : told[flag].at[value].seen[k]);
        k++
    :: else -> break
    od;
    k = 0
#else
    skip
#endif
}

/* collx_flag_post; `k` is the caller's, for counting. */
inline post(me, flag, value)
{
    d_step {
        flags[flag] = value;
        hand_over(me, flag, value)
    }
}

/* collx_wait_for */
inline wait_for(me, flag, value)
{
    d_step {
        reached(flag, value) ->
        take_over(me, flag, value)
    }
}

/* Store what is there: to return it to its writer (algorithms/within/copy.h).  What is stored meanwhile
 * would be lost; `k` is the caller's. */
inline give_back(place)
{
    k = place;
    place = k;
    k = 0
}

/* Everybody's stores of `round` are known. */
inline all_written(me, round)
{
    d_step {
        k = 0;
        do
        :: k < RANKS -> assert(knows[me].written[k] >= round); k++
        :: else -> break
        od;
        k = 0
    }
}

/* It is known that everybody's reads of `round` are over. */
inline may_write(me, kind, round)
{
    k = 0;
    do
    :: k < RANKS -> assert(k == me || knows[me].seen[(kind) * RANKS + k] >= round); k++
    :: else -> break
    od;
    k = 0
}

inline all_seen(me, kind, round)
{
    d_step {
        may_write(me, kind, round)
    }
}
