/* A barrier's plan, and what has to be true of every one. */
#ifndef COLLX_TESTS_PLANS_H
#define COLLX_TESTS_PLANS_H

#include "tests/machines.h"

extern "C" {
#include "algorithms/barrier_plan.h"
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

#endif
