#include "algorithms/between/leaders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int collx_leaders_count(const struct collx_team *team)
{
    int count = 1;

    for (int rank = 0; team->node && rank < team->size; rank++)
        count = team->node[rank] < count ? count : team->node[rank] + 1;
    return count;
}

int collx_leaders_init(struct collx_leaders *leaders, struct collx_team *team)
{
    int nodes = collx_leaders_count(team), found = 0;

    *leaders = (struct collx_leaders){
        .team = team,
        .nodes = nodes,
        .own = team->node ? team->node[team->rank] : 0,
        .rank = calloc((size_t)nodes, sizeof *leaders->rank),
        .heard = nodes > 1 ? malloc((size_t)team->size * COLLX_GATHER_MAX) : NULL,
    };
    if (!leaders->rank || (nodes > 1 && !leaders->heard)) {
        collx_leaders_finish(leaders);
        return -ENOMEM;
    }
    for (int rank = 0; team->node && rank < team->size; rank++)
        if (team->node[rank] == found)
            leaders->rank[found++] = rank;
    leaders->leads = leaders->rank[leaders->own] == team->rank;
    return 0;
}

int collx_leaders_tell(struct collx_leaders *leaders, const void *own, size_t bytes, char *why,
                       size_t size)
{
    const struct collx_team *team = leaders->team;
    int error = team->ops->gather(team->ctx, own, leaders->heard, bytes);

    if (error)
        snprintf(why, size, "the ranks could not agree on it");
    return error;
}

int collx_leaders_agree(struct collx_leaders *leaders, const char *by, int error, const char *text,
                        char *why, size_t size)
{
    const int32_t code = error;
    char words[COLLX_LEADERS_TEXT];
    int node = 0;

    error = collx_leaders_tell(leaders, &code, sizeof code, why, size);
    if (error)
        return error;
    while (node < leaders->nodes &&
           !*(const int32_t *)collx_leaders_heard(leaders, node, sizeof code))
        node++;
    if (node == leaders->nodes)
        return 0;
    const int first = *(const int32_t *)collx_leaders_heard(leaders, node, sizeof code);
    snprintf(words, sizeof words, "%s", text);
    error = collx_leaders_tell(leaders, words, sizeof words, why, size);
    if (error)
        return error;
    snprintf(why, size, "%s on rank %d: %.*s", by, leaders->rank[node], (int)sizeof words - 1,
             (const char *)collx_leaders_heard(leaders, node, sizeof words));
    return first;
}

void collx_leaders_agreed(struct collx_leaders *leaders)
{
    free(leaders->heard);
    leaders->heard = NULL;
}

void collx_leaders_finish(struct collx_leaders *leaders)
{
    collx_leaders_agreed(leaders);
    free(leaders->rank);
    *leaders = (struct collx_leaders){.team = NULL};
}
