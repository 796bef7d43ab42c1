/* Layouts of elements with gaps: every part of every layout, against the offsets themselves. */
extern "C" {
#include "base/layout.h"
}

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace
{

using Layout = std::unique_ptr<collx_layout, decltype(&free)>;

Layout layout_of(const std::vector<int64_t> &at, ptrdiff_t extent)
{
    const int64_t lowest = *std::min_element(at.begin(), at.end());
    std::vector<uint16_t> offset;
    for (int64_t each : at)
        offset.push_back(static_cast<uint16_t>(each - lowest));
    return Layout(collx_layout_create(offset.data(), lowest, offset.size(), extent), free);
}

/* Packs and unpacks from `first` on, and looks at each byte. */
void check(const std::vector<int64_t> &offset, ptrdiff_t extent, size_t count)
{
    const ptrdiff_t elements = static_cast<ptrdiff_t>(count);
    ptrdiff_t low = 0, high = 0;
    for (int64_t at : offset)
        for (ptrdiff_t i : {ptrdiff_t(0), elements - 1}) {
            low = std::min<ptrdiff_t>(low, at + i * extent);
            high = std::max<ptrdiff_t>(high, at + i * extent + 1);
        }
    const Layout layout = layout_of(offset, extent);
    ASSERT_NE(layout, nullptr);
    std::vector<unsigned char> memory(static_cast<size_t>(high - low)), packed;
    for (size_t i = 0; i < memory.size(); i++)
        memory[i] = static_cast<unsigned char>(i * 7 + i / 251);
    for (size_t i = 0; i < count; i++)
        for (int64_t at : offset)
            packed.push_back(
                memory[static_cast<size_t>(at + static_cast<ptrdiff_t>(i) * extent - low)]);
    std::mt19937 random(static_cast<unsigned>(offset.size() * count));
    for (int turn = 0; turn < 60; turn++) {
        size_t first = turn ? random() % packed.size() : 0;
        size_t bytes = turn ? random() % (packed.size() - first + 1) : packed.size();
        std::vector<unsigned char> got(bytes + 2, 0xee);
        collx_layout_pack(layout.get(), memory.data() - low, first, bytes, got.data() + 1);
        EXPECT_EQ(got.front(), 0xee);
        EXPECT_EQ(got.back(), 0xee);
        ASSERT_TRUE(std::equal(got.begin() + 1, got.end() - 1,
                               packed.begin() + static_cast<ptrdiff_t>(first)))
            << first << " " << bytes;

        /* What is not of this part stays. */
        std::vector<unsigned char> want(memory.size(), 0x55), found(memory.size(), 0x55);
        for (size_t i = first; i < first + bytes; i++)
            want[static_cast<size_t>(offset[i % offset.size()] +
                                     static_cast<ptrdiff_t>(i / offset.size()) * extent - low)] =
                packed[i];
        collx_layout_unpack(layout.get(), packed.data() + first, found.data() - low, first, bytes);
        ASSERT_EQ(found, want) << first << " " << bytes;
    }
}

/* `count` runs of `each` bytes, `step` apart, from `at` on. */
std::vector<int64_t> runs(int64_t at, int64_t each, int64_t step, int64_t count)
{
    std::vector<int64_t> offset;
    for (int64_t i = 0; i < count; i++)
        for (int64_t byte = 0; byte < each; byte++)
            offset.push_back(at + i * step + byte);
    return offset;
}

TEST(Layout, Even)
{
    for (int64_t each : {1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 64, 100})
        for (int64_t count : {1, 2, 7}) {
            const int64_t step = 2 * each + 4;
            /* Runs go on at their distance into the next element, or at another one. */
            for (int64_t extent : {count * step, count * step + 8, (count - 1) * step + each}) {
                const auto offset = runs(0, each, step, count);
                EXPECT_TRUE(layout_of(offset, extent)->even);
                check(offset, extent, 9);
                check(runs(-8, each, step, count), extent, 9);
                /* From the last element to the first, and from the last run to the first. */
                check(runs(0, each, -step, count), -extent, 9);
            }
        }
}

TEST(Layout, Uneven)
{
    std::vector<int64_t> odd = {40, 41, 42, 7, 0, 1, 2, 3, 20, 21, 60};
    EXPECT_FALSE(layout_of(odd, 64)->even);
    check(odd, 64, 11);
    check(odd, -64, 11);
    check({4, 5, 6, 7, 0, 1, 2, 3}, 8, 5);
    check({3}, 5, 40);
    for (std::vector<int64_t> almost :
         {std::vector<int64_t>{0, 1, 4, 5, 9, 10}, std::vector<int64_t>{0, 1, 4, 5, 8, 12},
          std::vector<int64_t>{0, 1, 2, 5, 8, 9}}) {
        EXPECT_FALSE(layout_of(almost, 16)->even);
        check(almost, 16, 7);
    }
}

TEST(Layout, KnowsWhereThereIsNothingToPack)
{
    EXPECT_TRUE(collx_layout_is_contiguous(layout_of(runs(0, 24, 24, 1), 24).get()));
    EXPECT_TRUE(collx_layout_is_contiguous(layout_of(runs(0, 8, 8, 3), 24).get()));
    EXPECT_FALSE(collx_layout_is_contiguous(layout_of(runs(0, 24, 24, 1), 32).get())) << "gaps";
    EXPECT_FALSE(collx_layout_is_contiguous(layout_of(runs(8, 24, 24, 1), 24).get())) << "apart";
    EXPECT_FALSE(collx_layout_is_contiguous(layout_of({4, 5, 6, 7, 0, 1, 2, 3}, 8).get()))
        << "the other way round";
}

TEST(Layout, KnowsWhenGapsMayBeRead)
{
    ptrdiff_t first;
    size_t bytes;
    ASSERT_TRUE(collx_layout_spans(layout_of(runs(-16, 8, 24, 3), 72).get(), 4, &first, &bytes));
    EXPECT_EQ(first, -16);
    EXPECT_EQ(bytes, 11 * 24 + 8u);
    ASSERT_TRUE(collx_layout_spans(layout_of(runs(0, 8, 24, 3), 80).get(), 4, &first, &bytes));
    EXPECT_EQ(bytes, 3 * 80 + 2 * 24 + 8u);
    auto may_be = [&](const std::vector<int64_t> &offset, ptrdiff_t extent) {
        return collx_layout_spans(layout_of(offset, extent).get(), 4, &first, &bytes);
    };
    EXPECT_TRUE(may_be(runs(0, 8, 4103, 3), 3 * 4103));
    EXPECT_FALSE(may_be(runs(0, 8, 4104, 3), 3 * 4104)) << "a page may be missing";
    EXPECT_FALSE(may_be(runs(0, 8, 24, 3), 56 + 4096)) << "a page may be missing";
    EXPECT_FALSE(may_be(runs(0, 8, -24, 3), -72));
    EXPECT_FALSE(may_be(runs(0, 8, 24, 3), 24)) << "elements that overlap";
    EXPECT_FALSE(may_be({0, 1, 5, 9}, 16));
}

TEST(Layout, IsNoneOfTooManyRuns)
{
    std::vector<int64_t> at;
    for (int64_t i = 0; i < 1025; i++)
        at.push_back(3 * i + i % 2);
    EXPECT_EQ(layout_of(at, 4096), nullptr);
    at.pop_back();
    EXPECT_NE(layout_of(at, 4096), nullptr);
    EXPECT_NE(layout_of(runs(0, 1, 2, 20000), 40000), nullptr) << "even";
}

} // namespace
