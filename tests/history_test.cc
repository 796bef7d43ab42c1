/* What is expected of communicators, by what others were used for. */
extern "C" {
#include "hw/spares.h"
#include "pmpi/history.h"
}

#include <gtest/gtest.h>

namespace
{

enum : uint64_t { USUAL = 4096, LONG = 1000 };

/* There is one history in a process: each test has keys of its own. */
uint64_t new_key()
{
    static uint64_t key = 0;

    return ++key;
}

bool expects(uint64_t key, uint64_t calls)
{
    return collx_history_expects(key, calls, USUAL);
}

TEST(History, NothingIsExpectedOfWhatIsNotKnown)
{
    const uint64_t key = new_key();

    EXPECT_FALSE(expects(key, 16));
    EXPECT_FALSE(expects(key, 100000));
    collx_history_set_up(key);
    EXPECT_FALSE(expects(key, 16));
}

TEST(History, CallsOfManyCountTogether)
{
    const uint64_t key = new_key();

    for (int i = 0; i < 4; i++) {
        EXPECT_FALSE(expects(key, 16)) << i;
        collx_history_freed(key, LONG, false, false);
    }
    EXPECT_TRUE(collx_history_any());
    EXPECT_FALSE(expects(key, USUAL - 4 * LONG - 1));
    EXPECT_TRUE(expects(key, USUAL - 4 * LONG));
    EXPECT_FALSE(expects(new_key(), USUAL - 4 * LONG)) << "of another kind";
}

TEST(History, AsManyCallsAreExpectedAsTheLastOneMade)
{
    const uint64_t key = new_key();

    collx_history_freed(key, 10 * USUAL, false, false);
    collx_history_freed(key, 100, false, false);
    EXPECT_TRUE(expects(key, 36));
    EXPECT_FALSE(expects(key, 37)) << "less than it takes";
    collx_history_freed(key, 216, true, true);
    EXPECT_TRUE(expects(key, 152)) << "also when it was set up";
    EXPECT_FALSE(expects(key, 153));
}

TEST(History, SetupFromNothingHasToBeEarnedAgain)
{
    const uint64_t key = new_key();

    collx_history_freed(key, USUAL, false, false);
    EXPECT_TRUE(expects(key, 16));
    collx_history_set_up(key);
    EXPECT_FALSE(expects(key, 16));
    /* What was set up has not waited for it in vain. */
    collx_history_freed(key, 100 * USUAL, true, false);
    EXPECT_FALSE(expects(key, 16));
}

TEST(History, WhatWasLeftIsForOne)
{
    const uint64_t key = new_key();

    collx_history_freed(key, LONG, true, true);
    collx_history_freed(key, LONG, true, true);
    for (int i = 0; i < 2; i++) {
        EXPECT_TRUE(expects(key, 16));
        collx_history_set_up(key);
    }
    EXPECT_FALSE(expects(key, 16));
    collx_history_freed(key, LONG, true, true);
    EXPECT_TRUE(expects(key, 16));
}

TEST(History, NoMoreIsLeftThanCanBeKept)
{
    const uint64_t first = new_key(), key = new_key();

    collx_history_freed(first, LONG, true, true);
    for (int i = 0; i < COLLX_SPARES; i++)
        collx_history_freed(key, LONG, true, true);
    EXPECT_FALSE(expects(first, 16));
    for (int i = 0; i < COLLX_SPARES; i++) {
        EXPECT_TRUE(expects(key, 16));
        collx_history_set_up(key);
    }
    EXPECT_FALSE(expects(key, 16));
}

TEST(History, ThoseOfLongAgoAreForgotten)
{
    const uint64_t used = new_key(), old = new_key();

    collx_history_freed(old, 2 * USUAL, false, false);
    collx_history_freed(used, 2 * USUAL, false, false);
    for (int i = 0; i < 100; i++) {
        collx_history_freed(new_key(), LONG, false, false);
        collx_history_freed(used, LONG, false, false);
    }
    EXPECT_FALSE(expects(old, 16));
    EXPECT_TRUE(expects(used, 16));
}

} // namespace
