/* Sleeping until a flag is posted: sleep_until_posted and collx_flag_wake of algorithms/wait.c,
 * steps 1 to 3, a and b as there.
 *
 * Stores wait in a store buffer, and get to memory when Spin likes; what reads and writes memory in
 * one (1, b) waits until it is empty, which is how processors do that, and what acquire and release
 * on the same variable guarantee at least.  In the library a sleep has a limit, which is left out
 * here: no post may go unnoticed, or there is a deadlock.
 *
 * ok: WAITERS=1 POSTS=3
 * ok: WAITERS=2 POSTS=2
 * ok: WAITERS=3 POSTS=2
 * fails: deadlock: WAITERS=1 POSTS=1 PLAIN_LOOK    b only reads
 * fails: deadlock: WAITERS=1 POSTS=1 NO_COUNT      1 is left out
 * fails: deadlock: WAITERS=1 POSTS=1 NO_COMPARE    3 sleeps whatever the flag is by then
 * fails: deadlock: WAITERS=2 POSTS=1 WAKE_ONE      b wakes one of them
 * fails: deadlock: WAITERS=1 POSTS=1 WAKE_FIRST    b before a
 */
byte flag;
byte sleepers;
byte buffered; /* a post that is not in memory yet; 0: none */
bool sleeping[WAITERS];

inline wake()
{
    d_step {
        k = 0;
        do
#ifdef WAKE_ONE
        :: k < WAITERS && sleeping[k] -> sleeping[k] = false; break
        :: k < WAITERS && !sleeping[k] -> k++
#else
        :: k < WAITERS -> sleeping[k] = false; k++
#endif
        :: else -> break
        od;
        k = 0
    }
}

inline look_and_wake() /* b */
{
#ifdef PLAIN_LOOK
    any = sleepers;
#else
    atomic {
        !buffered -> any = sleepers
    }
#endif
    if
    :: any -> wake()
    :: else
    fi;
    any = 0
}

/* Each waits for all posts, one after the other. */
active [WAITERS] proctype waiter()
{
    byte value = 1, seen;

    do
    :: value <= POSTS ->
        if
        :: flag >= value -> value++
        :: else ->
#ifndef NO_COUNT
            sleepers++; /* 1 */
#endif
            seen = flag; /* 2 */
            if
            :: seen < value ->
                atomic { /* 3 */
#ifdef NO_COMPARE
                    sleeping[_pid] = true
#else
                    sleeping[_pid] = (flag == seen)
#endif
                }
                !sleeping[_pid]
            :: else
            fi;
#ifndef NO_COUNT
            sleepers--
#else
            skip
#endif
        fi
    :: else -> break
    od
}

active proctype poster()
{
    byte value, any, k;

    do
    :: value < POSTS ->
        value++;
#ifdef WAKE_FIRST
        look_and_wake();
#endif
        atomic {
            !buffered -> buffered = value /* a */
        }
#ifndef WAKE_FIRST
        look_and_wake()
#endif
    :: else -> break
    od
}

active proctype store_buffer()
{
end:
    do
    :: d_step {
            buffered -> flag = buffered;
            buffered = 0
        }
    od
}
