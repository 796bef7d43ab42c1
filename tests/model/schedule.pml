/* Barriers between nodes whose writes may be lost: the steps of algorithms/between/schedule.h over
 * segments (hw/segment.h).  The steps are the library's own, made by algorithms/between/nx.c, hsb.c
 * and schedule.c: model-plan (plan.c) has printed them into steps.pml.  After the bar are its
 * arguments.
 *
 * Of each store Spin chooses whether it arrives at once or is under way.  A check is content, and
 * all has arrived; or it says that something is lost, and all that it covers is stored again:
 * what was under way is gone, but what has arrived has arrived, and the node that waited for it may
 * be anywhere by the time of the repetition.  There may be any number of failed checks, and there
 * is no end to the barriers: epochs have BITS bits and wrap round, and are compared as
 * collx_seg_reached does.
 *
 * Nobody leaves a barrier before all have entered it, and nobody waits for ever.
 *
 * ok: BITS=3 | dissemination 2 2
 * ok: BITS=3 | dissemination 3 3
 * ok: BITS=3 | dissemination 3 2
 * ok: BITS=2 | dissemination 4 2
 * ok: BITS=2 | exchange 3 2
 * ok: BITS=2 | exchange 4 2
 * ok: BITS=3 | hsb 3 2 2
 * ok: BITS=2 | hsb 4 2 3
 * ok: BITS=2 BOOLEAN NOTHING_LOST | hsb 2 2 2     flags that the receiver resets, where nothing is lost
 * fails: assertion: BITS=2 BOOLEAN | hsb 2 2 2    a repetition sets a flag that has been reset
 * fails: deadlock: BITS=2 NO_CHECK | hsb 2 2 2    what is lost is not repeated
 * fails: deadlock: BITS=2 NO_CHECK | exchange 3 2
 * fails: deadlock: BITS=1 | dissemination 2 2     an epoch and the next but one look alike
 * fails: assertion: BITS=2 UNSIGNED | dissemination 2 2  flag >= epoch
 * fails: deadlock: BITS=2 EXACTLY | dissemination 2 2    a flag that has gone further does not count
 * fails: deadlock: BITS=3 LATE | dissemination 2 2       what a check called lost arrives after it
 */
#include "steps.pml"

#define EPOCHS (1 << BITS)
byte flag[NODES * SLOTS];
byte entered[NODES];

#define reached(value, epoch) ((value + EPOCHS - epoch) % EPOCHS < EPOCHS / 2)
#if defined BOOLEAN
#define THERE(slot) flag[slot] -> flag[slot] = 0
#define VALUE 1
#elif defined UNSIGNED
#define THERE(slot) flag[slot] >= epoch
#define VALUE epoch
#elif defined EXACTLY
#define THERE(slot) flag[slot] == epoch
#define VALUE epoch
#else
#define THERE(slot) reached(flag[slot], epoch)
#define VALUE epoch
#endif

#ifdef LATE
byte late[NODES * SLOTS]; /* 1 + what is still under way after its check */
#define LOSE(slot) :: late[slot] = 1 + VALUE
#else
#define LOSE(slot)
#endif
#ifdef NOTHING_LOST
#define AT_ONCE(slot)
#else
#define AT_ONCE(slot) :: flag[slot] = VALUE
#endif

#define STORE(node, slot)                                                                          \
    if                                                                                             \
    :: true /* under way */                                                                        \
        AT_ONCE(node * SLOTS + slot)                                                               \
        LOSE(node * SLOTS + slot)                                                                  \
    fi;
#define ARRIVE(node, slot) flag[node * SLOTS + slot] = VALUE;
#if defined NO_CHECK
#define DELIVER(stores, arrivals) stores
#elif defined NOTHING_LOST
#define DELIVER(stores, arrivals) stores d_step { arrivals skip }
#else
#define DELIVER(stores, arrivals)                                                                  \
    do                                                                                             \
    :: stores                                                                                      \
        if                                                                                         \
        :: atomic { true -> arrivals break }                                                       \
        :: true /* lost */                                                                         \
        fi                                                                                         \
    od;
#endif
#define WAIT(me, slot)                                                                             \
    atomic {                                                                                       \
        THERE(me * SLOTS + slot) -> skip                                                           \
    }

/* Barriers entered are counted by three bits, whatever an epoch has. */
#define MANY 8
inline enter(me)
{
    entered[me] = (entered[me] + 1) % MANY
}

inline all_entered(me)
{
    atomic {
        k = 0;
        do
        :: k < NODES -> assert((entered[k] + MANY - entered[me]) % MANY < MANY / 2); k++
        :: else -> k = 0; break
        od
    }
}

#define MEMBER(me, steps)                                                                          \
    active proctype node_##me()                                                                    \
    {                                                                                              \
        byte epoch, k;                                                                             \
        do                                                                                         \
        :: atomic {                                                                                \
                epoch = (epoch + 1) % EPOCHS;                                                      \
                enter(me)                                                                          \
            }                                                                                      \
            steps                                                                                  \
            all_entered(me)                                                                        \
        od                                                                                         \
    }

MEMBERS

#ifdef LATE
active [NODES * SLOTS] proctype network()
{
    byte slot = _pid - NODES;

end:
    do
    :: d_step {
            late[slot] -> flag[slot] = late[slot] - 1;
            late[slot] = 0
        }
    od
}
#endif
