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
