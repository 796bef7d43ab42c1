extern "C" {
#include "report/histogram.h"
}

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

TEST(Histogram, QuantilesAreWithinOnePercent)
{
    std::mt19937_64 random(1);
    for (double spread : {3.0, 8.0, 30.0}) {
        std::vector<uint64_t> values;
        collx_histogram histogram, half;
        collx_histogram_init(&histogram);
        collx_histogram_init(&half);
        for (int i = 0; i < 20001; i++) {
            values.push_back((uint64_t)exp((double)(random() % 10000) / 10000 * spread));
            ASSERT_TRUE(collx_histogram_add(i % 2 ? &half : &histogram, values.back()));
        }
        ASSERT_TRUE(collx_histogram_merge(&histogram, &half));
        std::sort(values.begin(), values.end());
        for (double q : {0.0, 0.01, 0.25, 0.5, 0.99, 0.999, 1.0}) {
            size_t at = q > 0 ? (size_t)ceil(q * (double)values.size()) - 1 : 0;
            double exact = (double)values[at];
            EXPECT_NEAR((double)collx_histogram_quantile(&histogram, q), exact, exact * 0.01) << q;
        }
        EXPECT_EQ(histogram.min, values.front());
        EXPECT_EQ(histogram.max, values.back());
        collx_histogram_finish(&histogram);
        collx_histogram_finish(&half);
    }
}

// Of values at either end of a bucket, whose middle is told.
TEST(Histogram, BucketsAreToldByTheirMiddles)
{
    for (unsigned block = 4; block < 50; block++)
        for (uint64_t value : {64ull << block, (65ull << block) - 1}) {
            collx_histogram histogram;
            collx_histogram_init(&histogram);
            for (uint64_t each : {(uint64_t)0, value, UINT64_MAX})
                ASSERT_TRUE(collx_histogram_add(&histogram, each));
            EXPECT_NEAR((double)collx_histogram_quantile(&histogram, 0.5), (double)value,
                        0.01 * (double)value);
            collx_histogram_finish(&histogram);
        }
}

TEST(Histogram, Ends)
{
    collx_histogram histogram;
    collx_histogram_init(&histogram);
    EXPECT_EQ(collx_histogram_quantile(&histogram, 0.5), 0u);
    ASSERT_TRUE(collx_histogram_add(&histogram, 0));
    ASSERT_TRUE(collx_histogram_add(&histogram, UINT64_MAX));
    EXPECT_EQ(collx_histogram_quantile(&histogram, 0.5), 0u);
    EXPECT_NEAR((double)collx_histogram_quantile(&histogram, 1), 1.8446744073709552e19, 1.8e17);
    collx_histogram_finish(&histogram);
}
