#include "algorithms/allreduce/allreduce_combiner.h"

#include "algorithms/allreduce/allreduce.h"
#include "algorithms/reduction/combine.h"
#include "algorithms/within/mates.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Modulo the number of nodes. */
static int at_node(const struct collx_combiner *combiner, long node)
{
    const long nodes = combiner->nodes;

    return (int)((node % nodes + nodes) % nodes);
}

int collx_combiner_messages(const struct collx_team *team)
{
    return 2 * collx_leaders_count(team);
}

/* In a tree what a node has lies in this order: its own, then all of its first child's part, of the
 * second's, and so on. */
static void place_tree(struct collx_combiner *combiner)
{
    const int nodes = combiner->nodes;
    const long f = combiner->reduction.f_in;

    memcpy(combiner->below, combiner->ranks, (size_t)nodes * sizeof *combiner->below);
    for (int node = nodes - 1; node > 0; node--)
        combiner->below[(node - 1) / f] += combiner->below[node];
    for (int node = 0; node < nodes; node++) {
        int next = combiner->place[node] + combiner->ranks[node];
        for (long child = node * f + 1; child <= node * f + f && child < nodes; child++) {
            combiner->place[child] = next;
            next += combiner->below[child];
        }
    }
}

/* Else what the nodes before it contribute lies behind its own: backwards, and round. */
static void place_round(struct collx_combiner *combiner)
{
    int next = 0;

    for (int i = 0; i < combiner->nodes; i++) {
        const int node = at_node(combiner, (long)combiner->own - i);
        combiner->place[node] = next;
        next += combiner->ranks[node];
    }
}

/* Most bytes of one rank that a leader has at a time, not counting an element. */
static size_t most_bytes(const struct collx_combiner *combiner)
{
    const size_t together = COLLX_CHUNKS_TOGETHER / (size_t)combiner->team->size;
    const size_t slice = COLLX_CHUNK_MOST / (size_t)combiner->nodes;

    return together > slice ? together : slice;
}

static int allocate(struct collx_combiner *combiner)
{
    const size_t size = (size_t)combiner->team->size, nodes = (size_t)combiner->nodes;
    const size_t most = most_bytes(combiner) + COLLX_ALLREDUCE_ELEMENT;

    combiner->node = calloc(size, sizeof *combiner->node);
    combiner->index = calloc(size, sizeof *combiner->index);
    combiner->ranks = calloc(nodes, sizeof *combiner->ranks);
    combiner->below = calloc(nodes, sizeof *combiner->below);
    combiner->place = calloc(nodes, sizeof *combiner->place);
    combiner->message = calloc(2 * nodes, sizeof *combiner->message);
    combiner->from = calloc(size, sizeof *combiner->from);
    combiner->operands = malloc(size * most);
    combiner->result = malloc(most);
    return combiner->node && combiner->index && combiner->ranks && combiner->below &&
                   combiner->place && combiner->message && combiner->from && combiner->operands &&
                   combiner->result
               ? 0
               : -ENOMEM;
}

int collx_combiner_init(struct collx_combiner *combiner, struct collx_team *team,
                        struct collx_crossroads *crossroads,
                        const struct collx_reduction *reduction, bool leads)
{
    *combiner = (struct collx_combiner){
        .team = team,
        .crossroads = crossroads,
        .reduction = *reduction,
        .nodes = collx_leaders_count(team),
        .own = collx_team_node(team, team->rank),
    };
    if (!leads)
        return 0;
    if (allocate(combiner))
        return -ENOMEM;
    for (int rank = 0; rank < team->size; rank++) {
        combiner->node[rank] = collx_team_node(team, rank);
        combiner->index[rank] = combiner->ranks[combiner->node[rank]]++;
    }
    if (reduction->tree)
        place_tree(combiner);
    else
        place_round(combiner);
    combiner->outgoing = malloc((size_t)combiner->ranks[combiner->own] * COLLX_CHUNK_MOST);
    return combiner->outgoing ? 0 : -ENOMEM;
}

void collx_combiner_finish(struct collx_combiner *combiner)
{
    free(combiner->node);
    free(combiner->index);
    free(combiner->ranks);
    free(combiner->below);
    free(combiner->place);
    free(combiner->message);
    free(combiner->operands);
    free(combiner->outgoing);
    free(combiner->result);
    free(combiner->from);
    *combiner = (struct collx_combiner){.team = NULL};
}

