/* A barrier among many ranks as a list of steps for each: pure, so that what one does can be proved
 * and counted without a process (tests/topology_test.cc), and made once for each communicator.
 *
 *   1. On each level of the shape the members of a group post that they, and all that they lead,
 *      have arrived; the leader waits for them.
 *   2. At the top everybody hears of everybody by dissemination: in round k each posts, and waits
 *      for the radix - 1 that are j*radix^k before it, j = 1 …, which then have heard from the
 *      radix^k before them.
 *   3. Each leader releases all its groups with one post, and those in them that lead go on.
 *
 * Each rank has two flags, since those that poll for its release must not be disturbed by its
 * arrival.  Every post has a phase, 1 … phases; a flag's value is phases * barriers before + phase,
 * so it only grows, and a fast rank may be in the next barrier.
 */
#ifndef COLLX_BARRIER_PLAN_H
#define COLLX_BARRIER_PLAN_H

#include "algorithms/within/shape.h"

struct collx_barrier_plan {
    struct collx_shape shape;
    int radix;
    int *top; /* [tops]: ranks that lead on the last level */
    int tops;
    int phases;
    int64_t time;                /* ns, by the model of algorithms/within/lines.h */
    int64_t far;                 /* transfers of lines from one package to another */
    int64_t flat_time, flat_far; /* the same of the flat plan, where this one was chosen */
};

/* The flags of a rank. */
enum { COLLX_ARRIVED, COLLX_RELEASED };

struct collx_barrier_step {
    bool post;    /* one's own flag; else wait for it */
    uint8_t what; /* COLLX_ARRIVED or COLLX_RELEASED */
    int rank;     /* whose flag */
    int phase;
};

/* Steps that a rank has at most: it waits for each other rank once at most, and in each of the
 * rounds for radix - 1, fewer than COLLX_RADIX_MAX. */
enum { COLLX_RADIX_MAX = 8 };
#define COLLX_BARRIER_STEPS(ranks) ((ranks) + 16 * COLLX_RADIX_MAX)

/* `fan`: see collx_shape_init(); 0: flat, whatever the places.  2 <= radix <= COLLX_RADIX_MAX.
 * `places` may be NULL: nothing is known.  0 or -ENOMEM. */
int collx_barrier_plan_init(struct collx_barrier_plan *plan, const struct collx_place *places,
                            int ranks, int fan, int radix);
void collx_barrier_plan_finish(struct collx_barrier_plan *plan);

/* Flat, or with the fan for which the model says that it is cheapest, and cheaper than flat by a
 * tenth at least.  The same on all ranks.  0 or -ENOMEM. */
int collx_barrier_plan_choose(struct collx_barrier_plan *plan, const struct collx_place *places,
                              int ranks);

/* What one rank does, into steps[COLLX_BARRIER_STEPS(ranks)].  Returns how many. */
int collx_barrier_plan_steps(const struct collx_barrier_plan *plan, int rank,
                             struct collx_barrier_step *steps);

/* In words, for people. */
void collx_barrier_plan_describe(const struct collx_barrier_plan *plan, char *line, size_t size);

#endif
