#include "algorithms/allreduce/allreduce_nodes.h"

#include "algorithms/allreduce/allreduce.h"
#include "algorithms/allreduce/allreduce_combiner.h"
#include "algorithms/reduction/combine.h"
#include "algorithms/within/copy.h"
#include "algorithms/within/mates.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct allreduce {
    struct collx_mates mates;
    struct collx_crossroads crossroads;
    struct collx_combiner combiner;
    struct collx_copier copier;
    unsigned char *parts;      /* of each rank of the node, and of the result; shared by them */
    const unsigned char **own; /* [mates.ranks] */
    uint64_t chunk;            /* so far */
};

static unsigned char *part_of(const struct allreduce *state, int index)
{
    return state->parts + (size_t)index * COLLX_CHUNK_MOST;
}

static unsigned char *result_of(const struct allreduce *state)
{
    return part_of(state, state->mates.ranks);
}

/* What one contributes to a chunk into memory that others see; `in` NULL: it has to be packed. */
static int put(struct allreduce *state, struct collx_call *call, int64_t first, int64_t count,
               const unsigned char *in)
{
    struct collx_team *team = state->mates.team;
    unsigned char *part = part_of(state, state->mates.index);

    if (!in)
        return team->ops->pack(team->ctx, call, call->sbuf, first, count, part);
    collx_copy_in(&state->copier, part, in, (size_t)count * call->elem_bytes);
    return 0;
}

static int get(struct allreduce *state, struct collx_call *call, int64_t first, int64_t count)
{
    struct collx_team *team = state->mates.team;

    if (!call->contiguous)
        return team->ops->unpack(team->ctx, call, result_of(state), call->rbuf, first, count);
    collx_copy_out(&state->copier, (unsigned char *)call->rbuf + (size_t)first * call->elem_bytes,
                   result_of(state), (size_t)count * call->elem_bytes);
    return 0;
}

static int run_chunk(struct allreduce *state, struct collx_call *call, int64_t first, int64_t count)
{
    struct collx_mates *mates = &state->mates;
    const uint64_t e = ++state->chunk;
    const size_t offset = (size_t)first * call->elem_bytes;
    const unsigned char *in = call->contiguous ? (const unsigned char *)call->sbuf + offset : NULL;
    /* Nobody else has to see it. */
    const bool alone = in && mates->ranks == 1;
    int failed = alone ? 0 : put(state, call, first, count, in), error;

    collx_mates_arrive(mates, e);
    if (mates->index) {
        error = collx_mates_await_release(mates, e, -1);
    } else {
        const struct collx_contribution contribution = {
            .call = call,
            .count = count,
            .own = state->own,
            .out = alone ? (unsigned char *)call->rbuf + offset : result_of(state),
        };
        for (int i = 0; i < mates->ranks; i++)
            state->own[i] = alone ? in : part_of(state, i);
        collx_mates_await(mates, e);
        error = collx_combiner_combine(&state->combiner, &contribution);
        collx_mates_release(mates, e, error);
    }
    if (!error && !failed && !alone)
        failed = get(state, call, first, count);
    return error ? error : failed;
}

static int run(struct collx_slot *slot, struct collx_call *call)
{
    struct allreduce *state = slot->state;
    int error = 0;

    if (call->bytes == 0)
        return 0;
    const int64_t most = collx_combiner_chunk(&state->combiner, call);
    for (int64_t first = 0; first < call->count; first += most) {
        const int64_t rest = call->count - first;
        int failed = run_chunk(state, call, first, rest < most ? rest : most);
        error = collx_error_first(error, failed);
    }
    return error;
}

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    const struct allreduce *state = slot->state;

    return collx_combine_alone(state->mates.team, call);
}

size_t collx_allreduce_nodes_space(const struct collx_facts *facts, const struct collx_args *args)
{
    (void)args;
    return collx_mates_space(facts->node_ranks_max) +
           (size_t)(facts->node_ranks_max + 1) * COLLX_CHUNK_MOST;
}

bool collx_allreduce_nodes_takes(const void *state, const struct collx_call *call)
{
    const struct allreduce *allreduce = state;
    const struct collx_combiner *combiner = &allreduce->combiner;

    return call->elem_bytes <= COLLX_ALLREDUCE_ELEMENT &&
           (!call->whole || collx_combiner_gives_whole(combiner, call)) &&
           (!combiner->reduction.tree ||
            call->bytes <= COLLX_REDUCTION_TREE / (size_t)combiner->team->size);
}

void collx_allreduce_nodes_detach(void *state)
{
    struct allreduce *allreduce = state;

    collx_combiner_finish(&allreduce->combiner);
    collx_crossroads_finish(&allreduce->crossroads);
    collx_mates_finish(&allreduce->mates);
    free(allreduce->own);
    free(allreduce);
}

int collx_allreduce_nodes_attach(struct collx_team *team, const struct collx_reduction *reduction,
                                 int64_t over, void *memory, struct collx_slot *slot)
{
    struct allreduce *state = calloc(1, sizeof *state);

    if (!state)
        return -ENOMEM;
    collx_copier_init(&state->copier);
    int error = collx_mates_init(&state->mates, team, "Allreduce", memory);
    if (!error)
        error = collx_crossroads_init_messages(&state->crossroads, team, over,
                                               collx_combiner_messages(team));
    if (!error)
        error = collx_combiner_init(&state->combiner, team, &state->crossroads, reduction,
                                    state->mates.index == 0);
    if (!error) {
        state->own = calloc((size_t)state->mates.ranks, sizeof *state->own);
        error = state->own ? 0 : -ENOMEM;
    }
    if (error) {
        collx_allreduce_nodes_detach(state);
        return error;
    }
    state->parts = (unsigned char *)memory + collx_mates_space(state->mates.ranks);
    slot->state = state;
    slot->run = team->size == 1 ? run_alone : run;
    return 0;
}

int collx_allreduce_nodes_connect(struct collx_team *team, struct collx_slot *slot, char *why,
                                  size_t size)
{
    struct allreduce *state = slot->state;

    (void)team;
    return collx_crossroads_connect(&state->crossroads, why, size);
}

void collx_allreduce_nodes_describe(const void *state, char *line, size_t size)
{
    const struct allreduce *allreduce = state;
    const struct collx_reduction *reduction = &allreduce->combiner.reduction;
    char way[COLLX_CROSSROADS_TEXT];

    if (allreduce->combiner.nodes == 1)
        snprintf(line, size, "rank %d combines what the ranks have put into memory that they share",
                 allreduce->mates.rank[0]);
    else if (reduction->tree)
        snprintf(line, size, "a tree of up to %d children in, %d out; %s", reduction->f_in,
                 reduction->f_out,
                 collx_crossroads_describe(&allreduce->crossroads, way, sizeof way));
    else
        snprintf(line, size, "dissemination in groups of %d, long vectors by slices; %s",
                 reduction->n, collx_crossroads_describe(&allreduce->crossroads, way, sizeof way));
}