/* All contributions of such a call go to one leader. */
static bool is_small(const struct collx_combiner *combiner, const struct collx_call *call)
{
    return combiner->reduction.tree ||
           call->bytes <= COLLX_CHUNKS_TOGETHER / (size_t)combiner->team->size;
}

int64_t collx_combiner_chunk(const struct collx_combiner *combiner, const struct collx_call *call)
{
    const size_t bytes = is_small(combiner, call)
                             ? COLLX_CHUNKS_TOGETHER / (size_t)combiner->team->size
                             : COLLX_CHUNK_MOST;
    const size_t count =
        bytes < COLLX_CHUNK_MOST ? bytes / call->elem_bytes : COLLX_CHUNK_MOST / call->elem_bytes;

    return count ? (int64_t)count : 1;
}

bool collx_combiner_gives_whole(const struct collx_combiner *combiner,
                                const struct collx_call *call)
{
    return is_small(combiner, call) && collx_combiner_chunk(combiner, call) >= call->count;
}

static void add_message(struct collx_combiner *combiner, int *count, int node, bool sends,
                        void *data, size_t bytes)
{
    if (bytes)
        combiner->message[(*count)++] = (struct collx_message){node, sends, data, bytes};
}

static int transfer(struct collx_combiner *combiner, int count)
{
    return count ? collx_crossroads_transfer(combiner->crossroads, combiner->message, count,
                                             "Allreduce")
                 : 0;
}

/* A leader passes on what the first `stride` nodes in its row contributed, itself the first. */
static int disseminate(struct collx_combiner *combiner, size_t bytes)
{
    const long nodes = combiner->nodes, n = combiner->reduction.n;
    int error = 0;

    for (long stride = 1; stride < nodes; stride *= n) {
        int count = 0;

        for (long k = 1; k < n && k * stride < nodes; k++) {
            const long left = nodes - k * stride, blocks = stride < left ? stride : left;
            const int to = at_node(combiner, combiner->own + k * stride);
            const int from = at_node(combiner, combiner->own - k * stride);
            size_t out = 0, in = 0;

            for (long i = 0; i < blocks; i++) {
                out += (size_t)combiner->ranks[at_node(combiner, combiner->own - i)] * bytes;
                in += (size_t)combiner->ranks[at_node(combiner, from - i)] * bytes;
            }
            add_message(combiner, &count, to, true, combiner->operands, out);
            add_message(combiner, &count, from, false,
                        combiner->operands + (size_t)combiner->place[from] * bytes, in);
        }
        error = collx_error_first(error, transfer(combiner, count));
    }
    return error;
}

static int collect(struct collx_combiner *combiner, size_t bytes)
{
    const long f = combiner->reduction.f_in, first = combiner->own * f + 1;
    int count = 0;

    for (long child = first; child < first + f && child < combiner->nodes; child++) {
        const int place = combiner->place[child] - combiner->place[combiner->own];
        add_message(combiner, &count, (int)child, false, combiner->operands + (size_t)place * bytes,
                    (size_t)combiner->below[child] * bytes);
    }
    int error = transfer(combiner, count);
    if (combiner->own == 0)
        return error;
    count = 0;
    add_message(combiner, &count, (int)((combiner->own - 1) / f), true, combiner->operands,
                (size_t)combiner->below[combiner->own] * bytes);
    return collx_error_first(error, transfer(combiner, count));
}

static int hand_out(struct collx_combiner *combiner, unsigned char *out, size_t bytes)
{
    const long f = combiner->reduction.f_out, first = combiner->own * f + 1;
    int count = 0, error = 0;

    if (combiner->own) {
        add_message(combiner, &count, (int)((combiner->own - 1) / f), false, out, bytes);
        error = transfer(combiner, count);
    }
    count = 0;
    for (long child = first; child < first + f && child < combiner->nodes; child++)
        add_message(combiner, &count, (int)child, true, out, bytes);
    return collx_error_first(error, transfer(combiner, count));
}

