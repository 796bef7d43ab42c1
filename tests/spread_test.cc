// What measured values come to.
#include <gtest/gtest.h>

#include <vector>

extern "C" {
#include "base/spread.h"
}

using Values = std::vector<double>;

static Values spread_of(Values values)
{
    collx_spread spread = collx_spread_of(values.data(), static_cast<int>(values.size()));

    EXPECT_EQ(spread.n, static_cast<int>(values.size()));
    return {spread.low, spread.median, spread.high};
}

TEST(Spread, IsTheMedianBetweenTheQuartiles)
{
    EXPECT_EQ(spread_of({7}), Values({7, 7, 7}));
    EXPECT_EQ(spread_of({3, 1, 2}), Values({1, 2, 3}));
    EXPECT_EQ(spread_of({5, 1, 4, 2, 3}), Values({2, 3, 4}));
}

TEST(Spread, HasNoLeaningWhereTwoAreInTheMiddle)
{
    EXPECT_EQ(spread_of({2, 1}), Values({1, 1.5, 2}));
    EXPECT_EQ(spread_of({40, 10, 30, 20}), Values({20, 25, 30}));
}

TEST(Spread, OfNothingIsNothing)
{
    EXPECT_EQ(spread_of({}), Values({0, 0, 0}));
}

static double middle_of(Values values)
{
    return collx_middle_of(values.data(), static_cast<int>(values.size()));
}

TEST(Middle, IsTheMeanOfTheMiddleHalf)
{
    EXPECT_DOUBLE_EQ(middle_of({7}), 7);
    EXPECT_DOUBLE_EQ(middle_of({2, 1}), 1.5);
    EXPECT_DOUBLE_EQ(middle_of({3, 1000, 2, 0}), 2.5);
    // A quarter of 6 is one and a half.
    EXPECT_DOUBLE_EQ(middle_of({1000, 0, 2, 3, 4, 6}), (0.5 * 2 + 3 + 4 + 0.5 * 6) / 3);
}

// 31 of 100 calls took a step of 10 more: the median does not see them.
TEST(Middle, IsNotBoundToSteps)
{
    Values values(69, 20);

    values.insert(values.end(), 31, 30);
    EXPECT_EQ(spread_of(values)[1], 20);
    EXPECT_DOUBLE_EQ(middle_of(values), 20 + 10 * 6 / 50.0);
}

TEST(Middle, IsNotMovedByAQuarterThatIsFarOff)
{
    Values values(75, 20);

    values.insert(values.end(), 25, 1e9);
    EXPECT_DOUBLE_EQ(middle_of(values), 20);
}

TEST(Middle, OfNothingIsNothing)
{
    EXPECT_EQ(middle_of({}), 0);
}
