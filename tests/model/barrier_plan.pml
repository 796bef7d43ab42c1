/* Barrier of more ranks: run_steps of algorithms/barrier/barrier_shm.c, with the steps that the
 * library's own algorithms/barrier/barrier_plan.c makes: model-plan (plan.c) has printed them into
 * steps.pml.  After the bar are its arguments.
 *
 * Nobody leaves before all have entered, and what each did before it entered has happened before
 * what anybody does afterwards.
 *
 * Dissemination:
 * ok: CALLS=4 | tree 2 2 0
 * ok: CALLS=3 | tree 3 2 0
 * ok: CALLS=3 | tree 4 2 0
 * ok: CALLS=3 | tree 4 3 0
 * Trees: two groups; one of three and one of one; three levels with the top; a chain of groups:
 * ok: CALLS=3 | tree 4 8 4 0.0 0.0 1.1 1.1
 * ok: CALLS=3 | tree 4 8 4 0.0 1.1 0.0 0.0
 * ok: CALLS=3 | tree 4 2 4 0.0 0.0 1.0 2.1
 * ok: CALLS=3 | tree 4 8 2 0.0 0.0 0.0 1.1
 *
 * fails: assertion: CALLS=2 RELAXED_POST | tree 4 2 0
 * fails: assertion: CALLS=2 RELAXED_WAIT | tree 4 8 4 0.0 0.0 1.1 1.1
 * fails: assertion: CALLS=2 NO_PHASES | tree 4 2 0     flags count calls, not steps
 * fails: assertion: CALLS=2 SKIPPED=2 | tree 4 2 0     the waits of this phase are left out
 * fails: assertion: CALLS=2 SKIPPED=1 | tree 4 8 4 0.0 0.0 1.1 1.1
 * fails: assertion: CALLS=2 SKIPPED=2 | tree 4 8 4 0.0 0.0 1.1 1.1
 * fails: assertion: CALLS=2 SKIPPED=3 | tree 4 8 4 0.0 0.0 1.1 1.1
 * fails: assertion: CALLS=2 RESTARTED | tree 4 2 0     flags begin anew with each call
 */
#include "steps.pml"
#define FLAGS (2 * RANKS)
#define MOST (PHASES * CALLS)
#include "flags.pml"

#define ARRIVED 0
#define RELEASED 1
#if defined NO_PHASES
#define value(phase) (call + 1)
#elif defined RESTARTED
#define value(phase) phase
#else
#define value(phase) (call * PHASES + phase)
#endif
#ifndef SKIPPED
#define SKIPPED 0
#endif

#define POST(me, what, phase) post(me, 2 * me + what, value(phase));
#define WAIT(me, rank, what, phase)                                                                \
    if                                                                                             \
    :: phase == SKIPPED                                                                            \
    :: phase != SKIPPED -> wait_for(me, 2 * rank + what, value(phase))                             \
    fi;

#define MEMBER(me, steps)                                                                          \
    active proctype rank_##me()                                                                    \
    {                                                                                              \
        byte call, k;                                                                              \
        do                                                                                         \
        :: call < CALLS ->                                                                         \
            knows[me].written[me] = call + 1;                                                      \
            steps                                                                                  \
            all_written(me, call + 1);                                                             \
            call++                                                                                 \
        :: else -> break                                                                           \
        od                                                                                         \
    }
MEMBERS
