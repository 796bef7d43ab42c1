#include "algorithms/between/pattern.h"

#include <stdbool.h>

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

static int rounded_up(int value, int divisor)
{
    return value / divisor + (value % divisor != 0);
}

/* Up to so many nodes one round of all, and two rounds in groups of six, are known to be best.  A
 * round takes, besides its writes, as long as so many writes: docs/sci.md. */
enum { ONE_ROUND = 16, TWO_ROUNDS = 36, ROUND_IN_WRITES = 11 };

/* Least n with which dissemination takes no more than this many rounds. */
static int least_n(int nodes, int rounds)
{
    for (int n = 2;; n++) {
        long reached = 1;
        for (int i = 0; i < rounds && reached < nodes; i++)
            reached *= n;
        if (reached >= nodes)
            return n;
    }
}

int collx_nx_default(int nodes)
{
    int best = 2, best_writes = 0;
    long best_cost = -1;

    if (nodes <= ONE_ROUND)
        return nodes < 2 ? 2 : nodes;
    if (nodes <= TWO_ROUNDS)
        return 6;
    for (int rounds = 2, n = 0; n != 2; rounds++) {
        struct collx_pattern pattern;
        n = least_n(nodes, rounds);
        collx_nx_dissemination(&pattern, nodes, n);
        /* Everybody writes as many flags as are written to it. */
        int writes = pattern.slots;
        long cost = (long)rounds * ROUND_IN_WRITES + writes;
        if (best_cost < 0 || cost < best_cost || (cost == best_cost && writes < best_writes)) {
            best = n;
            best_cost = cost;
            best_writes = writes;
        }
    }
    return best;
}

int collx_nx_taken(int n, int nodes)
{
    n = n ? n : collx_nx_default(nodes);
    return n < 2 ? 2 : n;
}

/* The highest digit has fewer values than n where N is not a power of n. */
static int flags_in_round(const struct collx_pattern *pattern, int round)
{
    int groups = rounded_up(pattern->nodes, pattern->nx.stride[round]);

    return at_most(pattern->nx.n, groups) - 1;
}

/* The slot of a flag says in which round, and as which of it, it was written. */
static void put(const struct collx_pattern *pattern, struct collx_crossing *flag, int peer,
                int digit, int k)
{
    *flag = (struct collx_crossing){
        .peer = peer, .slot = digit * (pattern->nx.n - 1) + k - 1, .order = k - 1};
}

static int dissemination_writes(const struct collx_pattern *pattern, int node, int round,
                                struct collx_crossing *flag)
{
    int count = flags_in_round(pattern, round);

    for (int k = 1; k <= count; k++) {
        long peer = node + (long)k * pattern->nx.stride[round];
        put(pattern, flag++, (int)(peer % pattern->nodes), round, k);
    }
    return count;
}

static int dissemination_waits(const struct collx_pattern *pattern, int node, int round,
                               struct collx_crossing *flag)
{
    int count = flags_in_round(pattern, round);

    for (int k = 1; k <= count; k++) {
        int peer = node - k * pattern->nx.stride[round];
        put(pattern, flag++, peer < 0 ? peer + pattern->nodes : peer, round, k);
    }
    return count;
}

/* Returns how many powers of n are less than the number of nodes. */
static int set_strides(struct collx_pattern *pattern, int nodes, int n)
{
    int digits = 0, core = 1;

    n = nodes < 2 ? 2 : at_most(collx_nx_taken(n, nodes), nodes);
    *pattern = (struct collx_pattern){.nodes = nodes, .width = n - 1, .nx.n = n};
    for (long power = 1; power <= nodes; power *= n) {
        core = (int)power;
        if (core < nodes)
            pattern->nx.stride[digits++] = core;
    }
    pattern->nx.core = core;
    return digits;
}

void collx_nx_dissemination(struct collx_pattern *pattern, int nodes, int n)
{
    int digits = set_strides(pattern, nodes, n);

    pattern->rounds = pattern->nx.digits = digits;
    pattern->writes = dissemination_writes;
    pattern->waits = dissemination_waits;
    for (int round = 0; round < digits; round++)
        pattern->slots += flags_in_round(pattern, round);
}

/* The digit that is exchanged in a round; -1 before and `digits` after that. */
static int digit_of(const struct collx_pattern *pattern, int round)
{
    return pattern->nx.core == pattern->nodes ? round : round - 1;
}

/* The node whose digit is `by` larger, counted in a circle. */
static int turned(const struct collx_pattern *pattern, int node, int digit, int by)
{
    int stride = pattern->nx.stride[digit], n = pattern->nx.n, value = node / stride % n;

    return node + ((value + by) % n - value) * stride;
}

/* Nodes outside the core that a node of the core serves: node + core, node + 2 core, … */
static int served(const struct collx_pattern *pattern, int node)
{
    return (pattern->nodes - 1 - node) / pattern->nx.core;
}

/* Slots behind those of the digits: for those that a node serves, or for the one that serves it. */
static int side_slot(const struct collx_pattern *pattern)
{
    return pattern->nx.digits * (pattern->nx.n - 1);
}

static int exchange_writes(const struct collx_pattern *pattern, int node, int round,
                           struct collx_crossing *flag)
{
    int digit = digit_of(pattern, round), core = pattern->nx.core, count = 0;
    bool inside = node < core;

    if (digit < 0 && !inside) {
        flag[count++] = (struct collx_crossing){.peer = node % core,
                                                .slot = side_slot(pattern) + node / core - 1};
    } else if (digit == pattern->nx.digits && inside) {
        for (; count < served(pattern, node); count++)
            flag[count] = (struct collx_crossing){
                .peer = node + (count + 1) * core, .slot = side_slot(pattern), .order = count};
    } else if (digit >= 0 && digit < pattern->nx.digits && inside) {
        for (int k = 1; k < pattern->nx.n; k++)
            put(pattern, &flag[count++], turned(pattern, node, digit, k), digit, k);
    }
    return count;
}

static int exchange_waits(const struct collx_pattern *pattern, int node, int round,
                          struct collx_crossing *flag)
{
    int digit = digit_of(pattern, round), core = pattern->nx.core, count = 0;
    bool inside = node < core;

    if (digit < 0 && inside) {
        for (; count < served(pattern, node); count++)
            flag[count] = (struct collx_crossing){.peer = node + (count + 1) * core,
                                                  .slot = side_slot(pattern) + count};
    } else if (digit == pattern->nx.digits && !inside) {
        flag[count++] = (struct collx_crossing){
            .peer = node % core, .slot = side_slot(pattern), .order = node / core - 1};
    } else if (digit >= 0 && digit < pattern->nx.digits && inside) {
        for (int k = 1; k < pattern->nx.n; k++)
            put(pattern, &flag[count++], turned(pattern, node, digit, pattern->nx.n - k), digit, k);
    }
    return count;
}

void collx_nx_exchange(struct collx_pattern *pattern, int nodes, int n)
{
    int digits = set_strides(pattern, nodes, n), core = pattern->nx.core;

    pattern->nx.digits = core == nodes ? digits : digits - 1;
    pattern->rounds = core == nodes ? digits : digits + 1;
    pattern->writes = exchange_writes;
    pattern->waits = exchange_waits;
    pattern->slots = side_slot(pattern) + served(pattern, 0);
}
