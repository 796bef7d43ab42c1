/* What the model says of the barriers between nodes: the orderings and the figures that are known,
 * and small cases that can be counted by hand. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

extern "C" {
#include "bench/simulate.h"
}

namespace
{

constexpr int MILLION = 1 << 20;
/* The known figures have one digit after the point. */
constexpr double ROUNDED = 0.051;

collx_cost cost_of(const collx_pattern &pattern, const collx_model &model = collx_model_sci)
{
    collx_cost cost;

    EXPECT_EQ(0, collx_simulate(&pattern, &model, &cost));
    return cost;
}

double nx(int nodes, int n)
{
    collx_pattern pattern;

    collx_nx_dissemination(&pattern, nodes, n);
    return cost_of(pattern).us;
}

double hsb(int nodes, int fan)
{
    collx_pattern pattern;

    collx_hsb(&pattern, nodes, fan, fan);
    return cost_of(pattern).us;
}

double best_hsb(int nodes)
{
    double best = INFINITY;

    for (int fan = 2; fan <= std::max(2, nodes - 1); fan++)
        best = std::min(best, hsb(nodes, fan));
    return best;
}

TEST(Model, IsWhatOneCountsByHand)
{
    /* Powers of ten, so that each digit of a sum tells what is in it. */
    const collx_model model = {1e-5, 1e-1, 1e-3, 1e-8, 1e-7, 1};
    collx_pattern pattern;

    collx_nx_dissemination(&pattern, 4, 4);
    collx_cost cost = cost_of(pattern, model);
    EXPECT_NEAR(cost.us, 1.1030303, 1e-9);
    EXPECT_EQ(cost.rounds, 1);
    EXPECT_EQ(cost.writes, 3);
    EXPECT_EQ(cost.checks, 1);

    /* The flags of a slow network are there after the check: the last of three, then its poll. */
    collx_model slow = model;
    slow.latency = 100;
    EXPECT_NEAR(cost_of(pattern, slow).us, 101.0000301, 1e-9);

    /* A root and two leaves: in, out, and the root's check of two flags at the end. */
    collx_hsb(&pattern, 3, 2, 2);
    cost = cost_of(pattern, slow);
    EXPECT_NEAR(cost.us, 1 + 100.0000102 + 100.0000201, 1e-9);
    EXPECT_EQ(cost.rounds, 2);
    EXPECT_EQ(cost.writes, 2);
    EXPECT_EQ(cost.checks, 1);

    collx_nx_dissemination(&pattern, 1, 0);
    cost = cost_of(pattern, model);
    EXPECT_EQ(cost.us, 1);
    EXPECT_EQ(cost.writes, 0);
}

TEST(Model, HasAllNodesInOneRoundAheadUpTo16Nodes)
{
    for (int nodes = 2; nodes <= 16; nodes++) {
        for (int n = 2; n < nodes; n++)
            EXPECT_LT(nx(nodes, nodes), nx(nodes, n)) << nodes << " nodes, n = " << n;
        EXPECT_LT(nx(nodes, nodes), best_hsb(nodes)) << nodes;
    }
}

TEST(Model, HasGroupsOfSixFlatAndAheadFrom17To36Nodes)
{
    for (int nodes = 17; nodes <= 36; nodes++) {
        EXPECT_LT(nx(nodes, 6), nx(nodes, 2)) << nodes;
        EXPECT_LT(nx(nodes, 6), nx(nodes, 16)) << nodes;
        EXPECT_LT(nx(nodes, 6), hsb(nodes, 8)) << nodes;
    }
    /* Over twenty nodes more n = 6 gains a few writes, n = N twenty, and n = 2 a step. */
    EXPECT_LT(nx(36, 6) - nx(17, 6), 1.1);
    EXPECT_GT(nx(36, 36) - nx(17, 17), 6);
    EXPECT_GT(nx(36, 2) - nx(17, 2), 4);
    /* The 37th takes a round more. */
    EXPECT_GT(nx(37, 6) - nx(36, 6), 4);
}

