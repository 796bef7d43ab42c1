/* The end of segments that others write into (algorithms/between/seg_links.c, seg_retired.h).  Two
 * nodes make barriers, and then both free what they have, each when it likes.  A check may call a
 * store lost that has arrived, so that its reader goes on, even to its end, while it is still
 * repeated.
 *
 * Nobody ever stores into a segment that has gone, but for a farewell; and everything goes in the
 * end, unless a farewell was given up (IMPATIENT), or its owner ends at once (KILLED).
 *
 * ok: CALLS=2
 * ok: CALLS=2 IMPATIENT
 * ok: CALLS=2 KILLED
 * fails: assertion: CALLS=2 AT_ONCE          unmade without a farewell
 * fails: deadlock: CALLS=2 UNREPEATED        a farewell that was lost
 * fails: assertion: CALLS=2 BEFORE           said before the last barrier is over
 */
#define NODES 2
#define FAREWELL (CALLS + 1)
byte flag[NODES]; /* in each node's segment, written by the other */
bool made[NODES] = true;
byte entered[NODES];
bool dead[NODES];

inline store(value, benign)
{
    atomic {
        if
        :: made[other] && flag[other] < value ->
            if
            :: flag[other] = value
            :: skip /* lost */
            fi
        :: made[other] && flag[other] >= value
        :: !made[other] -> assert(benign || dead[other])
        fi
    }
}

/* Until a check says that it has arrived, or finds that nobody is there. */
inline deliver(value, benign)
{
    do
    :: store(value, benign);
        if
        :: atomic { !made[other] || flag[other] >= value -> break }
        :: true /* it is said to be lost */
        fi
    od
}

inline say_farewell()
{
#ifdef UNREPEATED
    store(FAREWELL, true)
#else
    do
    :: store(FAREWELL, true);
        if
        :: atomic { !made[other] || flag[other] >= FAREWELL -> break }
        :: true
#ifdef IMPATIENT
        :: atomic { true -> gave_up = true; break }
#endif
        fi
    od
#endif
}

bool gave_up;

active [NODES] proctype node()
{
    byte epoch, other = 1 - _pid;

    do
    :: epoch < CALLS ->
        epoch++;
        entered[_pid] = epoch;
#ifdef BEFORE
        if
        :: epoch == CALLS -> say_farewell()
        :: else
        fi;
#endif
        deliver(epoch, false);
        if
        :: flag[_pid] >= epoch
        :: dead[other] -> goto end
        fi;
        assert(entered[other] >= epoch)
    :: else -> break
    od;
#ifndef BEFORE
    say_farewell();
#endif
#ifdef KILLED
    if
    :: atomic { _pid == 0 -> made[_pid] = false; dead[_pid] = true; goto end }
    :: true
    fi;
#endif
#ifndef AT_ONCE
    (flag[_pid] >= FAREWELL || gave_up || dead[other]);
#endif
    atomic {
        if
        :: flag[_pid] >= FAREWELL || dead[other] -> made[_pid] = false
#ifdef AT_ONCE
        :: true -> made[_pid] = false
#endif
        :: else
        fi
    }
end:
    skip
}
