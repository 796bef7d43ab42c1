#include "algorithms/between/seg_links.h"

#include "algorithms/between/seg_retired.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONNECT_MS = 5000,
    /* Checks of one delivery that are repeated before others get the CPU. */
    REPEATS = 16,
    /* How often a farewell is repeated at least, and how long: somebody may be gone. */
    FAREWELL_TRIES = 64,
    FAREWELL_MS = 100,
};

int collx_seg_links_open(struct collx_seg_links *links, const struct collx_leaders *leaders,
                         const struct collx_seg_ops *ops, char *why, size_t size)
{
    collx_seg_links_borrow(links, leaders, ops, NULL, &(struct collx_seg_caps){0});
    links->lent = false;
    collx_seg_retired_sweep();
    return ops->open(&links->net, &links->caps, why, size);
}

void collx_seg_links_borrow(struct collx_seg_links *links, const struct collx_leaders *leaders,
                            const struct collx_seg_ops *ops, struct collx_net *net,
                            const struct collx_seg_caps *caps)
{
    *links = (struct collx_seg_links){
        .team = leaders->team,
        .ops = ops,
        .net = net,
        .caps = *caps,
        .nodes = leaders->nodes,
        .leader = leaders->rank,
        .lent = true,
    };
}

int collx_seg_links_make(struct collx_seg_links *links, size_t bytes,
                         struct collx_seg_address *address, char *why, size_t size)
{
    const size_t nodes = (size_t)links->nodes;

    links->bytes = bytes;
    links->link = calloc(nodes, sizeof *links->link);
    links->to = calloc(nodes, sizeof(struct collx_remote *));
    links->state = calloc(nodes, sizeof *links->state);
    if (!links->link || !links->to || !links->state) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    for (struct collx_seg_link *link = links->link; link < links->link + nodes; link++)
        link->farewell_at = link->farewell_own = COLLX_SEG_NOWHERE;
    return links->ops->make(links->net, bytes, &links->made, &links->local, address, why, size);
}

static void idle(void *context)
{
    const struct collx_team *team = context;

    team->ops->progress(team->ctx);
}

int collx_seg_links_connect(struct collx_seg_links *links, int node,
                            const struct collx_seg_addresses *addresses, char *why, size_t size)
{
    struct collx_remote **remote = &links->link[node].remote;

    return *remote
               ? 0
               : collx_seg_connect(links->ops, links->net, addresses->get(addresses->context, node),
                                   links->bytes, remote, CONNECT_MS, idle, links->team, why, size);
}

struct delivery {
    const struct collx_team *team;
    void (*store)(void *context, unsigned i);
    void *context;
    unsigned repeated;
};

static void store_one(void *context, unsigned i)
{
    const struct delivery *delivery = context;

    delivery->store(delivery->context, i);
}

/* A check takes long enough to keep MPI going after each; but others may want the CPU, if it goes
 * on and on. */
static void repeat(void *context)
{
    struct delivery *delivery = context;

    delivery->team->ops->progress(delivery->team->ctx);
    if (++delivery->repeated > REPEATS)
        sched_yield();
}

static int lose(struct collx_seg_links *links, const int *nodes, unsigned count)
{
    const struct collx_team *team = links->team;

    links->gone = true;
    for (unsigned i = 0; i < count; i++)
        if (links->state[i] == COLLX_SEG_GONE)
            collx_warn("rank %d of %s cannot reach the memory of rank %d by %s any more. Its "
                       "process or the network between them has failed; collectives that go this "
                       "way return an error on this communicator from now on",
                       team->rank, team->name, links->leader[nodes[i]], links->ops->name);
    return -ENOTCONN;
}

int collx_seg_links_deliver(struct collx_seg_links *links, const int *nodes, unsigned count,
                            void (*store)(void *context, unsigned i), void *context)
{
    struct delivery delivery = {.team = links->team, .store = store, .context = context};

    for (unsigned i = 0; i < count; i++)
        links->to[i] = links->link[nodes[i]].remote;
    return count && collx_seg_deliver(links->ops, links->net, links->to, count, links->state,
                                      store_one, repeat, &delivery)
               ? lose(links, nodes, count)
               : 0;
}

static bool takes_more(uint8_t state)
{
    return state == COLLX_SEG_LOST || state == COLLX_SEG_BUSY;
}

static void store_farewell(const struct collx_seg_links *links, const struct collx_seg_link *link)
{
    links->ops->store(link->remote, link->farewell_at, links->farewell);
}

/* As well as that can be done: who cannot be reached any more keeps its segment until its process
 * ends, or MPI does there. */
static void say_farewell(struct collx_seg_links *links)
{
    const uint64_t begin = collx_clock_ns();
    const struct collx_seg_link *const end = links->link + links->nodes, *link;
    unsigned count = 0;
    bool more = true;

    for (link = links->link; link < end; link++)
        if (link->remote) {
            store_farewell(links, link);
            links->to[count++] = link->remote;
        }
    for (int tries = 1; more && count; tries++) {
        const uint8_t *state = links->state;

        links->ops->check(links->net, links->to, count, links->state);
        more = false;
        for (link = links->link; link < end; link++) {
            if (!link->remote)
                continue;
            if (*state == COLLX_SEG_LOST)
                store_farewell(links, link);
            more |= takes_more(*state++);
        }
        if (tries >= FAREWELL_TRIES && collx_clock_ns() - begin > FAREWELL_MS * 1000000u)
            break;
    }
}

/* NULL: out of memory; then nobody is waited for. */
static struct collx_seg_retired *make_retired(const struct collx_seg_links *links)
{
    struct collx_seg_retired *retired =
        malloc(sizeof *retired + (size_t)links->nodes * sizeof *retired->flag);

    if (!retired)
        return NULL;
    *retired = (struct collx_seg_retired){
        .ops = links->ops,
        .net = links->net,
        .made = links->made,
        .local = links->local,
        .farewell = links->farewell,
    };
    for (int node = 0; node < links->nodes; node++)
        if (links->link[node].farewell_own != COLLX_SEG_NOWHERE)
            retired->flag[retired->count++] = links->link[node].farewell_own;
    return retired;
}

void collx_seg_links_finish(struct collx_seg_links *links)
{
    struct collx_seg_retired *retired = NULL;

    if (!links->net)
        return;
    if (links->used && !links->lent) {
        /* Who still waits for a flag of an unfinished collective must not take this for it. */
        if (!links->gone)
            say_farewell(links);
        retired = make_retired(links);
    }
    for (int node = 0; node < links->nodes && links->link; node++)
        links->ops->disconnect(links->link[node].remote);
    if (retired) {
        collx_seg_retire(retired);
    } else {
        links->ops->unmake(links->made);
        links->ops->close(links->net);
    }
    free(links->link);
    free(links->to);
    free(links->state);
    *links = (struct collx_seg_links){.team = NULL};
}
