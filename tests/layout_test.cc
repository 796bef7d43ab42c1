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

Layout layout_of(const std::vector<int64_t> &offset, ptrdiff_t extent)
{
    return Layout(collx_layout_create(offset.data(), offset.size(), extent), free);
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

TEST(Layout, Regular)
{
    for (int64_t each : {1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 64, 100})
        for (int64_t count : {1, 2, 7}) {
            const int64_t step = 2 * each + 4;
            const auto offset = runs(0, each, step, count);
            EXPECT_TRUE(layout_of(offset, count * step)->regular);
            check(offset, count * step, 9);
            check(runs(-8, each, step, count), count * step, 9);
            /* From the last element to the first, and from the last run to the first. */
            check(runs(0, each, -step, count), -count * step, 9);
        }
}

TEST(Layout, Irregular)
{
    const auto offset = runs(0, 8, 24, 5);
    EXPECT_FALSE(layout_of(offset, 5 * 24 + 8)->regular) << "another distance between elements";
    check(offset, 5 * 24 + 8, 9);
    check(offset, 4 * 24 + 8, 9);
    std::vector<int64_t> odd = {40, 41, 42, 7, 0, 1, 2, 3, 20, 21, 60};
    check(odd, 64, 11);
    check(odd, -64, 11);
    check({4, 5, 6, 7, 0, 1, 2, 3}, 8, 5);
    check({3}, 5, 40);
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
    EXPECT_FALSE(
        collx_layout_spans(layout_of(runs(0, 8, 4096, 3), 3 * 4096).get(), 4, &first, &bytes))
        << "a page may be missing";
    EXPECT_FALSE(collx_layout_spans(layout_of(runs(0, 8, -24, 3), -72).get(), 4, &first, &bytes));
    EXPECT_FALSE(collx_layout_spans(layout_of(runs(0, 8, 24, 3), 80).get(), 4, &first, &bytes));
}

TEST(Layout, IsNoneOfTooManyRuns)
{
    EXPECT_NE(layout_of(runs(0, 1, 2, 1024), 2048), nullptr);
    EXPECT_EQ(layout_of(runs(0, 1, 2, 1025), 2050), nullptr);
}

} // namespace
