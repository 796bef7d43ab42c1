/* How a Bcast goes about machines made up: who reads from whom, what crosses between packages, and
 * what the model makes of it. */
#include "tests/plans.h"

extern "C" {
#include "algorithms/bcast/bcast_plan.h"
}

namespace
{

collx_groups_plan plan_of(const Places &places, collx_groups_wanted wanted = COLLX_GROUPS_ALWAYS)
{
    return plan_by(collx_bcast_plan_choose, places, wanted);
}

TEST(BcastPlan, CrossesOnceForEachOtherPackage)
{
    for (int packages : {2, 3, 4, 8, 16})
        for (int cores : {5, 8, 32})
            for (bool in_turn : {false, true}) {
                Places places = ranks_on(packages * cores, packages, 1, cores, in_turn);
                collx_groups_plan plan = plan_of(places);
                ASSERT_EQ(plan.groups, packages) << packages << " packages of " << cores;
                EXPECT_EQ(plan.far, packages - 1);
                EXPECT_EQ(plan.flat_far, (packages - 1) * cores);
            }
}

TEST(BcastPlan, IsFlatWhereThereIsNothingToShare)
{
    check_flat(collx_bcast_plan_choose);
}

/* Each group takes memory. */
TEST(BcastPlan, HasABoundOfGroups)
{
    check_bound(collx_bcast_plan_choose);
}

/* 64 ranks on two packages, worked out by hand from the table in docs/algorithms.md. */
TEST(BcastPlan, CostsWhatTheModelSays)
{
    collx_groups_plan plan = plan_of(ranks_on(64, 2, 1, 32), COLLX_GROUPS_AUTO);

    /* Rank 0's line goes to 31 ranks nearby and to 32 far away. */
    EXPECT_EQ(plan.flat_time, 31 * 10 + 32 * 40 + (250 - 40));
    /* To 31 ranks nearby and to one far away, whose own line goes to 31 nearby. */
    EXPECT_EQ(plan.time, (31 * 10 + 40 + (250 - 40)) + (31 * 10 + (60 - 10)));
    EXPECT_EQ(plan.groups, 2);
    /* Of 3 ranks each on two packages of 8 cores, a leader reads 8 lines from afar either way. */
    plan = plan_of(ranks_on(9, 3, 1, 3));
    EXPECT_EQ(plan.flat_time, 8 * 40 + (250 - 40));
    EXPECT_EQ(plan.time, 8 * 40 + (250 - 40) + 8 * 10 + (60 - 10));
}

TEST(BcastPlan, SharesTheLinkBetweenPackages)
{
    collx_groups_plan plan = plan_of(ranks_on(512, 16, 1, 32), COLLX_GROUPS_AUTO);

    EXPECT_EQ(plan.flat_time, 31 * 10 + 480 * 40 + 210);
    EXPECT_EQ(plan.time, (31 * 10 + 15 * 40 + 210) + (31 * 10 + 50));
}

TEST(BcastPlan, GroupsAreChosenOnlyWhereTheyAreCheaper)
{
    check_cheaper(collx_bcast_plan_choose);
}

/* Nearer is better: by caches where these divide a package, too. */
TEST(BcastPlan, TakesTheKeyThatIsCheapest)
{
    collx_groups_plan plan = plan_of(ranks_on(64, 2, 4, 8), COLLX_GROUPS_AUTO);

    EXPECT_EQ(plan.groups, 8);
    EXPECT_EQ(plan.key, COLLX_CACHE);
}

} // namespace
