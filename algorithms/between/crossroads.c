#include "algorithms/between/crossroads.h"

#include "algorithms/messages.h"
#include "base/error.h"
#include "base/options.h"
#include "hw/shm.h"

#include <stdio.h>

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
        struct {
            uint32_t line, flags; /* of struct collx_seg_caps */
        } caps;
        struct collx_seg_address address;
    };
};
static_assert(sizeof(struct collx_offer) <= COLLX_GATHER_MAX, "it travels as bytes");

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

/* `pattern` is NULL where there is no schedule. */
static int init(struct collx_crossroads *crossroads, struct collx_team *team, int64_t over,
                const struct collx_pattern *pattern, int most)
{
    *crossroads = (struct collx_crossroads){.team = team,
                                            .over = over,
                                            .slots = pattern ? pattern->slots : 0,
                                            .most = most,
                                            .run = stay};
    int error = collx_leaders_init(&crossroads->leaders, team);
    if (error)
        return error;
    if (crossroads->leaders.leads && pattern)
        error = collx_schedule_init(&crossroads->schedule, pattern, crossroads->leaders.own);
    if (error)
        collx_crossroads_finish(crossroads);
    return error;
}

int collx_crossroads_init(struct collx_crossroads *crossroads, struct collx_team *team,
                          const struct collx_pattern *pattern, int64_t over)
{
    return init(crossroads, team, over, pattern, 0);
}

int collx_crossroads_init_messages(struct collx_crossroads *crossroads, struct collx_team *team,
                                   int64_t over, int most)
{
    return init(crossroads, team, over, NULL, most);
}

static const struct collx_offer *offer_of(const struct collx_crossroads *crossroads, int node)
{
    return collx_leaders_heard(&crossroads->leaders, node, sizeof(struct collx_offer));
}

/* Everybody hears whether a step went well everywhere; `text` says what went wrong here.  0, or
 * not 0 on all ranks and in `why` what went wrong on the first. */
static int agree(struct collx_crossroads *crossroads, const struct collx_offer *own,
                 const char *text, char *why, size_t size)
{
    struct collx_leaders *leaders = &crossroads->leaders;
    int error = collx_leaders_tell(leaders, own, sizeof *own, why, size), failed = 0;

    if (error)
        return error;
    while (failed < leaders->nodes && !offer_of(crossroads, failed)->error)
        failed++;
    return failed == leaders->nodes
               ? 0
               : collx_leaders_agree(leaders, crossroads->by, own->error, text, why, size);
}

static const struct collx_seg_address *address_of(const void *context, int node)
{
    return &offer_of(context, node)->address;
}

/* One that is lent, which all ranks open. */
static int borrow_driver(struct collx_crossroads *crossroads, const char *driver, char *why,
                         size_t size)
{
    struct collx_team *team = crossroads->team;
    const struct collx_leaders *leaders = &crossroads->leaders;
    const struct collx_seg_ops *ops = NULL;
    struct collx_seg_caps caps;
    struct collx_net *net = NULL;
    const size_t bytes = crossroads->most ? collx_seg_streams_most(leaders->nodes)
                                          : collx_seg_runner_space(crossroads->slots, COLLX_LINE);

    if (!team->ops->segments) {
        snprintf(why, size, "there are none here; over=p2p needs none");
        return COLLX_EUNFIT;
    }
    int error = team->ops->segments(team->ctx, driver, leaders->rank, leaders->nodes, bytes, &ops,
                                    &net, &caps, why, size);
    if (!error && leaders->leads)
        collx_seg_links_borrow(&crossroads->links, leaders, ops, net, &caps);
    return error;
}

/* The three steps of a leader, for flags or for messages; the first one is done by all ranks. */
static int open_driver(struct collx_crossroads *crossroads, const char *driver, char *why,
                       size_t size)
{
    const struct collx_leaders *leaders = &crossroads->leaders;
    const struct collx_seg_ops *ops = collx_seg_find(driver);
    int error = 0;

    if (!ops)
        error = borrow_driver(crossroads, driver, why, size);
    else if (leaders->leads)
        error = collx_seg_links_open(&crossroads->links, leaders, ops, why, size);
    return error || !leaders->leads || !crossroads->most
               ? error
               : collx_seg_streams_fit(&crossroads->links, why, size);
}

static int make_segment(struct collx_crossroads *crossroads, struct collx_seg_address *address,
                        char *why, size_t size)
{
    struct collx_seg_links *links = &crossroads->links;
    struct collx_seg_caps *caps = &links->caps;
    size_t least = caps->line;

    for (int node = 0; node < crossroads->leaders.nodes; node++) {
        const struct collx_offer *offer = offer_of(crossroads, node);
        least = offer->caps.line < least ? offer->caps.line : least;
        caps->line = offer->caps.line > caps->line ? offer->caps.line : caps->line;
        caps->flags &= offer->caps.flags;
    }
    const size_t bytes =
        crossroads->most
            ? collx_seg_streams_lay_out(&crossroads->streams, links, crossroads->leaders.own, least)
            : collx_seg_runner_space(crossroads->slots, caps->line);
    return collx_seg_links_make(links, bytes, address, why, size);
}

