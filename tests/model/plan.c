/* usage: model-plan tree RANKS RADIX FAN [CACHE.PACKAGE …]
 *        model-plan dissemination|exchange NODES N
 *        model-plan hsb NODES F_IN F_OUT
 *
 * Prints what ranks or nodes do in a barrier, for barrier_plan.pml
 * (algorithms/barrier/barrier_plan.h; FAN 0: flat; CACHE.PACKAGE tell where each rank runs) and
 * schedule.pml (algorithms/between/schedule.h). */
#include "algorithms/barrier/barrier_plan.h"
#include "algorithms/between/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

static int print_tree(int ranks, int radix, int fan, char **where)
{
    struct collx_place places[MOST];
    struct collx_barrier_step steps[COLLX_BARRIER_STEPS(MOST)];
    struct collx_barrier_plan plan;

    for (int rank = 0; rank < ranks; rank++) {
        char *end = NULL;
        places[rank] = COLLX_NOWHERE;
        if (!*where)
            continue;
        places[rank].cache = (int)strtol(*where, &end, 10);
        if (*end != '.')
            return -1;
        places[rank].package = (int)strtol(end + 1, &end, 10);
        if (*end)
            return -1;
        where++;
    }
    if (collx_barrier_plan_init(&plan, places, ranks, fan, radix))
        return -1;
    printf("#define RANKS %d\n#define PHASES %d\n#define MEMBERS", ranks, plan.phases);
    for (int rank = 0; rank < ranks; rank++) {
        int count = collx_barrier_plan_steps(&plan, rank, steps);
        printf(" MEMBER(%d,", rank);
        for (int i = 0; i < count; i++) {
            const char *what = steps[i].what == COLLX_ARRIVED ? "ARRIVED" : "RELEASED";
            if (steps[i].post)
                printf(" POST(%d, %s, %d)", rank, what, steps[i].phase);
            else
                printf(" WAIT(%d, %d, %s, %d)", rank, steps[i].rank, what, steps[i].phase);
        }
        printf(")");
    }
    printf("\n");
    collx_barrier_plan_finish(&plan);
    return 0;
}

/* The writes that a check covers come with it: once as what is stored and maybe repeated, and once
 * as what has arrived when the check is content. */
static void print_delivery(const struct collx_step *first, const struct collx_step *check)
{
    printf(" DELIVER(");
    for (const struct collx_step *step = first; step < check; step++)
        printf(" STORE(%d, %d)", step->peer, step->slot);
    printf(",");
    for (const struct collx_step *step = first; step < check; step++)
        printf(" ARRIVE(%d, %d)", step->peer, step->slot);
    printf(")");
}

static int print_schedule(const struct collx_pattern *pattern)
{
    struct collx_schedule schedule;

    printf("#define NODES %d\n#define SLOTS %d\n#define MEMBERS", pattern->nodes, pattern->slots);
    for (int node = 0; node < pattern->nodes; node++) {
        if (collx_schedule_init(&schedule, pattern, node))
            return -1;
        const struct collx_step *written = schedule.steps, *end = &schedule.steps[schedule.count];
        printf(" MEMBER(%d,", node);
        for (const struct collx_step *step = schedule.steps; step < end; step++) {
            if (step->kind == COLLX_STEP_CHECK)
                print_delivery(written, step);
            else if (step->kind == COLLX_STEP_WAIT)
                printf(" WAIT(%d, %d)", node, step->slot);
            if (step->kind != COLLX_STEP_WRITE)
                written = step + 1;
        }
        printf(")");
        collx_schedule_finish(&schedule);
    }
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    struct collx_pattern pattern;
    int count = argc > 2 ? atoi(argv[2]) : 0, error = -1;

    if (count < 1 || count > MOST)
        argc = 0;
    if (argc > 4 && !strcmp(argv[1], "tree") && (argc == 5 || argc == 5 + count)) {
        error = print_tree(count, atoi(argv[3]), atoi(argv[4]), argv + 5);
    } else if (argc == 4 && !strcmp(argv[1], "dissemination")) {
        collx_nx_dissemination(&pattern, count, atoi(argv[3]));
        error = print_schedule(&pattern);
    } else if (argc == 4 && !strcmp(argv[1], "exchange")) {
        collx_nx_exchange(&pattern, count, atoi(argv[3]));
        error = print_schedule(&pattern);
    } else if (argc == 5 && !strcmp(argv[1], "hsb")) {
        collx_hsb(&pattern, count, atoi(argv[3]), atoi(argv[4]));
        error = print_schedule(&pattern);
    }
    if (error)
        fprintf(stderr,
                "model-plan: cannot make that; 1 to %d ranks or nodes, and\n"
                "  tree RANKS RADIX FAN [CACHE.PACKAGE of each rank]\n"
                "  dissemination|exchange NODES N\n  hsb NODES F_IN F_OUT\n",
                MOST);
    return error ? 1 : 0;
}
