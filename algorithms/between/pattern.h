/* The pattern of a barrier between nodes: who writes a flag to whom, round by round.
 *
 * A node has a row of flags (slots) in its own memory, which it polls; others write into them.  In
 * each round a node first writes what it has to, and then waits for what others write to it in the
 * same round.  So nothing can wait in a circle, and one round after the other can be simulated.
 * Each slot is written by one node, once in a barrier.
 *
 * Pure: without memory or processes, and cheap to ask for a single node and round, so that a
 * million nodes need no lists.  What a node really executes is the schedule made of it: schedule.h.
 */
#ifndef COLLX_PATTERN_H
#define COLLX_PATTERN_H

/* With 2 nodes a group, and the two additional rounds of exchange. */
enum { COLLX_NODES_MAX = 1 << 30, COLLX_STRIDES = 32 };

/* A flag that crosses in a round, seen from the writer or the reader. */
struct collx_crossing {
    int peer;  /* the node at the other side */
    int slot;  /* in the reader's row */
    int order; /* how many flags the writer writes before it in this round */
};

struct collx_pattern {
    int nodes;
    int rounds;
    int slots; /* flags that a node needs at most; the same number on all nodes */
    int width; /* flags that a node writes, or waits for, in one round at most */
    /* What a node writes, and what it waits for, in a round; room for `width`.  Return how many. */
    int (*writes)(const struct collx_pattern *pattern, int node, int round,
                  struct collx_crossing *flag);
    int (*waits)(const struct collx_pattern *pattern, int node, int round,
                 struct collx_crossing *flag);
    union {
        struct {
            int n;
            int core;                  /* nodes that exchange; the others are each served by one */
            int digits;                /* rounds in which they do */
            int stride[COLLX_STRIDES]; /* n^i */
        } nx;
        struct {
            int fan[2];                  /* in, out */
            int levels[2];               /* below the root */
            int first[2][COLLX_STRIDES]; /* node of each level; one level more than there is */
        } hsb;
    };
};

/* nx: all nodes are alike, and in each round write to up to n - 1 others.  n is taken as 2 if it is
 * less, and as the number of nodes (1 or more) if it is more; 0 asks for the default. */

/* Node x writes to x + k n^i mod N in round i, for k = 1 .. n - 1.  ceil(log_n N) rounds. */
void collx_nx_dissemination(struct collx_pattern *pattern, int nodes, int n);

/* All nodes whose numbers differ in digit i (to base n) alone write to each other in round i. Where
 * N is not a power of n, this is done by as many nodes as the next smaller power has; each of the
 * others writes to one of these in a round before, and hears from it in a round after. */
void collx_nx_exchange(struct collx_pattern *pattern, int nodes, int n);

/* The default n: one round up to 16 nodes, groups of 6 up to 36, then what the fewest rounds and
 * writes need. */
int collx_nx_default(int nodes);

/* The n that is taken for one that is asked for, however many nodes there are. */
int collx_nx_taken(int n, int nodes);

/* How it is asked for: a parameter of the algorithms named "nx". */
#define COLLX_NX_PARAM                                                                             \
    {                                                                                              \
        "n",                                                                                       \
            "nodes a group (1 is 2); 0: as many as there are up to 16, 6 up to 36, else by "       \
            "their number",                                                                        \
            0, 0, 1 << 20, NULL                                                                    \
    }

/* hsb: a tree in which nodes have up to f_in children collects, and one in which they have up to
 * f_out children releases; node 0 is the root of both.  Fans below 2 are taken as 2, larger ones
 * than can be used as the largest that can; 0 asks for the default. */
enum { COLLX_HSB_FAN = 8 };
void collx_hsb(struct collx_pattern *pattern, int nodes, int f_in, int f_out);

#endif
