/* Trees of ranks and the barriers on them, without a process: who waits for whom, that everybody
 * hears of everybody, what crosses between packages, and what the model makes of it. */
#include "tests/plans.h"

extern "C" {
#include "algorithms/within/lines.h"
}

namespace
{

TEST(Shape, GroupsByCacheThenPackage)
{
    /* Two packages of two caches of three cores. */
    Places places = ranks_on(12, 2, 2, 3);
    collx_shape shape;

    ASSERT_EQ(0, collx_shape_init(&shape, places.data(), 12, 8));
    ASSERT_EQ(shape.levels, 2);
    const int caches[] = {0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9};
    const int packages[] = {0, -1, -1, 0, -1, -1, 6, -1, -1, 6, -1, -1};
    for (int rank = 0; rank < 12; rank++) {
        EXPECT_EQ(shape.leader[0][rank], caches[rank]) << rank;
        EXPECT_EQ(shape.leader[1][rank], packages[rank]) << rank;
    }
    EXPECT_TRUE(collx_shape_takes_part(&shape, 2, 6));
    EXPECT_FALSE(collx_shape_takes_part(&shape, 2, 3));
    collx_shape_finish(&shape);
}

TEST(Shape, CutsLargeGroupsIntoEqualPieces)
{
    Places places = ranks_on(20, 2, 1, 10);
    collx_shape shape;

    ASSERT_EQ(0, collx_shape_init(&shape, places.data(), 20, 4));
    ASSERT_EQ(shape.levels, 2);
    const int pieces[] = {0, 0, 0, 0, 4, 4, 4, 7, 7, 7};
    for (int rank = 0; rank < 20; rank++) {
        EXPECT_EQ(shape.leader[0][rank], rank / 10 * 10 + pieces[rank % 10]) << rank;
        bool leads = shape.leader[0][rank] == rank;
        EXPECT_EQ(shape.leader[1][rank], leads ? rank / 10 * 10 : -1) << rank;
    }
    collx_shape_finish(&shape);
}

TEST(Shape, IsFlatWherePlacesDivideNothing)
{
    Places nobody_knows(40, nowhere), one_cache = ranks_on(40, 1, 1, 40);
    Places alone = ranks_on(8, 8, 1, 1), one_rank = ranks_on(1, 2, 2, 2);
    collx_shape shape;

    for (const Places &places : {nobody_knows, one_cache, alone, one_rank}) {
        ASSERT_EQ(0, collx_shape_init(&shape, places.data(), (int)places.size(), 8));
        EXPECT_EQ(shape.levels, 0);
        collx_shape_finish(&shape);
    }
    ASSERT_EQ(0, collx_shape_init(&shape, nullptr, 40, 8));
    EXPECT_EQ(shape.levels, 0);
    collx_shape_finish(&shape);
}

/* Who is bound to a package but to no cache of it meets the others at its package. */
TEST(Shape, TakesThoseInWhoAreKnownInPart)
{
    Places places = ranks_on(16, 2, 2, 4);
    collx_shape shape;

    places[5].cache = -1;
    places[14] = nowhere;
    ASSERT_EQ(0, collx_shape_init(&shape, places.data(), 16, 8));
    check_shape(shape, 8);
    ASSERT_EQ(shape.levels, 2);
    EXPECT_EQ(shape.leader[0][5], 5);
    EXPECT_EQ(shape.leader[1][5], 0);
    EXPECT_EQ(shape.leader[1][14], 14);
    collx_shape_finish(&shape);
}

TEST(BarrierPlan, FlatIsProvedForEveryNumberOfRanks)
{
    for (int radix = 2; radix <= COLLX_RADIX_MAX; radix += 3)
        for (int ranks = 2; ranks <= 70; ranks++) {
            Places places(ranks, nowhere);
            Plan plan(places, 0, radix);
            check_plan(plan);
            if (testing::Test::HasFatalFailure())
                FAIL() << ranks << " ranks, radix " << radix;
        }
}

TEST(BarrierPlan, TreesAreProvedOnManyMachines)
{
    const int machines[][3] = {{2, 1, 8},  {2, 4, 8}, {4, 2, 6},  {1, 8, 8},
                               {1, 1, 64}, {8, 2, 2}, {16, 1, 4}, {3, 1, 5}};

    for (const auto &machine : machines)
        for (int ranks : {2, 3, 9, 13, 16, 31, 48, 61, 64, 100})
            for (bool in_turn : {false, true})
                for (int fan : {2, 3, 8, 1000}) {
                    Places places = ranks_on(ranks, machine[0], machine[1], machine[2], in_turn);
                    Plan plan(places, fan, COLLX_RADIX_MAX);
                    int packages = packages_of(places);
                    check_shape(plan.plan.shape, fan);
                    check_plan(plan);
                    EXPECT_EQ(plan.plan.far, far_reads(plan, places));
                    if (packages <= COLLX_RADIX_MAX && plan.plan.shape.levels) {
                        EXPECT_LE(plan.plan.far, packages * (packages - 1));
                    }
                    /* With 16 packages: two rounds of at most 7 lines each. */
                    if (plan.plan.shape.levels) {
                        EXPECT_LE(plan.plan.far, packages * 2 * (COLLX_RADIX_MAX - 1));
                    }
                    if (testing::Test::HasFailure())
                        FAIL() << ranks << " ranks on " << machine[0] << " packages of "
                               << machine[1] << " caches of " << machine[2] << " cores, fan "
                               << fan;
                }
}

TEST(BarrierPlan, FlatCrossesBetweenPackagesWithEveryRank)
{
    Places places = ranks_on(64, 2, 1, 32);
    Plan flat(places, 0, COLLX_RADIX_MAX), tree(places, 8, COLLX_RADIX_MAX);

    EXPECT_GT(flat.plan.far, 64);
    EXPECT_EQ(flat.plan.far, far_reads(flat, places));
    EXPECT_EQ(tree.plan.far, 2);
}

/* 9 ranks on two packages of 8 cores; worked out by hand from the table in docs/algorithms.md. */
TEST(BarrierPlan, CostsWhatTheModelSays)
{
    Places places = ranks_on(9, 2, 1, 8);
    Plan flat(places, 0, 8), tree(places, 8, 8);

    /* Seven ranks read rank 8's line from afar, then some one line from afar. */
    EXPECT_EQ(flat.plan.time, (250 + 6 * 40) + 250);
    /* Rank 0 reads seven lines; two leaders read each other's; seven read rank 0's line. */
    EXPECT_EQ(tree.plan.time, (60 + 6 * 10) + 250 + (60 + 6 * 10));
}

TEST(BarrierPlan, LinkBetweenPackagesIsShared)
{
    collx_lines *lines = collx_lines_create(1, 100, 100);

    for (int i = 0; i < 100; i++)
        collx_lines_read(lines, 0, i, i, COLLX_FAR);
    EXPECT_EQ(collx_lines_far(lines), 100);
    EXPECT_EQ(collx_lines_time(lines), 100 * collx_link_cost);
    collx_lines_destroy(lines);
}

TEST(BarrierPlan, ATreeIsChosenOnlyWhereItIsCheaper)
{
    int trees = 0, flats = 0;

    for (const auto &[ranks, one_cache, places] : occupied()) {
        Plan chosen(places), flat(places, 0, COLLX_RADIX_MAX);
        bool tree = chosen.plan.shape.levels;
        (tree ? trees : flats)++;
        EXPECT_EQ(chosen.plan.flat_time, flat.plan.time);
        if (tree) {
            EXPECT_LE(chosen.plan.time * 10, flat.plan.time * 9);
        } else {
            EXPECT_EQ(chosen.plan.time, flat.plan.time);
        }
        for (int fan : {4, 8, 16, 32}) {
            Plan other(places, fan, COLLX_RADIX_MAX);
            EXPECT_LE(tree ? chosen.plan.time : flat.plan.time * 9 / 10, other.plan.time);
        }
        if (one_cache) {
            EXPECT_FALSE(tree) << "one cache: nothing to be gained";
        }
        if (packages_of(places) > 1 && ranks >= 48) {
            EXPECT_TRUE(tree) << ranks << " ranks on several packages";
        }
    }
    EXPECT_GT(trees, 0);
    EXPECT_GT(flats, 0);
}

} // namespace
