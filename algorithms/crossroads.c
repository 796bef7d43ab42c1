#include "algorithms/crossroads.h"

#include "algorithms/messages.h"
#include "base/error.h"
#include "base/options.h"
#include "hw/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const collx_over_words[] = {
    [COLLX_OVER_AUTO] = "auto", [COLLX_OVER_SHM] = "shm", [COLLX_OVER_SISCI] = "sisci",
    [COLLX_OVER_RMA] = "rma",   [COLLX_OVER_P2P] = "p2p", NULL,
};

/* What each rank tells after each step; only leaders have something to say. */
struct collx_offer {
    int32_t error; /* not 0: it went wrong here */
    uint32_t wish; /* Dolphin's library is named */
    union {
        uint64_t machine; /* of collx_shm_node() */
        uint64_t line;
        struct collx_seg_address address;
        char text[COLLX_CROSSROADS_TEXT]; /* instead of all the others: what went wrong */
    };
};
static_assert(sizeof(struct collx_offer) == 384 && sizeof(struct collx_offer) <= COLLX_GATHER_MAX,
              "it travels as bytes");

static int stay(struct collx_crossroads *crossroads)
{
    (void)crossroads;
    return 0;
}

static int run_segments(struct collx_crossroads *crossroads)
{
    return collx_seg_runner_run(&crossroads->segments, "Barrier")
               ? crossroads->team->ops->unreachable
               : 0;
}

static int run_messages(struct collx_crossroads *crossroads)
{
    return collx_msg_runner_run(&crossroads->messages);
}

int collx_crossroads_init(struct collx_crossroads *crossroads, struct collx_team *team,
                          const struct collx_pattern *pattern, int64_t over)
{
    int *leader = calloc((size_t)pattern->nodes, sizeof *leader), nodes = 0, own = 0;

    *crossroads = (struct collx_crossroads){.team = team,
                                            .over = over,
                                            .nodes = pattern->nodes,
                                            .slots = pattern->slots,
                                            .leader = leader,
                                            .run = stay};
    if (!leader)
        return -ENOMEM;
    for (int rank = 0; team->node && rank < team->size; rank++)
        if (team->node[rank] == nodes)
            leader[nodes++] = rank;
    own = team->node ? team->node[team->rank] : 0;
    crossroads->leads = leader[own] == team->rank;
    int error = crossroads->leads ? collx_schedule_init(&crossroads->schedule, pattern, own) : 0;
    if (!error && pattern->nodes > 1) {
        crossroads->offers = calloc((size_t)team->size, sizeof *crossroads->offers);
        error = crossroads->offers ? 0 : -ENOMEM;
    }
    if (error)
        collx_crossroads_finish(crossroads);
    return error;
}

static int tell(struct collx_crossroads *crossroads, const struct collx_offer *own, char *why,
                size_t size)
{
    const struct collx_team *team = crossroads->team;
    int error = team->ops->gather(team->ctx, own, crossroads->offers, sizeof *own);

    if (error)
        snprintf(why, size, "the ranks could not agree on it");
    return error;
}

static const struct collx_offer *offer_of(const struct collx_crossroads *crossroads, int node)
{
    return &crossroads->offers[crossroads->leader[node]];
}

/* Everybody hears whether a step went well everywhere; `text` says what went wrong here.  0, or
 * not 0 on all ranks and in `why` what went wrong on the first. */
static int agree(struct collx_crossroads *crossroads, const struct collx_offer *own,
                 const char *text, char *why, size_t size)
{
    int error = tell(crossroads, own, why, size), failed = 0;

    if (error)
        return error;
    while (failed < crossroads->nodes && !offer_of(crossroads, failed)->error)
        failed++;
    if (failed == crossroads->nodes)
        return 0;
    struct collx_offer words = {.error = 1};
    snprintf(words.text, sizeof words.text, "%s", text);
    error = tell(crossroads, &words, why, size);
    if (error)
        return error;
    const struct collx_offer *theirs = offer_of(crossroads, failed);
    snprintf(why, size, "%s on rank %d: %.*s", crossroads->by, crossroads->leader[failed],
             (int)sizeof theirs->text - 1, theirs->text);
    return COLLX_EUNFIT;
}

static const struct collx_seg_address *address_of(const void *context, int node)
{
    return &offer_of(context, node)->address;
}

/* One of the drivers of hw/, or one that is lent, which all ranks open.  0, or not 0 and why. */
static int open_driver(struct collx_crossroads *crossroads, const char *driver, char *why,
                       size_t size)
{
    struct collx_team *team = crossroads->team;
    const struct collx_seg_ops *ops = collx_seg_find(driver);
    struct collx_seg_caps caps;
    struct collx_net *net = NULL;

    if (ops)
        return crossroads->leads ? collx_seg_runner_open(&crossroads->segments, team, ops,
                                                         crossroads->leader, why, size)
                                 : 0;
    if (!team->ops->segments) {
        snprintf(why, size, "there is none here");
        return COLLX_EUNFIT;
    }
    int error =
        team->ops->segments(team->ctx, driver, crossroads->leader, crossroads->nodes,
                            (size_t)crossroads->slots * COLLX_LINE, &ops, &net, &caps, why, size);
    if (!error && crossroads->leads)
        collx_seg_runner_borrow(&crossroads->segments, team, ops, net, &caps, crossroads->leader);
    return error;
}

