#include "algorithms/between/msg_runner.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

int collx_msg_runner_init(struct collx_msg_runner *runner, struct collx_team *team,
                          const struct collx_schedule *schedule, const int *leader)
{
    struct collx_message *message = calloc((size_t)schedule->count + 1, sizeof *message);
    int *round = calloc((size_t)schedule->count + 1, sizeof *round), last = -1;

    *runner = (struct collx_msg_runner){.team = team, .message = message, .round = round};
    if (!message || !round) {
        collx_msg_runner_finish(runner);
        return -ENOMEM;
    }
    for (int i = 0; i < schedule->count; i++) {
        const struct collx_step *step = &schedule->steps[i];

        if (step->kind == COLLX_STEP_CHECK)
            continue;
        if (step->round != last)
            runner->rounds++;
        last = step->round;
        *message++ = (struct collx_message){.rank = leader[step->peer],
                                            .sends = step->kind == COLLX_STEP_WRITE};
        int *count = &round[runner->rounds - 1];
        runner->most = ++*count > runner->most ? *count : runner->most;
    }
    return 0;
}

int collx_msg_runner_run(struct collx_msg_runner *runner)
{
    const struct collx_team *team = runner->team;
    const struct collx_message *message = runner->message;
    int error = 0;

    /* To the end in any case: others are counting on our messages. */
    for (int i = 0; i < runner->rounds; i++) {
        int failed = team->ops->transfer(team->ctx, message, runner->round[i]);
        error = collx_error_first(error, failed);
        message += runner->round[i];
    }
    return error;
}

void collx_msg_runner_finish(struct collx_msg_runner *runner)
{
    free(runner->message);
    free(runner->round);
    *runner = (struct collx_msg_runner){.team = NULL};
}
