/* A barrier's plan, and what has to be true of every one. */
#ifndef COLLX_TESTS_PLANS_H
#define COLLX_TESTS_PLANS_H

#include "tests/machines.h"

extern "C" {
#include "algorithms/barrier/barrier_plan.h"
#include "algorithms/within/groups.h"
}

#include <gtest/gtest.h>
#include <vector>

/* A plan that frees itself. */
struct Plan {
    collx_barrier_plan plan;

    Plan(const Places &places, int fan, int radix)
    {
        EXPECT_EQ(0, collx_barrier_plan_init(&plan, places.data(), (int)places.size(), fan, radix));
    }
    explicit Plan(const Places &places)
    {
        EXPECT_EQ(0, collx_barrier_plan_choose(&plan, places.data(), (int)places.size()));
    }
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan()
    {
        collx_barrier_plan_finish(&plan);
    }
    std::vector<collx_barrier_step> steps(int rank) const
    {
        std::vector<collx_barrier_step> all(COLLX_BARRIER_STEPS(plan.shape.ranks));
        int count = collx_barrier_plan_steps(&plan, rank, all.data());
        EXPECT_LE(count, (int)all.size());
        all.resize(count);
        return all;
    }
};

/* Each rank takes part up to some level, in one group of each, which has a leader that is its first
 * member; what leads nothing is not heard of again. */
void check_shape(const collx_shape &shape, int fan);

/* Everybody hears of everybody before it leaves, nobody waits for what nobody posts, flags grow and
 * have one writer. */
void check_plan(const Plan &plan);

/* How often a rank reads a line of another package, counted step by step. */
int64_t far_reads(const Plan &plan, const Places &places);

int packages_of(const Places &places);

/* How a collective chooses its groups. */
using Choose = collx_groups_plan(const collx_place *, int, collx_groups_wanted);

inline collx_groups_plan plan_by(Choose *choose, const Places &places, collx_groups_wanted wanted)
{
    return choose(places.data(), (int)places.size(), wanted);
}

/* Ranks for which there are no groups. */
std::vector<Places> undivided();

/* What has to be true of every such choice: flat where there is nothing to share or nobody wants
 * groups; not more groups than there may be; groups only where they are cheaper, and the cheapest.
 */
void check_flat(Choose *choose);
void check_bound(Choose *choose);
void check_cheaper(Choose *choose);

#endif