static int combine_small(struct collx_combiner *combiner,
                         const struct collx_contribution *contribution)
{
    const size_t bytes = (size_t)contribution->count * contribution->call->elem_bytes;
    const bool tree = combiner->reduction.tree;

    for (int i = 0; i < combiner->ranks[combiner->own]; i++)
        memcpy(combiner->operands + (size_t)i * bytes, contribution->own[i], bytes);
    int error = tree ? collect(combiner, bytes) : disseminate(combiner, bytes);
    for (int rank = 0; rank < combiner->team->size; rank++)
        combiner->from[rank] =
            combiner->operands +
            (size_t)(combiner->place[combiner->node[rank]] + combiner->index[rank]) * bytes;
    if (!error && (!tree || combiner->own == 0))
        error = collx_combine(combiner->team, contribution->call, combiner->from, NULL,
                              contribution->count, contribution->out);
    return tree ? collx_error_first(error, hand_out(combiner, contribution->out, bytes)) : error;
}

/* The slice that a node combines: bytes of the chunk. */
static size_t slice_begin(const struct collx_combiner *combiner,
                          const struct collx_contribution *contribution, int node)
{
    return (size_t)(contribution->count * node / combiner->nodes) * contribution->call->elem_bytes;
}

static size_t slice_bytes(const struct collx_combiner *combiner,
                          const struct collx_contribution *contribution, int node)
{
    return slice_begin(combiner, contribution, node + 1) -
           slice_begin(combiner, contribution, node);
}

/* Contributions to each node's slice go there. */
static int scatter(struct collx_combiner *combiner, const struct collx_contribution *contribution)
{
    const size_t own = slice_bytes(combiner, contribution, combiner->own);
    unsigned char *next = combiner->outgoing;
    int count = 0;

    for (int k = 1; k < combiner->nodes; k++) {
        const int node = at_node(combiner, (long)combiner->own + k);
        const size_t begin = slice_begin(combiner, contribution, node);
        const size_t bytes = slice_bytes(combiner, contribution, node);
        const int ranks = combiner->ranks[combiner->own];

        add_message(combiner, &count, node, true, next, (size_t)ranks * bytes);
        for (int i = 0; i < ranks; i++, next += bytes)
            memcpy(next, contribution->own[i] + begin, bytes);
        add_message(combiner, &count, node, false,
                    combiner->operands + (size_t)combiner->place[node] * own,
                    (size_t)combiner->ranks[node] * own);
    }
    return transfer(combiner, count);
}

static int combine_slice(struct collx_combiner *combiner,
                         const struct collx_contribution *contribution)
{
    const size_t begin = slice_begin(combiner, contribution, combiner->own);
    const size_t bytes = slice_bytes(combiner, contribution, combiner->own);

    for (int rank = 0; rank < combiner->team->size; rank++) {
        const int node = combiner->node[rank], index = combiner->index[rank];
        combiner->from[rank] =
            node == combiner->own
                ? (unsigned char *)(uintptr_t)contribution->own[index] + begin
                : combiner->operands + (size_t)(combiner->place[node] + index) * bytes;
    }
    return bytes
               ? collx_combine(combiner->team, contribution->call, combiner->from, NULL,
                               (int64_t)(bytes / contribution->call->elem_bytes), combiner->result)
               : 0;
}

/* Results go everywhere.  What one's own node contributed is not needed any more. */
static int gather(struct collx_combiner *combiner, const struct collx_contribution *contribution)
{
    const size_t own = slice_bytes(combiner, contribution, combiner->own);
    int count = 0;

    for (int k = 1; k < combiner->nodes; k++) {
        const int node = at_node(combiner, (long)combiner->own + k);
        add_message(combiner, &count, node, true, combiner->result, own);
        add_message(combiner, &count, node, false,
                    contribution->out + slice_begin(combiner, contribution, node),
                    slice_bytes(combiner, contribution, node));
    }
    memcpy(contribution->out + slice_begin(combiner, contribution, combiner->own), combiner->result,
           own);
    return transfer(combiner, count);
}

int collx_combiner_combine(struct collx_combiner *combiner,
                           const struct collx_contribution *contribution)
{
    if (is_small(combiner, contribution->call))
        return combine_small(combiner, contribution);
    /* All of it whatever goes wrong: others count on our messages. */
    int error = scatter(combiner, contribution);
    error = collx_error_first(error, combine_slice(combiner, contribution));
    return collx_error_first(error, gather(combiner, contribution));
}
