/* Segments that nobody uses any more, and who gets them. */
extern "C" {
#include "hw/spares.h"
}

#include <algorithm>
#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace
{

using Cookies = std::array<uint64_t, COLLX_SPARES>;

/* What a segment is in several processes: here, two lists in one. */
struct Memory {
    uint32_t users = 0, written = 0;

    collx_spare spare(uint64_t cookie, int sharers = 2, size_t size = 100, uint64_t layout = 7)
    {
        return {this, &users, size, sharers, layout, cookie, nullptr};
    }
};

class Spares : public testing::Test
{
  protected:
    collx_spares spares = COLLX_SPARES_INITIALIZER;
    std::array<Memory, COLLX_SPARES + 1> memory;
    collx_spare over;

    void keep(unsigned i, uint64_t cookie = 0) /* 0: i + 1 */
    {
        const collx_spare spare = memory[i].spare(cookie ? cookie : i + 1);
        ASSERT_TRUE(collx_spares_keep(&spares, &spare, &over));
    }

    Cookies told()
    {
        Cookies cookies;
        collx_spares_tell(&spares, cookies.data());
        return cookies;
    }

    /* The cookie of what the leader gets; 0: nothing. */
    uint64_t claim(const Cookies &common, int sharers = 2, size_t size = 100, uint64_t layout = 7,
                   bool any = true)
    {
        collx_spare wanted = {nullptr, nullptr, size, sharers, layout, 0, nullptr};
        return collx_spares_claim(&spares, common.data(), any, &wanted) ? wanted.cookie : 0;
    }
};

TEST_F(Spares, LatestOneThatAllHaveIsClaimed)
{
    for (unsigned i = 0; i < 3; i++)
        keep(i);
    EXPECT_EQ(told(), (Cookies{1, 2, 3, 0}));
    EXPECT_EQ(claim({1, 2, 0, 0}), 2u);
    EXPECT_EQ(memory[1].users, 2u) << "no other leader may have it now";
    EXPECT_EQ(claim({1, 2, 0, 0}), 1u);
    EXPECT_EQ(claim({1, 2, 0, 0}), 0u);
    EXPECT_EQ(claim({0, 0, 0, 0}), 0u);
}

TEST_F(Spares, NoneThatIsOtherwiseIsClaimed)
{
    keep(0);
    EXPECT_EQ(claim({1}, 3), 0u);
    EXPECT_EQ(claim({1}, 2, 99), 0u);
    EXPECT_EQ(claim({1}, 2, 100, 8), 0u);
    EXPECT_EQ(claim({2}), 0u);
    EXPECT_EQ(claim({1}), 1u);
}

TEST_F(Spares, NoneThatAnybodyUsesIsClaimed)
{
    keep(0);
    collx_spare_begin(&memory[0].users, 2);
    EXPECT_EQ(claim({1}), 0u);
    EXPECT_TRUE(collx_spare_leave(&memory[0].users));
    EXPECT_EQ(claim({1}), 0u);
    EXPECT_TRUE(collx_spare_leave(&memory[0].users));
    EXPECT_EQ(claim({1}), 1u);
}

TEST_F(Spares, OthersTakeTheOneTheyHearOf)
{
    collx_spare taken;

    keep(0), keep(1);
    EXPECT_FALSE(collx_spares_take(&spares, 3, &taken));
    ASSERT_TRUE(collx_spares_take(&spares, 1, &taken));
    EXPECT_EQ(taken.base, &memory[0]);
    EXPECT_FALSE(collx_spares_take(&spares, 1, &taken));
    EXPECT_EQ(told(), (Cookies{2, 0, 0, 0}));
}

TEST_F(Spares, OldestHasToGo)
{
    for (unsigned i = 0; i < COLLX_SPARES; i++)
        keep(i);
    collx_spare last = memory[COLLX_SPARES].spare(COLLX_SPARES + 1);
    EXPECT_FALSE(collx_spares_keep(&spares, &last, &over));
    EXPECT_EQ(over.cookie, 1u);
    EXPECT_FALSE(collx_spares_drop(&spares, false, &over));
    for (uint64_t cookie = 2; cookie <= COLLX_SPARES + 1; cookie++) {
        ASSERT_TRUE(collx_spares_drop(&spares, true, &over));
        EXPECT_EQ(over.cookie, cookie);
    }
    EXPECT_FALSE(collx_spares_drop(&spares, true, &over));
}

/* Nobody has what somebody has let go of, and everybody sees that it is to go. */
TEST_F(Spares, WhatHasBeenLetGoIsNobodys)
{
    for (unsigned i = 0; i < 3; i++)
        keep(i);
    EXPECT_TRUE(collx_spare_let_go(&memory[1].users)) << "nobody uses it";
    EXPECT_TRUE(collx_spare_let_go(&memory[1].users)) << "nor when another one lets go as well";
    EXPECT_EQ(claim({2}), 0u);
    ASSERT_TRUE(collx_spares_drop(&spares, false, &over));
    EXPECT_EQ(over.cookie, 2u);
    EXPECT_FALSE(collx_spares_drop(&spares, false, &over));
    EXPECT_EQ(told(), (Cookies{1, 3, 0, 0}));
}

TEST_F(Spares, WhatIsLetGoStaysUntilItsUsersAreDone)
{
    collx_spare_begin(&memory[0].users, 3);
    EXPECT_TRUE(collx_spare_leave(&memory[0].users));
    EXPECT_FALSE(collx_spare_let_go(&memory[0].users)) << "two others use it";
    EXPECT_FALSE(collx_spare_leave(&memory[0].users)) << "it must not be kept";
    EXPECT_FALSE(collx_spare_let_go(&memory[0].users));
    EXPECT_FALSE(collx_spare_leave(&memory[0].users));
    EXPECT_TRUE(collx_spare_let_go(&memory[0].users)) << "nobody is left";
}

/* Two threads of P and Q each tell of one; it is taken, used and freed for the first communicator
 * before the second one's leader comes to choose, and Q has let go of it or not. */
TEST_F(Spares, WhatHasBeenUsedMeanwhileIsAnotherOne)
{
    keep(0);
    const Cookies common = told();
    EXPECT_EQ(claim(common), 1u);
    EXPECT_TRUE(collx_spare_leave(&memory[0].users));
    EXPECT_TRUE(collx_spare_leave(&memory[0].users));
    keep(0, 99); /* as who claims it is to do */
    EXPECT_EQ(claim(common), 0u);
    EXPECT_EQ(claim(told()), 99u);
}

TEST_F(Spares, LatestThatIsOneIsFound)
{
    const auto is_odd = [](const collx_spare *spare, const void *context) {
        EXPECT_EQ(context, nullptr);
        return spare->cookie % 2 == 1;
    };
    collx_spare found;

    EXPECT_FALSE(collx_spares_find(&spares, is_odd, nullptr, &found));
    for (unsigned i = 0; i < 4; i++)
        keep(i);
    EXPECT_TRUE(collx_spares_find(&spares, is_odd, nullptr, nullptr));
    EXPECT_EQ(told(), (Cookies{1, 2, 3, 4})) << "who only looks has not got it";
    ASSERT_TRUE(collx_spares_find(&spares, is_odd, nullptr, &found));
    EXPECT_EQ(found.cookie, 3u);
    EXPECT_EQ(told(), (Cookies{1, 2, 4, 0}));
}

/* One sharer may have left again, and let go, before another one comes: that one has it still. */
TEST_F(Spares, SharersReturnOneByOne)
{
    uint32_t *users = &memory[0].users;

    keep(0);
    for (unsigned life = 1; life < 100000; life++) {
        collx_spare_return(users, 2, life);
        ASSERT_TRUE(collx_spare_leave(users));
        ASSERT_EQ(claim({1}), 0u) << "one of them has yet to come";
        collx_spare_return(users, 2, life);
        ASSERT_TRUE(collx_spare_leave(users));
    }
    EXPECT_EQ(claim({1}), 1u);
    EXPECT_EQ(*users, 2u);
    EXPECT_TRUE(collx_spare_leave(users));
    EXPECT_TRUE(collx_spare_leave(users));

    collx_spare_return(users, 2, 1);
    EXPECT_TRUE(collx_spare_leave(users));
    EXPECT_FALSE(collx_spare_let_go(users)) << "its memory is needed yet";
    collx_spare_return(users, 2, 1);
    EXPECT_FALSE(collx_spare_leave(users)) << "there is nobody to return to";
    EXPECT_TRUE(collx_spare_let_go(users));
}

TEST_F(Spares, WhatIsKeptWithSomethingIsTheLastToBeClaimed)
{
    collx_spare with = memory[1].spare(2);

    keep(0);
    with.with = this;
    ASSERT_TRUE(collx_spares_keep(&spares, &with, &over));
    EXPECT_EQ(claim({1, 2}, 2, 100, 7, false), 1u);
    EXPECT_EQ(claim({1, 2}, 2, 100, 7, false), 0u);
    EXPECT_EQ(claim({1, 2}, 2, 100, 7, true), 2u);
}

TEST_F(Spares, AreFull)
{
    for (unsigned i = 0; i < COLLX_SPARES; i++) {
        EXPECT_FALSE(collx_spares_are_full(&spares));
        keep(i);
    }
    EXPECT_TRUE(collx_spares_are_full(&spares));
}

/* Leaders in different processes want the same segments at the same time, again and again: no two
 * have one together, and each finds what the last one has left there. */
TEST_F(Spares, EachGoesToOneLeader)
{
    enum { LEADERS = 3, TURNS = 20000 };
    std::array<collx_spares, LEADERS> lists;
    std::vector<std::thread> threads;
    std::atomic<int> claimed = 0, wrong = 0;

    for (collx_spares &list : lists)
        list = COLLX_SPARES_INITIALIZER;
    for (collx_spares &list : lists)
        for (unsigned i = 0; i < 2; i++) {
            const collx_spare spare = memory[i].spare(i + 1, 1);
            ASSERT_TRUE(collx_spares_keep(&list, &spare, &over));
        }
    for (collx_spares &list : lists)
        threads.emplace_back([&list, &claimed, &wrong] {
            const Cookies common = {1, 2};
            collx_spare spare, none;
            for (int turn = 0; turn < TURNS; turn++) {
                spare = {nullptr, nullptr, 100, 1, 7, 0, nullptr};
                if (!collx_spares_claim(&list, common.data(), true, &spare))
                    continue;
                auto *memory = static_cast<Memory *>(spare.base);
                wrong += memory->written++ % 2;
                wrong += memory->written++ % 2 == 0;
                claimed++;
                wrong += !collx_spare_leave(&memory->users);
                wrong += !collx_spares_keep(&list, &spare, &none);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(memory[0].written + memory[1].written, 2u * static_cast<unsigned>(claimed));
}

} // namespace
