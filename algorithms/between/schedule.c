#include "algorithms/between/schedule.h"

#include <errno.h>
#include <stdlib.h>

static void add(struct collx_schedule *schedule, enum collx_step_kind kind, int round,
                const struct collx_crossing *flag)
{
    schedule->steps[schedule->count++] = (struct collx_step){
        .kind = kind,
        .round = round,
        .peer = flag ? flag->peer : -1,
        .slot = flag ? flag->slot : -1,
    };
}

int collx_schedule_init(struct collx_schedule *schedule, const struct collx_pattern *pattern,
                        int node)
{
    struct collx_crossing *flags = malloc((size_t)pattern->width * sizeof *flags);
    size_t steps = 0;
    int error = flags ? 0 : -ENOMEM;

    *schedule =
        (struct collx_schedule){.node = node, .nodes = pattern->nodes, .slots = pattern->slots};
    for (int round = 0; !error && round < pattern->rounds; round++)
        steps += (size_t)pattern->writes(pattern, node, round, flags) + 1 +
                 (size_t)pattern->waits(pattern, node, round, flags);
    if (!error && steps && !(schedule->steps = malloc(steps * sizeof *schedule->steps)))
        error = -ENOMEM;
    for (int round = 0; !error && round < pattern->rounds; round++) {
        int writes = pattern->writes(pattern, node, round, flags);
        for (int i = 0; i < writes; i++)
            add(schedule, COLLX_STEP_WRITE, round, &flags[i]);
        if (writes)
            add(schedule, COLLX_STEP_CHECK, round, NULL);
        int waits = pattern->waits(pattern, node, round, flags);
        for (int i = 0; i < waits; i++)
            add(schedule, COLLX_STEP_WAIT, round, &flags[i]);
    }
    free(flags);
    return error;
}

void collx_schedule_finish(struct collx_schedule *schedule)
{
    free(schedule->steps);
    schedule->steps = NULL;
    schedule->count = 0;
}
