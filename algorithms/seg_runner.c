#include "algorithms/seg_runner.h"

#include "algorithms/seg_retired.h"
#include "algorithms/wait.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_MS = 5000,
    /* Beyond the epochs that flags of the same segment can have. */
    FAREWELL = 1 << 30,
};

#define NOWHERE SIZE_MAX

int collx_seg_runner_open(struct collx_seg_runner *runner, struct collx_team *team,
                          const struct collx_seg_ops *ops, const int *leader, char *why,
                          size_t size)
{
    *runner = (struct collx_seg_runner){.team = team, .ops = ops, .leader = leader};
    collx_seg_retired_sweep();
    return ops->open(&runner->net, &runner->caps, why, size);
}

void collx_seg_runner_borrow(struct collx_seg_runner *runner, struct collx_team *team,
                             const struct collx_seg_ops *ops, struct collx_net *net,
                             const struct collx_seg_caps *caps, const int *leader)
{
    *runner = (struct collx_seg_runner){
        .team = team, .ops = ops, .net = net, .caps = *caps, .leader = leader, .lent = true};
}

int collx_seg_runner_make(struct collx_seg_runner *runner, const struct collx_schedule *schedule,
                          size_t line, struct collx_seg_address *address, char *why, size_t size)
{
    runner->line = line;
    runner->bytes = (size_t)schedule->slots * line;
    return runner->ops->make(runner->net, runner->bytes, &runner->made, &runner->local, address,
                             why, size);
}

static int allocate(struct collx_seg_runner *runner, const struct collx_schedule *schedule)
{
    const size_t nodes = (size_t)schedule->nodes, steps = (size_t)schedule->count;

    runner->nodes = schedule->nodes;
    runner->remote = calloc(nodes, sizeof(struct collx_remote *));
    runner->state = calloc(nodes, sizeof *runner->state);
    runner->farewell_at = malloc(nodes * sizeof *runner->farewell_at);
    runner->farewell_own = malloc(nodes * sizeof *runner->farewell_own);
    runner->round = calloc(steps + 1, sizeof *runner->round);
    runner->to = calloc(steps, sizeof(struct collx_remote *));
    runner->at = calloc(steps, sizeof *runner->at);
    runner->awaited = calloc(steps, sizeof *runner->awaited);
    if (!runner->remote || !runner->state || !runner->farewell_at || !runner->farewell_own ||
        !runner->round || !runner->to || !runner->at || !runner->awaited)
        return -ENOMEM;
    for (size_t node = 0; node < nodes; node++)
        runner->farewell_at[node] = runner->farewell_own[node] = NOWHERE;
    return 0;
}

/* The first of the places that a writer has there, which writer and reader both know. */
static void keep_first(size_t *kept, size_t offset)
{
    *kept = offset < *kept ? offset : *kept;
}

/* From the schedule, what run() does. */
static void compile(struct collx_seg_runner *runner, const struct collx_schedule *schedule)
{
    int writes = 0, waits = 0;

    for (const struct collx_step *step = schedule->steps, *end = step + schedule->count; step < end;
         step++) {
        const size_t offset =
            step->kind == COLLX_STEP_CHECK ? 0 : collx_seg_flag((size_t)step->slot, runner->line);

        if (step->kind == COLLX_STEP_WRITE) {
            if (runner->rounds == 0 || runner->round[runner->rounds - 1].waits)
                runner->rounds++;
            runner->to[writes] = runner->remote[step->peer];
            runner->at[writes++] = offset;
            runner->round[runner->rounds - 1].writes++;
            keep_first(&runner->farewell_at[step->peer], offset);
        } else if (step->kind == COLLX_STEP_WAIT) {
            if (runner->rounds == 0)
                runner->rounds++;
            runner->awaited[waits++] = (struct collx_seg_awaited){offset, step->peer};
            runner->round[runner->rounds - 1].waits++;
            keep_first(&runner->farewell_own[step->peer], offset);
        }
    }
}

static void idle(void *context)
{
    struct collx_seg_runner *runner = context;

    runner->team->ops->progress(runner->team->ctx);
}

int collx_seg_runner_connect(struct collx_seg_runner *runner, const struct collx_schedule *schedule,
                             const struct collx_seg_address *(*address)(const void *context,
                                                                        int node),
                             const void *context, char *why, size_t size)
{
    int error = allocate(runner, schedule);

    if (error)
        snprintf(why, size, "out of memory");
    for (int i = 0; !error && i < schedule->count; i++) {
        const struct collx_step *step = &schedule->steps[i];

        if (step->kind == COLLX_STEP_WRITE && !runner->remote[step->peer])
            error = collx_seg_connect(runner->ops, runner->net, address(context, step->peer),
                                      runner->bytes, &runner->remote[step->peer], CONNECT_MS, idle,
                                      runner, why, size);
    }
    if (!error)
        compile(runner, schedule);
    return error;
}

/* The stores of one round, for collx_seg_deliver. */
struct delivery {
    struct collx_seg_runner *runner;
    struct collx_remote **to;
    const size_t *at;
    unsigned repeated;
};