/* The model's k is fitted to this crossing, so that it confirms the arithmetic and nothing else. */
TEST(Model, HasTheCrossingThatItIsFittedTo)
{
    EXPECT_LT(nx(19, 19), nx(19, 6));
    EXPECT_GT(nx(20, 20), nx(20, 6));

    collx_model without = collx_model_sci;
    without.covered = 0;
    for (int nodes : {24, 26}) {
        collx_pattern all, six;
        collx_nx_dissemination(&all, nodes, nodes);
        collx_nx_dissemination(&six, nodes, 6);
        EXPECT_EQ(cost_of(all, without).us < cost_of(six, without).us, nodes < 26);
    }
}

TEST(Model, HasOneLevelMoreFromTenNodesWithFanEight)
{
    collx_pattern pattern;

    for (int nodes = 2; nodes <= 73; nodes++) {
        collx_hsb(&pattern, nodes, 8, 8);
        EXPECT_EQ(pattern.rounds, nodes < 10 ? 2 : 4) << nodes;
    }
    double step = hsb(10, 8) - hsb(9, 8);
    for (int nodes = 3; nodes <= 64; nodes++)
        if (nodes != 10) {
            EXPECT_LT(hsb(nodes, 8) - hsb(nodes - 1, 8), step / 2) << nodes;
        }
    /* A root with all others as its children is then ahead, for a while. */
    EXPECT_LT(hsb(10, 9), hsb(10, 8));
    EXPECT_GT(hsb(64, 63), hsb(64, 8));
}

TEST(Model, HasNxAheadOfHsb)
{
    for (int nodes = 2; nodes <= 128; nodes++)
        EXPECT_LT(nx(nodes, 0), best_hsb(nodes)) << nodes;
}

/* No n is more than a quarter of a microsecond ahead of the default beyond 36 nodes. */
TEST(Model, HasTheDefaultAmongTheBest)
{
    for (int nodes = 37; nodes <= 300; nodes += 7)
        for (int n = 2; n <= 40; n++)
            ASSERT_LT(nx(nodes, 0), nx(nodes, n) + 0.25) << nodes << " nodes, n = " << n;
}

TEST(Model, HasTheKnownFigures)
{
    for (int n = 2; n <= 64; n++)
        EXPECT_GE(nx(64, n), nx(64, 8)) << n;
    EXPECT_NEAR(nx(64, 8), 13.1, ROUNDED);
    EXPECT_NEAR(nx(64, 2), 25.5, ROUNDED);
    EXPECT_NEAR(hsb(64, 8), 15.2, ROUNDED);
    EXPECT_EQ(best_hsb(64), hsb(64, 8));

    for (int n = 2; n <= 40; n++)
        EXPECT_GE(nx(1024, n), nx(1024, 11)) << n;
    EXPECT_NEAR(nx(1024, 11), 21.8, ROUNDED);
    EXPECT_NEAR(nx(1024, 2), 42.1, ROUNDED);
    EXPECT_NEAR(hsb(1024, 10), 23.4, ROUNDED);
}

TEST(Model, HasTheKnownFiguresOfAMillionNodes)
{
    EXPECT_NEAR(nx(MILLION, 8), 42.9, ROUNDED);
    EXPECT_GT(nx(MILLION, 11), nx(MILLION, 8));
    EXPECT_NEAR(nx(MILLION, 2), 83.6, ROUNDED);
    EXPECT_NEAR(hsb(MILLION, 10), 43.6, ROUNDED);
}

/* Everybody's load is alike in dissemination; with exchange some nodes serve others besides. */
TEST(Model, HasExchangeBehindWhereNodesAreNoPower)
{
    for (int nodes : {9, 27, 64, 100, 1000})
        for (int n : {2, 3, 4, 9}) {
            collx_pattern exchange, dissemination;
            collx_nx_exchange(&exchange, nodes, n);
            collx_nx_dissemination(&dissemination, nodes, n);
            collx_cost one = cost_of(exchange), other = cost_of(dissemination);
            bool power = std::pow(n, other.rounds) == nodes;
            if (power) {
                EXPECT_NEAR(one.us, other.us, 1e-6) << nodes << ", n = " << n;
                EXPECT_EQ(one.writes, other.writes);
            } else {
                EXPECT_GT(one.us, other.us) << nodes << ", n = " << n;
            }
        }
}

} // namespace
