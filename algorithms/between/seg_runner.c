#include "algorithms/between/seg_runner.h"

#include "algorithms/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Beyond the epochs that flags of the same segment can have. */
enum { FAREWELL = 1 << 30 };

size_t collx_seg_runner_space(int slots, size_t line)
{
    return (size_t)slots * line;
}

static int allocate(struct collx_seg_runner *runner, size_t steps)
{
    runner->round = calloc(steps + 1, sizeof *runner->round);
    runner->to = calloc(steps, sizeof *runner->to);
    runner->at = calloc(steps, sizeof *runner->at);
    runner->awaited = calloc(steps, sizeof *runner->awaited);
    return runner->round && runner->to && runner->at && runner->awaited ? 0 : -ENOMEM;
}

/* The first of the places that a writer has there, which writer and reader both know. */
static void keep_first(size_t *kept, size_t offset)
{
    *kept = offset < *kept ? offset : *kept;
}

/* From the schedule, what run() does. */
static void compile(struct collx_seg_runner *runner, const struct collx_schedule *schedule)
{
    struct collx_seg_links *links = runner->links;
    int writes = 0, waits = 0;

    for (const struct collx_step *step = schedule->steps, *end = step + schedule->count; step < end;
         step++) {
        if (step->kind == COLLX_STEP_CHECK)
            continue;
        const size_t offset = collx_seg_flag((size_t)step->slot, links->caps.line);
        struct collx_seg_link *link = &links->link[step->peer];

        if (step->kind == COLLX_STEP_WRITE) {
            if (runner->rounds == 0 || runner->round[runner->rounds - 1].waits)
                runner->rounds++;
            runner->to[writes] = step->peer;
            runner->at[writes++] = offset;
            runner->round[runner->rounds - 1].writes++;
            keep_first(&link->farewell_at, offset);
        } else {
            if (runner->rounds == 0)
                runner->rounds++;
            runner->awaited[waits++] = (struct collx_seg_awaited){offset, step->peer};
            runner->round[runner->rounds - 1].waits++;
            keep_first(&link->farewell_own, offset);
        }
    }
}

int collx_seg_runner_connect(struct collx_seg_runner *runner, struct collx_seg_links *links,
                             const struct collx_schedule *schedule,
                             const struct collx_seg_addresses *addresses, char *why, size_t size)
{
    *runner = (struct collx_seg_runner){.links = links};
    int error = allocate(runner, (size_t)schedule->count);

    if (error)
        snprintf(why, size, "out of memory");
    for (int i = 0; !error && i < schedule->count; i++)
        if (schedule->steps[i].kind == COLLX_STEP_WRITE)
            error = collx_seg_links_connect(links, schedule->steps[i].peer, addresses, why, size);
    if (!error)
        compile(runner, schedule);
    return error;
}

/* The stores of one round, for collx_seg_links_deliver. */
struct delivery {
    const struct collx_seg_runner *runner;
    const int *to;
    const size_t *at;
};

static void store(void *context, unsigned i)
{
    const struct delivery *delivery = context;
    const struct collx_seg_links *links = delivery->runner->links;

    links->ops->store(links->link[delivery->to[i]].remote, delivery->at[i],
                      delivery->runner->epoch);
}

/* What is waited for in one round, for collx_wait_long. */
struct arrival {
    const struct collx_seg_runner *runner;
    const struct collx_seg_awaited *awaited;
    int count;
};

static bool has_arrived(const void *with, int i, uint64_t epoch)
{
    const struct arrival *arrival = with;

    return collx_seg_reached(
        collx_seg_read(arrival->runner->links->local, arrival->awaited[i].offset), (uint32_t)epoch);
}

static bool is_missing(const void *with, int rank)
{
    const struct arrival *arrival = with;

    for (int i = 0; i < arrival->count; i++)
        if (arrival->runner->links->leader[arrival->awaited[i].node] == rank)
            return !has_arrived(with, i, arrival->runner->epoch);
    return false;
}

static void meanwhile(void *with)
{
    const struct collx_seg_links *links = ((const struct arrival *)with)->runner->links;

    if (links->ops->progress)
        links->ops->progress(links->net);
}

static void wait_for(struct collx_seg_runner *runner, const struct collx_seg_awaited *awaited,
                     int count, const char *what)
{
    struct arrival arrival = {runner, awaited, count};
    struct collx_team *team = runner->links->team;
    int spin = team->spins;

    for (int i = 0; i < count; i++)
        while (!has_arrived(&arrival, i, runner->epoch)) {
            if (--spin < 0) {
                collx_wait_long(team,
                                &(struct collx_wait){.count = count,
                                                     .what = what,
                                                     .meanwhile = meanwhile,
                                                     .reached = has_arrived,
                                                     .missing = is_missing,
                                                     .relayed = true,
                                                     .with = &arrival},
                                runner->epoch);
                return;
            }
            meanwhile(&arrival);
            collx_poll_gap(team);
        }
}

int collx_seg_runner_run(struct collx_seg_runner *runner, const char *what)
{
    struct delivery delivery = {runner, runner->to, runner->at};
    const struct collx_seg_awaited *awaited = runner->awaited;

    if (runner->links->gone)
        return -ENOTCONN;
    runner->epoch++;
    runner->links->used = true;
    for (const struct collx_seg_round *round = runner->round, *end = round + runner->rounds;
         round < end; round++) {
        const int error = collx_seg_links_deliver(runner->links, delivery.to,
                                                  (unsigned)round->writes, store, &delivery);
        if (error)
            return error;
        delivery.to += round->writes;
        delivery.at += round->writes;
        wait_for(runner, awaited, round->waits, what);
        awaited += round->waits;
    }
    return 0;
}

void collx_seg_runner_finish(struct collx_seg_runner *runner)
{
    if (runner->links)
        runner->links->farewell = runner->epoch + FAREWELL;
    free(runner->round);
    free(runner->to);
    free(runner->at);
    free(runner->awaited);
    *runner = (struct collx_seg_runner){.links = NULL};
}
