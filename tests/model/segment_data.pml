/* Data that goes with a flag into a segment (hw/segment.h), through SLOTS slots in turn, from one
 * node to READERS others.  Stores may be lost, checks repeat them, as in schedule.pml; epochs have
 * three bits and wrap round, and there is no end.
 *
 *   writer:  1. wait until the reader has acknowledged epoch e - SLOTS
 *            2. store the data; check
 *            3. store the flag; check
 *   reader:  4. wait for the flag, read the data
 *            5. store the acknowledgement; check
 *
 * ONE_LINE:  data and flag are in one line and stored by one copy(): they arrive together
 * STREAM:    as ONE_LINE, each slot with a flag of its own, and acknowledged every other time
 *            (algorithms/between/seg_streams.h)
 * PIPELINE:  one check a round, for the data of this one and the flag of the one before
 *
 * What is read is the data of this epoch, and nobody waits for ever.
 *
 * ok: READERS=1 SLOTS=1
 * ok: READERS=2 SLOTS=1
 * ok: READERS=1 SLOTS=2
 * ok: READERS=2 SLOTS=2 ONE_LINE
 * ok: READERS=1 SLOTS=2 PIPELINE
 * ok: READERS=1 SLOTS=4 STREAM
 * ok: READERS=2 SLOTS=2 STREAM
 * fails: assertion: READERS=1 SLOTS=2 ONE_CHECK         one check for the data and its flag
 * fails: assertion: READERS=1 SLOTS=2 ONE_LINE NO_ACK   1 is left out
 * fails: assertion: READERS=1 SLOTS=4 STREAM NO_ACK
 * fails: deadlock: READERS=1 SLOTS=1 STREAM             too few slots for acknowledging so seldom
 * fails: assertion: READERS=1 SLOTS=2 ACK_FIRST         5 before the data is read
 * fails: deadlock: READERS=1 SLOTS=2 UNCHECKED_ACK      5 without the check
 * fails: deadlock: READERS=1 SLOTS=1 PIPELINE           the data waits for the flag, which goes with it
 */
#define EPOCHS 8
#define reached(value, epoch) ((value + 2 * EPOCHS - (epoch)) % EPOCHS < EPOCHS / 2)
byte data[READERS * SLOTS];
#ifdef STREAM
#define ONE_LINE
#define tells(epoch) ((epoch) % 2 == 0)
byte flag[READERS * SLOTS];
#define flag_of(reader, epoch) flag[(reader) * SLOTS + (epoch) % SLOTS]
#else
#define tells(epoch) true
byte flag[READERS];
#define flag_of(reader, epoch) flag[reader]
#endif
byte acknowledged[READERS];
#define place(reader, epoch) data[(reader) * SLOTS + (epoch) % SLOTS]

/* It arrives at once, or is under way. */
inline store(where, value)
{
    if
    :: true
    :: where = value
    fi
}

inline store_checked(where, value)
{
    do
    :: store(where, value);
        if
        :: where = value -> break
        :: true
        fi
    od
}

/* To all readers; `i` is the caller's. */
inline store_data(epoch)
{
    do
    :: i < READERS -> store(place(i, epoch), epoch); i++
    :: else -> i = 0; break
    od
}

inline store_flags(epoch)
{
    do
    :: i < READERS -> store(flag_of(i, epoch), epoch); i++
    :: else -> i = 0; break
    od
}

inline store_lines(epoch)
{
    do
    :: i < READERS ->
        if
        :: true
        :: d_step {
                place(i, epoch) = epoch;
                flag_of(i, epoch) = epoch
            }
        fi;
        i++
    :: else -> i = 0; break
    od
}

inline data_arrive(epoch)
{
    do
    :: i < READERS -> place(i, epoch) = epoch; i++
    :: else -> i = 0; break
    od
}

inline flags_arrive(epoch)
{
    do
    :: i < READERS -> flag_of(i, epoch) = epoch; i++
    :: else -> i = 0; break
    od
}

#define before(epoch) ((epoch + EPOCHS - 1) % EPOCHS)

inline deliver()
{
#if defined ONE_LINE || defined ONE_CHECK || defined PIPELINE
    do
    ::
#if defined ONE_LINE
        store_lines(e);
#elif defined ONE_CHECK
        store_data(e);
        store_flags(e);
#else
        store_data(e);
        store_flags(before(e));
#endif
        if
        :: atomic { true -> data_arrive(e) };
#ifdef PIPELINE
            flags_arrive(before(e));
#else
            flags_arrive(e);
#endif
            break
        :: true
        fi
    od
#else
    do
    :: store_data(e); /* 2 */
        if
        :: data_arrive(e); break
        :: true
        fi
    od;
    do
    :: store_flags(e); /* 3 */
        if
        :: flags_arrive(e); break
        :: true
        fi
    od
#endif
}

active proctype writer()
{
    byte e, i;

    do
    :: e = (e + 1) % EPOCHS;
#ifndef NO_ACK
        do /* 1 */
        :: i < READERS -> reached(acknowledged[i], e + EPOCHS - SLOTS); i++
        :: else -> i = 0; break
        od;
#endif
        deliver()
    od
}

active [READERS] proctype reader()
{
    byte e;
    byte me = _pid - 1;

    do
    :: e = (e + 1) % EPOCHS;
        reached(flag_of(me, e), e);
#ifdef ACK_FIRST
        store_checked(acknowledged[me], e);
#endif
        assert(place(me, e) == e); /* 4 */
#ifdef UNCHECKED_ACK
        store(acknowledged[me], e)
#elif !defined ACK_FIRST
        if /* 5 */
        :: tells(e) -> store_checked(acknowledged[me], e)
        :: else
        fi
#else
        skip
#endif
    od
}
