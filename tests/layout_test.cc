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

/* Run by run, as they come. */
bool add(collx_layout *layout, const std::vector<int64_t> &at)
{
    for (size_t i = 0, end; i < at.size(); i = end) {
        for (end = i + 1; end < at.size() && at[end] == at[end - 1] + 1;)
            end++;
        if (!collx_layout_add(layout, at[i], end - i, 0, 1))
            return false;
    }
    return true;
}

Layout layout_of(const std::vector<int64_t> &at, ptrdiff_t extent, size_t most = 100)
{
    Layout layout(collx_layout_create(most), free);
    if (!add(layout.get(), at))
        return Layout(nullptr, free);
    layout->extent = extent;
    return Layout(collx_layout_copy(layout.get()), free);
}

/* Packs and unpacks from `first` on, and looks at each byte. */
void check(const collx_layout *layout, const std::vector<int64_t> &offset, ptrdiff_t extent,
           size_t count)
{
    const ptrdiff_t elements = static_cast<ptrdiff_t>(count);
    ptrdiff_t low = 0, high = 0;
    for (int64_t at : offset)
        for (ptrdiff_t i : {ptrdiff_t(0), elements - 1}) {
            low = std::min<ptrdiff_t>(low, at + i * extent);
            high = std::max<ptrdiff_t>(high, at + i * extent + 1);
        }
    ASSERT_EQ(layout->size * layout->items, offset.size());
    ASSERT_EQ(collx_layout_distance(layout, 1), extent);
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
        collx_layout_pack(layout, memory.data() - low, first, bytes, got.data() + 1);
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
        collx_layout_unpack(layout, packed.data() + first, found.data() - low, first, bytes);
        ASSERT_EQ(found, want) << first << " " << bytes;
    }
}

void check(const std::vector<int64_t> &offset, ptrdiff_t extent, size_t count)
{
    const Layout layout = layout_of(offset, extent);
    ASSERT_NE(layout, nullptr);
    check(layout.get(), offset, extent, count);
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
                EXPECT_EQ(layout_of(offset, extent)->strips, 1u);
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
    EXPECT_EQ(layout_of(odd, 64)->strips, 5u);
    check(odd, 64, 11);
    check(odd, -64, 11);
    check({4, 5, 6, 7, 0, 1, 2, 3}, 8, 5);
    check({3}, 5, 40);
    for (std::vector<int64_t> almost :
         {std::vector<int64_t>{0, 1, 4, 5, 9, 10}, std::vector<int64_t>{0, 1, 4, 5, 8, 12},
          std::vector<int64_t>{0, 1, 2, 5, 8, 9}}) {
        EXPECT_GT(layout_of(almost, 16)->strips, 1u);
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
    EXPECT_FALSE(may_be(runs(0, 8, -24, 3), 24)) << "nor where elements do not go that way";
    EXPECT_FALSE(may_be(runs(0, 8, 24, 3), 24)) << "elements that overlap";
    EXPECT_FALSE(may_be({0, 1, 5, 9}, 16));
}

TEST(Layout, IsNoneOfTooManyStrips)
{
    std::vector<int64_t> at;
    for (int64_t i = 0; i < 22; i++)
        for (int64_t byte = 0; byte <= i % 2; byte++)
            at.push_back(4 * i + byte);
    EXPECT_EQ(layout_of(at, 4096, 21), nullptr);
    EXPECT_NE(layout_of(at, 4096, 22), nullptr);
    EXPECT_NE(layout_of(runs(0, 1, 2, 20000), 40000, 1), nullptr) << "even";
}

/* The offsets of so many elements in a row. */
std::vector<int64_t> repeated(const std::vector<int64_t> &element, ptrdiff_t extent, size_t count,
                              int64_t at = 0)
{
    std::vector<int64_t> offset;
    for (size_t i = 0; i < count; i++)
        for (int64_t each : element)
            offset.push_back(at + each + static_cast<int64_t>(i) * extent);
    return offset;
}

struct Element {
    std::vector<int64_t> offset;
    ptrdiff_t extent;
};

const Element elements[] = {
    {runs(0, 8, 8, 1), 8},           {runs(0, 8, 8, 1), 16},      {runs(-4, 8, 8, 1), 8},
    {runs(0, 8, 8, 1), -8},          {runs(0, 8, 24, 3), 72},     {runs(0, 8, 24, 3), 56},
    {runs(0, 8, 24, 3), 80},         {runs(0, 8, -24, 3), -72},   {{0, 1, 2, 3, 8, 9, 16}, 24},
    {{40, 41, 42, 7, 0, 1, 2}, -64}, {{0, 1, 0, 1, 2, 3, 8}, 12}, {{3}, 0},
};

TEST(Layout, ElementsInARow)
{
    for (const Element &element : elements)
        for (size_t count : {1, 2, 5}) {
            Layout layout = layout_of(element.offset, element.extent);
            const size_t strips = layout->strips;
            collx_layout_repeat(layout.get(), count);
            EXPECT_EQ(layout->strips, strips) << "no more of them";
            const ptrdiff_t extent = static_cast<ptrdiff_t>(count) * element.extent;
            check(layout.get(), repeated(element.offset, element.extent, count), extent, 4);
            collx_layout_repeat(layout.get(), 3);
            check(layout.get(), repeated(element.offset, element.extent, 3 * count), 3 * extent, 4);
        }
}

TEST(Layout, BlocksOfElements)
{
    for (const Element &element : elements)
        for (size_t items : {1, 3})
            for (size_t length : {1, 2, 4})
                for (size_t count : {1, 2, 6})
                    for (ptrdiff_t step : {8, 64, 400, -120, 0}) {
                        Layout of = layout_of(element.offset, element.extent);
                        collx_layout_repeat(of.get(), items);
                        Layout layout(collx_layout_create(1000), free);
                        ASSERT_TRUE(add(layout.get(), {-400, -399}));
                        ASSERT_TRUE(collx_layout_add_blocks(layout.get(), of.get(), 16, length,
                                                            step, count));
                        layout->extent = 4000;
                        std::vector<int64_t> offset =
                            repeated(repeated(element.offset, element.extent, items * length), step,
                                     count, 16);
                        offset.insert(offset.begin(), {-400, -399});
                        check(layout.get(), offset, 4000, 2);
                    }
}

TEST(Layout, MillionsOfBlocksAreOneStrip)
{
    const Layout number = layout_of(runs(0, 8, 8, 1), 8);
    Layout layout(collx_layout_create(1), free);
    ASSERT_TRUE(collx_layout_add_blocks(layout.get(), number.get(), 0, 2, 32, SIZE_MAX / 64));
    EXPECT_EQ(layout->strips, 1u);
    EXPECT_EQ(layout->size, SIZE_MAX / 64 * 16);
    ASSERT_TRUE(collx_layout_add_blocks(layout.get(), number.get(), 0, 0, 32, SIZE_MAX / 64));
    EXPECT_FALSE(collx_layout_add_blocks(layout.get(), number.get(), 0, 2, 16, 1)) << "no room";
}

} // namespace