static int connect_segments(struct collx_crossroads *crossroads, char *why, size_t size)
{
    const struct collx_seg_addresses addresses = {address_of, crossroads};

    return crossroads->most
               ? collx_seg_streams_connect(&crossroads->streams, &addresses, why, size)
               : collx_seg_runner_connect(&crossroads->segments, &crossroads->links,
                                          &crossroads->schedule, &addresses, why, size);
}

static void finish_segments(struct collx_crossroads *crossroads)
{
    collx_seg_runner_finish(&crossroads->segments);
    collx_seg_streams_finish(&crossroads->streams);
    collx_seg_links_finish(&crossroads->links);
}

/* As agree(). */
static int try_segments(struct collx_crossroads *crossroads, const char *driver, char *why,
                        size_t size)
{
    const bool leads = crossroads->leaders.leads;
    struct collx_seg_links *links = &crossroads->links;
    struct collx_offer own = {0};
    char text[COLLX_CROSSROADS_TEXT] = "";

    crossroads->by = driver;
    own.error = open_driver(crossroads, driver, text, sizeof text);
    own.caps.line = (uint32_t)links->caps.line;
    own.caps.flags = links->caps.flags;
    int error = agree(crossroads, &own, text, why, size);
    if (!error) {
        if (leads)
            own.error = make_segment(crossroads, &own.address, text, sizeof text);
        error = agree(crossroads, &own, text, why, size);
    }
    if (!error) {
        if (leads)
            own.error = connect_segments(crossroads, text, sizeof text);
        error = agree(crossroads, &own, text, why, size);
    }
    if (error) {
        finish_segments(crossroads);
    } else {
        crossroads->run = run_segments;
        if (leads && links->ops->settle)
            links->ops->settle(links->made);
    }
    return error;
}

/* What went wrong may differ between ranks. */
static int use_messages(struct collx_crossroads *crossroads, char *why, size_t size)
{
    struct collx_team *team = crossroads->team;
    int error = crossroads->leaders.leads && !crossroads->most
                    ? collx_msg_runner_init(&crossroads->messages, team, &crossroads->schedule,
                                            crossroads->leaders.rank)
                    : 0;

    crossroads->by = collx_over_words[COLLX_OVER_P2P];
    crossroads->run = run_messages;
    if (error)
        snprintf(why, size, "out of memory");
    /* All have to, whatever went wrong. */
    const int most = crossroads->most ? crossroads->most : crossroads->messages.most;
    int failed = collx_listen(team, most, why, size);
    return error ? error : failed;
}

/* Dolphin's adapters are between real nodes, unless someone names the library.  Nodes that are none
 * share memory. */
static int use_best(struct collx_crossroads *crossroads, char *why, size_t size)
{
    const struct collx_offer own = {.machine = collx_shm_node(),
                                    .wish = *collx_option_text(COLLX_OPTION_SISCI_LIBRARY) != 0};
    bool one_machine = true, wish = false;
    int error = collx_leaders_tell(&crossroads->leaders, &own, sizeof own, why, size);

    if (error)
        return error;
    for (int node = 0; node < crossroads->leaders.nodes; node++) {
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

    if (crossroads->leaders.nodes > 1 && crossroads->over == COLLX_OVER_AUTO)
        error = use_best(crossroads, why, size);
    else if (crossroads->leaders.nodes > 1 && crossroads->over == COLLX_OVER_P2P)
        error = use_messages(crossroads, why, size);
    else if (crossroads->leaders.nodes > 1)
        error = try_segments(crossroads, collx_over_words[crossroads->over], why, size);
    collx_leaders_agreed(&crossroads->leaders);
    /* All that it says is in what runs it now. */
    collx_schedule_finish(&crossroads->schedule);
    return error;
}

int collx_crossroads_transfer(struct collx_crossroads *crossroads, struct collx_message *messages,
                              int count, const char *what)
{
    const struct collx_team *team = crossroads->team;

    if (crossroads->run == run_segments)
        return collx_seg_streams_transfer(&crossroads->streams, messages, count, what)
                   ? team->ops->unreachable
                   : 0;
    for (int i = 0; i < count; i++)
        messages[i].rank = crossroads->leaders.rank[messages[i].rank];
    return count ? team->ops->transfer(team->ctx, messages, count) : 0;
}

const char *collx_crossroads_describe(const struct collx_crossroads *crossroads, char *text,
                                      size_t size)
{
    int length =
        snprintf(text, size, "%s of %d nodes %s by %s", crossroads->most ? "data" : "flags",
                 crossroads->leaders.nodes, crossroads->most ? "crosses" : "cross", crossroads->by);

    if (*crossroads->passed && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", not by %s", crossroads->passed);
    return text;
}

void collx_crossroads_finish(struct collx_crossroads *crossroads)
{
    finish_segments(crossroads);
    collx_msg_runner_finish(&crossroads->messages);
    collx_schedule_finish(&crossroads->schedule);
    collx_leaders_finish(&crossroads->leaders);
    *crossroads = (struct collx_crossroads){.team = NULL};
}
