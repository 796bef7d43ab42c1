/* How calls find out which way is the fastest. */
extern "C" {
#include "base/options.h"
#include "tests/tuner_view.h"
}

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace
{

/* A look is over with the call that hears of its last try.  If that names another way than the one
 * so far, this call is the first try of a duel. */
enum {
    FIRST = 1, /* the memory is cold */
    TRIES = 18,
    DUEL = 36, /* half of them in rows */
    AGAIN = 1024,
};

struct Trial {
    size_t bytes = TUNER_SHORT;
    int calls[4] = {}; /* that went each way */
    unsigned last = 0; /* the way of the last one */
    uint64_t later[4] = {1000, 1000, 1000, 1000};

    void run(int count, uint64_t one, uint64_t two, uint64_t three, uint64_t four = 1)
    {
        const uint64_t took[] = {one, two, three, four};

        while (count-- > 0)
            calls[last = tuner_call(bytes, took, later)]++;
    }
};

class Tuner : public testing::Test
{
  protected:
    void SetUp() override
    {
        tuner_start(0);
    }

    Trial trial;
};

TEST_F(Tuner, TriesEachWaySixTimesAndStaysWithTheFastest)
{
    trial.run(FIRST + TRIES, 900, 1000, 1100);
    EXPECT_EQ(trial.calls[0], FIRST + 6);
    EXPECT_EQ(trial.calls[1], 6);
    EXPECT_EQ(trial.calls[2], 6);
    EXPECT_EQ(trial.calls[3], 0) << "it is for longer calls";
    trial.run(AGAIN - 1, 900, 1000, 1100);
    EXPECT_EQ(trial.calls[0], FIRST + 6 + AGAIN - 1);
}

TEST_F(Tuner, TakesAnotherWayThatWinsADuel)
{
    trial.run(FIRST + TRIES, 1000, 900, 1100);
    EXPECT_EQ(trial.calls[1], 6);
    trial.run(DUEL, 1000, 900, 1100);
    EXPECT_EQ(trial.calls[0], FIRST + 6 + 18);
    EXPECT_EQ(trial.calls[1], 6 + 18);
    EXPECT_EQ(trial.calls[2], 6) << "there are two in a duel";
    trial.run(AGAIN, 1000, 900, 1100);
    EXPECT_EQ(trial.calls[1], 6 + 18 + AGAIN);
}

TEST_F(Tuner, DoesNotTakeAWayThatDragsInARow)
{
    for (uint64_t later : {1000, 1300, 1400, 9000}) {
        tuner_start(0);
        trial = Trial();
        trial.later[1] = later;
        trial.run(FIRST + TRIES + DUEL + 1, 1000, 900, 1100);
        EXPECT_EQ(trial.last, later < 1350u) << "2000 by way 0, 1900 and more by way 1";
    }
}

TEST_F(Tuner, TakesTheFasterCallWhereWhatFollowsTakesLong)
{
    trial.later[0] = 1000000;
    trial.later[1] = 1000400;
    trial.run(FIRST + TRIES + DUEL + 1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
}

/* Where it works for longer than the calls take, what a row takes tells how much it had to do. */
TEST_F(Tuner, IsNotMisledByWorkBetweenTheCalls)
{
    trial.later[0] = 10000;
    trial.later[1] = 14000;
    trial.run(FIRST + TRIES + DUEL + 1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
    tuner_start(0);
    trial.later[0] = 2500;
    trial.later[1] = 3500;
    trial.run(FIRST + TRIES + DUEL + 1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 0u) << "the calls may do that";
}

TEST_F(Tuner, SaysWhatItHasMeasured)
{
    char why[100];

    ASSERT_EQ(collx_option_set("verbose", "2", why, sizeof why), 0) << why;
    trial.later[1] = 10000;
    testing::internal::CaptureStderr();
    trial.run(FIRST + TRIES + DUEL + 1, 1000, 900, 1100);
    const std::string said = testing::internal::GetCapturedStderr();
    collx_option_unset(COLLX_OPTION_VERBOSE);
    EXPECT_NE(
        said.find("Test of 1024 KiB and more on a test: 1.0 us one, 0.9 us two, 1.1 us three\n"),
        said.npos)
        << said;
    EXPECT_NE(said.find(": 1.0 us one (2.0 in a row), "
                        "0.9 us two (10.9 in a row, most of it the program's)\n"),
              said.npos)
        << said;
}

TEST_F(Tuner, IsNotMisledByARowThatWasDisturbed)
{
    trial.run(FIRST + TRIES, 1000, 900, 1100);
    trial.later[1] = 9000;
    trial.run(DUEL / 3, 1000, 900, 1100);
    trial.later[1] = 1000;
    trial.run(DUEL / 3, 1000, 900, 1100);
    trial.later[1] = 9000;
    trial.run(DUEL / 3 + 1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
}

TEST_F(Tuner, LeavesAWayThatHasBegunToDrag)
{
    trial.run(FIRST + TRIES + DUEL + AGAIN, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
    trial.later[1] = 9000;
    trial.run(TRIES + DUEL + 1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 0u);
}

TEST_F(Tuner, IsNotMisledByALookThatWasDisturbed)
{
    for (unsigned rival : {1, 2}) {
        trial.run(FIRST, 1000, 1100, 1200);
        trial.run(TRIES, 1300, rival == 1 ? 1100 : 1200, 1150);
        trial.run(DUEL, 1000, 1100, 1200);
        trial.run(AGAIN, 1000, 1100, 1200);
        EXPECT_EQ(trial.calls[0], FIRST + 6 + 18 + AGAIN) << "it did not settle, or with another";
        tuner_start(0);
        trial = Trial();
    }
}

TEST_F(Tuner, IsNotMisledByAWayThatHadABadTurn)
{
    trial.run(FIRST + TRIES / 2, 1000, 900, 1100);
    trial.run(3, 1000, 900, 1100);
    trial.run(3, 1000, 1400, 1100);
    trial.run(3, 1000, 900, 1100);
    trial.run(DUEL / 3, 1000, 900, 1100);
    trial.run(DUEL / 3, 1000, 1400, 1100);
    trial.run(DUEL / 3, 1000, 900, 1100);
    trial.run(1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
}

TEST_F(Tuner, GoesOnWithATurnWhileItGetsFaster)
{
    trial.run(FIRST + 3, 1000, 1, 1100);
    for (uint64_t took : {1490, 1450, 1200, 950, 900})
        trial.run(1, 1000, took, 1100);
    EXPECT_EQ(trial.calls[1], 5) << "the last one gained little";
    trial.run(TRIES - 6 + DUEL + 1, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
}

TEST_F(Tuner, EndsATurnThatGetsFasterAllTheTime)
{
    trial.run(FIRST + 3, 100000, 1, 100000);
    for (uint64_t took : {140000, 120000, 90000, 70000, 50000, 30000})
        trial.run(1, 100000, took, 100000);
    EXPECT_EQ(trial.calls[1], 6);
    trial.run(1, 100000, 20000, 100000);
    EXPECT_EQ(trial.last, 2u);
}

TEST_F(Tuner, DoesNotGiveUpAWayForHavingBeenFaster)
{
    trial.run(FIRST + TRIES / 2, 1000, 750, 1100);
    trial.run(3, 1000, 750, 1100);
    for (uint64_t took : {1200, 1150, 750, 750})
        trial.run(1, 1000, took, 1100);
    EXPECT_EQ(trial.calls[1], 3 + 4) << "no other way is much faster than that";
}

TEST_F(Tuner, TriesForLongCallsWhatIsForThese)
{
    trial.bytes = TUNER_LONG;
    trial.run(FIRST + TRIES + 6, 1000, 900, 1100, 800);
    EXPECT_EQ(trial.calls[0], FIRST + 6);
    EXPECT_EQ(trial.calls[3], 6);
    trial.run(DUEL + 1, 1000, 900, 1100, 800);
    EXPECT_EQ(trial.last, 1u) << "what it costs later counts";
}

TEST_F(Tuner, TakesWhatIsFasterByMoreThanItCostsLater)
{
    trial.bytes = TUNER_LONG;
    trial.run(FIRST + TRIES + 6 + DUEL + 1, 1000, 1000, 1000, 650);
    EXPECT_EQ(trial.last, 3u);
}

TEST_F(Tuner, TriesNothingWhereThereIsOneWay)
{
    for (unsigned way : {1, 3}) {
        tuner_start(1u << way);
        trial.run(100, 1, 1000, 1, 1000);
        EXPECT_EQ(trial.calls[way], 100);
    }
}

TEST_F(Tuner, ChoosesFromWhatIsAllowed)
{
    tuner_start(1 << 1 | 1 << 2);
    trial.run(TRIES - 6 + DUEL + 1, 1, 1000, 900);
    EXPECT_EQ(trial.calls[0], 0);
    EXPECT_EQ(trial.calls[1], 6 + 18);
    EXPECT_EQ(trial.last, 2u);
}

TEST_F(Tuner, GivesUpAWayThatIsMuchSlowerAfterTwoCalls)
{
    trial.run(FIRST + TRIES, 1000, 2000, 1600);
    EXPECT_EQ(trial.calls[1], 2);
    EXPECT_EQ(trial.calls[2], 2);
    EXPECT_EQ(trial.last, 0u);
}

TEST_F(Tuner, GivesUpTheFirstWayWhereAnotherIsMuchFaster)
{
    trial.run(FIRST + TRIES - 2, 1000, 1100, 100);
    EXPECT_EQ(trial.calls[0], FIRST + 3 + 2);
    EXPECT_EQ(trial.calls[1], 3 + 2);
    trial.run(DUEL + 1, 1000, 1100, 100);
    EXPECT_EQ(trial.last, 2u);
}

TEST_F(Tuner, IsNotMisledByOneCallThatWasDisturbed)
{
    trial.run(FIRST + 3, 1000, 500, 1100);
    trial.run(1, 1000, 9000, 1100);
    trial.run(1, 1000, 500, 1100);
    trial.run(1, 1000, 9000, 1100);
    trial.run(TRIES + DUEL, 1000, 500, 1100);
    EXPECT_EQ(trial.last, 1u);
}

TEST_F(Tuner, IsNotMisledByATurnThatWasGoodOnce)
{
    for (const std::vector<uint64_t> &turns :
         {std::vector<uint64_t>{900, 1200, 1200}, {1200, 900, 1200}, {1300, 1200, 900}}) {
        tuner_start(0);
        trial.run(FIRST + TRIES, 1000, 900, 1100);
        for (uint64_t took : turns)
            trial.run(DUEL / 3, 1000, took, 1100);
        trial.run(DUEL, 1000, 1200, 1100);
        EXPECT_EQ(trial.last, 0u) << turns[0] << ", " << turns[1] << ", " << turns[2];
    }
}

TEST_F(Tuner, LooksAgainEverLessOften)
{
    int tried = 0;

    trial.run(FIRST, 900, 1000, 1100);
    for (int patience : {1024, 4096, 16384, 65536, 65536, 0}) {
        trial.run(TRIES, 900, 1000, 1100);
        EXPECT_EQ(trial.calls[1], tried += 6) << "not again before the next " << patience;
        trial.run(patience, 900, 1000, 1100);
        EXPECT_EQ(trial.calls[1], tried) << "after less than " << patience << " calls";
    }
}

TEST_F(Tuner, LooksAgainAtWhatItHasGivenUp)
{
    trial.run(FIRST + 6 + 2 + 2 + AGAIN, 1000, 9000, 9000);
    EXPECT_EQ(trial.calls[2], 2);
    trial.run(TRIES - 5, 1000, 9000, 10);
    EXPECT_EQ(trial.calls[1], 2 + 2);
    trial.run(DUEL + 1, 1000, 9000, 10);
    EXPECT_EQ(trial.last, 2u);
}

} // namespace