/* As agree(). */
static int try_segments(struct collx_crossroads *crossroads, const char *driver, char *why,
                        size_t size)
{
    struct collx_seg_runner *runner = &crossroads->segments;
    const struct collx_schedule *schedule = &crossroads->schedule;
    const bool leads = crossroads->leads;
    struct collx_offer own = {0};
    char text[COLLX_CROSSROADS_TEXT] = "";
    size_t line = 0;

    crossroads->by = driver;
    own.error = open_driver(crossroads, driver, text, sizeof text);
    own.line = runner->caps.line;
    int error = agree(crossroads, &own, text, why, size);
    for (int node = 0; !error && node < crossroads->nodes; node++)
        line = offer_of(crossroads, node)->line > line ? offer_of(crossroads, node)->line : line;
    if (!error) {
        if (leads)
            own.error =
                collx_seg_runner_make(runner, schedule, line, &own.address, text, sizeof text);
        error = agree(crossroads, &own, text, why, size);
    }
    if (!error) {
        if (leads)
            own.error = collx_seg_runner_connect(runner, schedule, address_of, crossroads, text,
                                                 sizeof text);
        error = agree(crossroads, &own, text, why, size);
    }
    if (error)
        collx_seg_runner_finish(runner);
    else
        crossroads->run = run_segments;
    return error;
}

/* What went wrong may differ between ranks. */
static int use_messages(struct collx_crossroads *crossroads, char *why, size_t size)
{
    struct collx_team *team = crossroads->team;
    int error = crossroads->leads ? collx_msg_runner_init(&crossroads->messages, team,
                                                          &crossroads->schedule, crossroads->leader)
                                  : 0;

    crossroads->by = collx_over_words[COLLX_OVER_P2P];
    crossroads->run = run_messages;
    if (error)
        snprintf(why, size, "out of memory");
    /* All have to, whatever went wrong. */
    int failed = collx_listen(team, crossroads->messages.most, why, size);
    return error ? error : failed;
}

/* Dolphin's adapters are between real nodes, unless someone names the library.  Nodes that are none
 * share memory. */
static int use_best(struct collx_crossroads *crossroads, char *why, size_t size)
{
    const struct collx_offer own = {.machine = collx_shm_node(),
                                    .wish = *collx_option_text(COLLX_OPTION_SISCI_LIBRARY) != 0};
    bool one_machine = true, wish = false;
    int error = tell(crossroads, &own, why, size);

    if (error)
        return error;
    for (int node = 0; node < crossroads->nodes; node++) {
        const struct collx_offer *offer = offer_of(crossroads, node);
        one_machine = one_machine && offer->machine == offer_of(crossroads, 0)->machine;
        wish = wish || offer->wish;
    }
    if (wish || !one_machine) {
        error = try_segments(crossroads, collx_over_words[COLLX_OVER_SISCI], crossroads->passed,
                             sizeof crossroads->passed);
        if (!error)
            return 0;
    }
    if (one_machine && !try_segments(crossroads, collx_over_words[COLLX_OVER_SHM],
                                     crossroads->passed, sizeof crossroads->passed))
        return 0;
    return use_messages(crossroads, why, size);
}

int collx_crossroads_connect(struct collx_crossroads *crossroads, char *why, size_t size)
{
    int error = 0;

    if (crossroads->nodes > 1 && crossroads->over == COLLX_OVER_AUTO)
        error = use_best(crossroads, why, size);
    else if (crossroads->nodes > 1 && crossroads->over == COLLX_OVER_P2P)
        error = use_messages(crossroads, why, size);
    else if (crossroads->nodes > 1)
        error = try_segments(crossroads, collx_over_words[crossroads->over], why, size);
    free(crossroads->offers);
    crossroads->offers = NULL;
    /* All that it says is in what runs it now. */
    collx_schedule_finish(&crossroads->schedule);
    return error;
}

const char *collx_crossroads_describe(const struct collx_crossroads *crossroads, char *text,
                                      size_t size)
{
    int length =
        snprintf(text, size, "flags of %d nodes cross by %s", crossroads->nodes, crossroads->by);

    if (*crossroads->passed && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", not by %s", crossroads->passed);
    return text;
}

void collx_crossroads_finish(struct collx_crossroads *crossroads)
{
    collx_seg_runner_finish(&crossroads->segments);
    collx_msg_runner_finish(&crossroads->messages);
    collx_schedule_finish(&crossroads->schedule);
    free(crossroads->offers);
    free(crossroads->leader);
    *crossroads = (struct collx_crossroads){.team = NULL};
}
