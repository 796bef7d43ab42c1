/* Where the ranks of a team find each other's shares: what is C alone, for a test in C++. */
#ifndef COLLX_TESTS_SHARES_VIEW_H
#define COLLX_TESTS_SHARES_VIEW_H

#ifdef __cplusplus
extern "C" {
#endif
#include "algorithms/allreduce/allreduce_plan.h"

/* One rank's view of the memory of all. */
struct shares_view;

/* Bytes of that memory. */
size_t shares_view_space(const struct collx_groups_plan *plan, int ranks, int numa_nodes);

/* NULL: out of memory. */
struct shares_view *shares_view_create(const struct collx_groups_plan *plan,
                                       const struct collx_team *team, void *memory);
void shares_view_destroy(struct shares_view *view);

/* Where it finds what `rank` contributes in this round. */
const void *shares_view_of(const struct shares_view *view, int rank, uint64_t round);

/* And where that ends, at its longest. */
const void *shares_view_end(const struct shares_view *view, int rank, uint64_t round);

/* What it relays in even rounds, one after the other; false: no more. */
bool shares_view_relayed(const struct shares_view *view, int i, int *rank, const void **from,
                         const void **to);
#ifdef __cplusplus
}
#endif

#endif
