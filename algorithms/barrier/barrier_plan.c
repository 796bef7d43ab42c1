#include "algorithms/barrier/barrier_plan.h"

#include "algorithms/within/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The highest level on which this rank leads others; -1: on none. */
static int leads_up_to(const struct collx_shape *shape, int rank)
{
    int highest = -1;

    for (int level = 0; level < shape->levels && shape->leader[level][rank] == rank; level++)
        for (int other = rank + 1; other < shape->ranks && highest < level; other++)
            if (shape->leader[level][other] == rank)
                highest = level;
    return highest;
}

/* Those that wait for a release do so in the order of the levels, the last one first. */
static int release_phase(const struct collx_barrier_plan *plan, int leader)
{
    return plan->phases - leads_up_to(&plan->shape, leader);
}

static int rounds_of(int tops, int radix)
{
    int rounds = 0;

    for (int64_t reach = 1; reach < tops; reach *= radix)
        rounds++;
    return rounds;
}

static int disseminate(const struct collx_barrier_plan *plan, int rank,
                       struct collx_barrier_step *steps)
{
    int count = 0, own = 0, phase = plan->shape.levels;

    while (own < plan->tops && plan->top[own] != rank)
        own++;
    for (int64_t reach = 1; reach < plan->tops; reach *= plan->radix) {
        phase++;
        steps[count++] = (struct collx_barrier_step){true, COLLX_ARRIVED, rank, phase};
        for (int64_t j = 1; j < plan->radix && j * reach < plan->tops; j++) {
            int from = plan->top[(own + plan->tops - j * reach) % plan->tops];
            steps[count++] = (struct collx_barrier_step){false, COLLX_ARRIVED, from, phase};
        }
    }
    return count;
}

int collx_barrier_plan_steps(const struct collx_barrier_plan *plan, int rank,
                             struct collx_barrier_step *steps)
{
    const struct collx_shape *shape = &plan->shape;
    int count = 0, level = 0;

    for (; level < shape->levels && shape->leader[level][rank] == rank; level++) /* 1 */
        for (int other = rank + 1; other < shape->ranks; other++)
            if (shape->leader[level][other] == rank)
                steps[count++] =
                    (struct collx_barrier_step){false, COLLX_ARRIVED, other, level + 1};
    if (level < shape->levels) {
        int leader = shape->leader[level][rank];
        steps[count++] = (struct collx_barrier_step){true, COLLX_ARRIVED, rank, level + 1};
        steps[count++] =
            (struct collx_barrier_step){false, COLLX_RELEASED, leader, release_phase(plan, leader)};
    } else {
        count += disseminate(plan, rank, &steps[count]); /* 2 */
    }
    if (leads_up_to(shape, rank) >= 0) /* 3 */
        steps[count++] =
            (struct collx_barrier_step){true, COLLX_RELEASED, rank, release_phase(plan, rank)};
    return count;
}

static int count_cost(struct collx_barrier_plan *plan, const struct collx_place *places)
{
    const int ranks = plan->shape.ranks;
    struct collx_lines *lines = collx_lines_create(plan->phases + 1, ranks, 2 * ranks);
    struct collx_barrier_step *steps = malloc(COLLX_BARRIER_STEPS((size_t)ranks) * sizeof *steps);

    for (int rank = 0; lines && steps && rank < ranks; rank++) {
        int count = collx_barrier_plan_steps(plan, rank, steps);
        for (const struct collx_barrier_step *step = steps; step < &steps[count]; step++)
            if (!step->post)
                collx_lines_read(lines, step->phase, rank, 2 * step->rank + step->what,
                                 places ? collx_place_distance(&places[rank], &places[step->rank])
                                        : COLLX_FAR);
    }
    if (lines && steps) {
        plan->time = collx_lines_time(lines);
        plan->far = collx_lines_far(lines);
    }
    int error = lines && steps ? 0 : -ENOMEM;
    free(steps);
    collx_lines_destroy(lines);
    return error;
}

int collx_barrier_plan_init(struct collx_barrier_plan *plan, const struct collx_place *places,
                            int ranks, int fan, int radix)
{
    *plan = (struct collx_barrier_plan){.radix = radix};
    int error = collx_shape_init(&plan->shape, fan ? places : NULL, ranks, fan);
    if (error)
        return error;
    plan->top = calloc((size_t)ranks, sizeof *plan->top);
    for (int rank = 0; plan->top && rank < ranks; rank++)
        if (collx_shape_takes_part(&plan->shape, plan->shape.levels, rank))
            plan->top[plan->tops++] = rank;
    plan->phases = 2 * plan->shape.levels + rounds_of(plan->tops, radix);
    error = plan->top ? count_cost(plan, places) : -ENOMEM;
    if (error)
        collx_barrier_plan_finish(plan);
    return error;
}

void collx_barrier_plan_finish(struct collx_barrier_plan *plan)
{
    collx_shape_finish(&plan->shape);
    free(plan->top);
    plan->top = NULL;
}

int collx_barrier_plan_choose(struct collx_barrier_plan *plan, const struct collx_place *places,
                              int ranks)
{
    /* Some figures of the model are assumed: less than a tenth is no reason. */
    static const int fans[] = {4, 8, 16, 32, INT32_MAX};
    int error = collx_barrier_plan_init(plan, places, ranks, 0, COLLX_RADIX_MAX);

    plan->flat_time = plan->time;
    plan->flat_far = plan->far;
    for (size_t i = 0; places && !error && i < sizeof fans / sizeof *fans; i++) {
        struct collx_barrier_plan other;
        error = collx_barrier_plan_init(&other, places, ranks, fans[i], COLLX_RADIX_MAX);
        if (error) {
            collx_barrier_plan_finish(plan);
        } else if (other.time < plan->time && other.time * 10 <= plan->flat_time * 9) {
            other.flat_time = plan->flat_time;
            other.flat_far = plan->flat_far;
            collx_barrier_plan_finish(plan);
            *plan = other;
        } else {
            collx_barrier_plan_finish(&other);
        }
    }
    return error;
}

void collx_barrier_plan_describe(const struct collx_barrier_plan *plan, char *line, size_t size)
{
    const struct collx_shape *shape = &plan->shape;
    size_t length = 0;

    if (!shape->levels) {
        snprintf(line, size,
                 "dissemination of radix %d, as nothing shorter follows from the "
                 "caches and packages that are known",
                 plan->radix);
        return;
    }
    length = (size_t)snprintf(line, size, "a tree of");
    for (int level = 0; level < shape->levels && length < size; level++) {
        int groups = 0;
        for (int rank = 0; rank < shape->ranks; rank++)
            groups += shape->leader[level][rank] == rank;
        length +=
            (size_t)snprintf(line + length, size - length, "%s %d", level ? ", then" : "", groups);
    }
    if (length < size)
        snprintf(line + length, size - length,
                 " groups by shared caches and packages; %" PRId64
                 " lines cross between packages, not %" PRId64 "; some %" PRId64
                 " ns a call, not %" PRId64,
                 plan->far, plan->flat_far, plan->time, plan->flat_time);
}
