/* How a Bcast goes about machines made up: who reads from whom, what crosses between packages, and
 * what the model makes of it. */
#include "tests/plans.h"

extern "C" {
#include "algorithms/bcast_plan.h"
}

namespace
{

collx_groups_plan plan_of(const Places &places, collx_groups_wanted wanted = COLLX_GROUPS_ALWAYS)
{
    return collx_bcast_plan_choose(places.data(), static_cast<int>(places.size()), wanted);
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
    Places eight = ranks_on(8, 2, 1, 4), one_cache = ranks_on(64, 1, 1, 64);
    Places nobody_knows(40, nowhere), alone = ranks_on(16, 16, 1, 1);

    for (const Places &places : {eight, one_cache, nobody_knows, alone})
        EXPECT_EQ(plan_of(places).groups, 1);
    EXPECT_EQ(collx_bcast_plan_choose(nullptr, 40, COLLX_GROUPS_ALWAYS).groups, 1);
    EXPECT_EQ(plan_of(ranks_on(64, 2, 1, 32), COLLX_GROUPS_NEVER).groups, 1);
}

/* Each group takes memory. */
TEST(BcastPlan, HasABoundOfGroups)
{
    EXPECT_EQ(plan_of(ranks_on(128, 2, 16, 4)).groups, 2) << "not 32 caches";
    EXPECT_EQ(plan_of(ranks_on(128, 1, 32, 4)).groups, 1);
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
    const int machines[][3] = {{2, 1, 8}, {2, 4, 8}, {4, 2, 6}, {1, 8, 8}, {1, 1, 64}, {2, 1, 32}};
    int grouped = 0, flat = 0;

    for (const auto &machine : machines)
        for (int ranks : {9, 12, 16, 31, 48, 61, 64, 100, 128})
            for (bool in_turn : {false, true}) {
                Places places = ranks_on(ranks, machine[0], machine[1], machine[2], in_turn);
                collx_groups_plan chosen = plan_of(places, COLLX_GROUPS_AUTO);
                collx_groups_plan best = plan_of(places, COLLX_GROUPS_ALWAYS);
                (chosen.groups > 1 ? grouped : flat)++;
                if (chosen.groups > 1) {
                    EXPECT_LE(chosen.time * 10, chosen.flat_time * 9);
                    EXPECT_EQ(chosen.time, best.time);
                } else if (best.groups > 1) {
                    EXPECT_GT(best.time * 10, best.flat_time * 9);
                }
                if (packages_of(places) > 1 && ranks >= 48) {
                    EXPECT_GT(chosen.groups, 1) << ranks << " ranks on several packages";
                }
            }
    EXPECT_GT(grouped, 0);
    EXPECT_GT(flat, 0);
}

/* Nearer is better: by caches where these divide a package, too. */
TEST(BcastPlan, TakesTheKeyThatIsCheapest)
{
    collx_groups_plan plan = plan_of(ranks_on(64, 2, 4, 8), COLLX_GROUPS_AUTO);

    EXPECT_EQ(plan.groups, 8);
    EXPECT_EQ(plan.key, COLLX_CACHE);
}

} // namespace
