/* Barrier between nodes whose leaders meet at a board that all nodes are wired to.  See
 * hw/barrier.h, and docs/hardware.md for the board. */
#include "algorithms/barrier/hwbarrier.h"

#include "base/error.h"
#include "hw/barrier_port.h"

#include <stdio.h>

static int collx_barrier_hwbarrier_query(const struct collx_facts *facts,
                                         const struct collx_args *args, char *why, size_t size)
{
    (void)args;
    if (facts->nodes > 1)
        return 0;
    snprintf(why, size, "the ranks are on one node, and it is for several");
    return COLLX_EUNFIT;
}

static int collx_barrier_hwbarrier_look(char *text, size_t size)
{
    struct collx_bar_caps caps;
    char number[32] = "";

    if (collx_bar_port_open(&caps, text, size))
        return COLLX_EUNFIT;
    collx_bar_port_close();
    if (!caps.nodes) {
        snprintf(text, size,
                 "COLLX_HWBARRIER has to say by nodes= how many nodes are at the board");
        return COLLX_EUNFIT;
    }
    if (caps.self != COLLX_BAR_UNKNOWN)
        snprintf(number, sizeof number, "number %u", caps.self);
    snprintf(
        text, size,
        "this node is %s of %u at a board of %u channel%s; a write to the port takes %u ns, a read "
        "%u",
        *number ? number : "one", caps.nodes, caps.channels, caps.channels == 1 ? "" : "s",
        caps.enter_ns, caps.test_ns);
    return 0;
}

static int collx_barrier_hwbarrier_attach(struct collx_team *team, const struct collx_args *args,
                                          void *memory, struct collx_slot *slot)
{
    (void)args;
    return collx_nodes_attach(team, &collx_hwbarrier_way, collx_hwbarrier_create(team), memory,
                              slot);
}

const struct collx_algorithm collx_barrier_hwbarrier = {
    .name = "hwbarrier",
    .help =
        "ranks check in with their node's leader; leaders meet at a board that all are wired to",
    .needs = "memory that the ranks of a node share, and wires to a board (COLLX_HWBARRIER)",
    .kind = COLLX_BARRIER,
    .query = collx_barrier_hwbarrier_query,
    .look = collx_barrier_hwbarrier_look,
    .space = collx_nodes_space,
    .attach = collx_barrier_hwbarrier_attach,
    .connect = collx_nodes_connect,
    .describe = collx_nodes_describe,
    .detach = collx_nodes_detach,
};