static void store(void *context, unsigned i)
{
    const struct delivery *delivery = context;

    delivery->runner->ops->store(delivery->to[i], delivery->at[i], delivery->runner->epoch);
}

/* A check takes long enough to keep MPI going after each; but others may want the CPU, if it goes
 * on and on. */
static void repeat(void *context)
{
    struct delivery *delivery = context;

    idle(delivery->runner);
    if (++delivery->repeated > 16)
        sched_yield();
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

    return collx_seg_reached(collx_seg_read(arrival->runner->local, arrival->awaited[i].offset),
                             (uint32_t)epoch);
}

static bool is_missing(const void *with, int rank)
{
    const struct arrival *arrival = with;

    for (int i = 0; i < arrival->count; i++)
        if (arrival->runner->leader[arrival->awaited[i].node] == rank)
            return !has_arrived(with, i, arrival->runner->epoch);
    return false;
}

static void meanwhile(void *with)
{
    const struct arrival *arrival = with;

    if (arrival->runner->ops->progress)
        arrival->runner->ops->progress(arrival->runner->net);
}

static void wait_for(struct collx_seg_runner *runner, const struct collx_seg_awaited *awaited,
                     int count, const char *what)
{
    struct arrival arrival = {runner, awaited, count};
    struct collx_team *team = runner->team;
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

static int lose(struct collx_seg_runner *runner, struct collx_remote *const *to, int count)
{
    const struct collx_team *team = runner->team;

    runner->gone = true;
    for (int node = 0; node < runner->nodes; node++)
        for (int i = 0; i < count; i++)
            if (runner->remote[node] == to[i] && runner->state[i] == COLLX_SEG_GONE)
                collx_warn("rank %d of %s cannot reach the memory of rank %d by %s any more. Its "
                           "process or the network between them has failed; barriers on this "
                           "communicator return an error from now on",
                           team->rank, team->name, runner->leader[node], runner->ops->name);
    return -ENOTCONN;
}

int collx_seg_runner_run(struct collx_seg_runner *runner, const char *what)
{
    struct delivery delivery = {.runner = runner, .to = runner->to, .at = runner->at};
    const struct collx_seg_awaited *awaited = runner->awaited;

    if (runner->gone)
        return -ENOTCONN;
    runner->epoch++;
    runner->used = true;
    for (const struct collx_seg_round *round = runner->round, *end = round + runner->rounds;
         round < end; round++) {
        if (round->writes &&
            collx_seg_deliver(runner->ops, runner->net, delivery.to, (unsigned)round->writes,
                              runner->state, store, repeat, &delivery))
            return lose(runner, delivery.to, round->writes);
        delivery.to += round->writes;
        delivery.at += round->writes;
        wait_for(runner, awaited, round->waits, what);
        awaited += round->waits;
    }
    return 0;
}

/* The last flag to all that are written to. */
static void say_farewell(struct collx_seg_runner *runner)
{
    struct delivery delivery = {.runner = runner, .to = runner->to, .at = runner->at};
    unsigned count = 0;

    runner->epoch += FAREWELL;
    for (int node = 0; node < runner->nodes; node++)
        if (runner->remote[node]) {
            runner->to[count] = runner->remote[node];
            runner->at[count++] = runner->farewell_at[node];
        }
    collx_seg_say_farewell(runner->ops, runner->net, runner->to, count, runner->state, store,
                           &delivery);
}

/* NULL: it need not wait for anybody, or cannot. */
static struct collx_seg_retired *make_retired(const struct collx_seg_runner *runner)
{
    struct collx_seg_retired *retired =
        malloc(sizeof *retired + (size_t)runner->nodes * sizeof *retired->flag);

    if (!retired)
        return NULL;
    *retired = (struct collx_seg_retired){
        .ops = runner->ops,
        .net = runner->net,
        .made = runner->made,
        .local = runner->local,
        .farewell = runner->epoch,
    };
    for (int node = 0; node < runner->nodes; node++)
        if (runner->farewell_own[node] != NOWHERE)
            retired->flag[retired->count++] = runner->farewell_own[node];
    return retired;
}

void collx_seg_runner_finish(struct collx_seg_runner *runner)
{
    struct collx_seg_retired *retired = NULL;

    if (!runner->net)
        return;
    if (runner->used && !runner->lent) {
        /* Who still waits for a flag of an unfinished barrier must not take this for it. */
        if (!runner->gone)
            say_farewell(runner);
        retired = make_retired(runner);
    }
    for (int node = 0; node < runner->nodes && runner->remote; node++)
        runner->ops->disconnect(runner->remote[node]);
    if (retired) {
        collx_seg_retire(retired);
    } else {
        runner->ops->unmake(runner->made);
        runner->ops->close(runner->net);
    }
    free(runner->remote);
    free(runner->state);
    free(runner->farewell_at);
    free(runner->farewell_own);
    free(runner->round);
    free(runner->to);
    free(runner->at);
    free(runner->awaited);
    *runner = (struct collx_seg_runner){.team = NULL};
}
