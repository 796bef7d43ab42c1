#include "tests/shares_view.h"

#include "algorithms/allreduce/allreduce_shares.h"

#include <stdlib.h>

struct shares_view {
    struct collx_shares shares;
};

size_t shares_view_space(const struct collx_groups_plan *plan, int ranks, int numa_nodes)
{
    return collx_shares_space(plan, ranks, numa_nodes);
}

struct shares_view *shares_view_create(const struct collx_groups_plan *plan,
                                       const struct collx_team *team, void *memory)
{
    struct shares_view *view = calloc(1, sizeof *view);

    if (view && !collx_shares_init(&view->shares, plan, team, memory))
        return view;
    shares_view_destroy(view);
    return NULL;
}

void shares_view_destroy(struct shares_view *view)
{
    if (!view)
        return;
    collx_shares_finish(&view->shares);
    free(view);
}

const void *shares_view_of(const struct shares_view *view, int rank, uint64_t round)
{
    return collx_share_of(&view->shares, rank, round);
}

const void *shares_view_end(const struct shares_view *view, int rank, uint64_t round)
{
    return (const char *)shares_view_of(view, rank, round) + view->shares.stride;
}

bool shares_view_relayed(const struct shares_view *view, int i, int *rank, const void **from,
                         const void **to)
{
    const struct collx_shares *shares = &view->shares;

    if (i >= shares->relays)
        return false;
    *rank = shares->relayed[i].rank;
    *from = collx_share_in(shares, shares->relayed[i].from, *rank, 0);
    *to = collx_share_of(shares, *rank, 0);
    return true;
}
