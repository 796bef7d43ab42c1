/* How calls find out which way is the fastest. */
extern "C" {
#include "tests/tuner_view.h"
}

#include <gtest/gtest.h>

namespace
{

/* LOOK: its tries, and the call that hears of the last one. */
enum { FIRST = 1 /* the memory is cold */, TRIES = 18, LOOK = TRIES + 1, AGAIN = 1024 };

struct Trial {
    size_t bytes = TUNER_SHORT;
    int calls[4] = {}; /* that went each way */
    unsigned last = 0; /* the way of the last one */

    void run(int count, uint64_t one, uint64_t two, uint64_t three, uint64_t four = 1)
    {
        const uint64_t took[] = {one, two, three, four};

        while (count-- > 0)
            calls[last = tuner_call(bytes, took)]++;
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

TEST_F(Tuner, TakesAnotherWayThatIsFasterInTwoLooks)
{
    trial.run(FIRST + LOOK, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 0u);
    EXPECT_EQ(trial.calls[1], 6);
    trial.run(LOOK, 1000, 900, 1100);
    EXPECT_EQ(trial.calls[0], FIRST + 6 + 1 + 6);
    trial.run(AGAIN - 2, 1000, 900, 1100);
    EXPECT_EQ(trial.calls[1], 12 + 1 + AGAIN - 2);
}

TEST_F(Tuner, IsNotMisledByALookThatWasDisturbed)
{
    for (unsigned rival : {1, 2}) {
        trial.run(FIRST, 1000, 1100, 1200);
        trial.run(LOOK, 1300, rival == 1 ? 1100 : 1200, 1150);
        trial.run(LOOK, 1000, 1100, 1200);
        EXPECT_EQ(trial.last, 0u);
        trial.run(AGAIN - 1, 1000, 1100, 1200);
        EXPECT_EQ(trial.calls[1], 12) << "it did not settle";
        tuner_start(0);
        trial = Trial();
    }
}

TEST_F(Tuner, StaysWhereTwoLooksNameTwoOthers)
{
    trial.run(FIRST + LOOK, 1000, 900, 1100);
    trial.run(LOOK, 1000, 1100, 900);
    EXPECT_EQ(trial.last, 0u);
    trial.run(AGAIN - 1, 1000, 900, 1100);
    EXPECT_EQ(trial.calls[0], FIRST + 2 * (6 + 1) + AGAIN - 1);
    trial.run(LOOK, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 0u) << "the next look has to be told the same twice again";
    trial.run(LOOK, 1000, 900, 1100);
    EXPECT_EQ(trial.last, 1u);
}

TEST_F(Tuner, TriesForLongCallsWhatIsForThese)
{
    trial.bytes = TUNER_LONG;
    trial.run(FIRST + TRIES + 6, 1000, 900, 1100, 800);
    EXPECT_EQ(trial.calls[0], FIRST + 6);
    EXPECT_EQ(trial.calls[3], 6);
    trial.run(1 + LOOK + 6, 1000, 900, 1100, 800);
    EXPECT_EQ(trial.last, 1u) << "what it costs later counts";
}

TEST_F(Tuner, TakesWhatIsFasterByMoreThanItCostsLater)
{
    trial.bytes = TUNER_LONG;
    trial.run(FIRST + 2 * (LOOK + 6), 1000, 1000, 1000, 650);
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
    trial.run(2 * (LOOK - 6), 1, 1000, 900);
    EXPECT_EQ(trial.calls[0], 0);
    EXPECT_EQ(trial.calls[1], 6 + 1 + 6);
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
    trial.run(1 + LOOK, 1000, 1100, 100);
    EXPECT_EQ(trial.last, 2u);
}

TEST_F(Tuner, IsNotMisledByOneCallThatWasDisturbed)
{
    trial.run(FIRST + 3, 1000, 500, 1100);
    trial.run(1, 1000, 9000, 1100);
    trial.run(1, 1000, 500, 1100);
    trial.run(1, 1000, 9000, 1100);
    trial.run(TRIES + LOOK, 1000, 500, 1100);
    EXPECT_EQ(trial.last, 1u);
}

TEST_F(Tuner, IsNotMisledByATurnThatWasGoodOnce)
{
    trial.run(FIRST, 500, 600, 700);
    for (int look = 0; look < 2; look++) {
        trial.run(TRIES / 2, 500, 600, 700);
        trial.run(TRIES / 2 + 1, 650, 600, 700);
    }
    EXPECT_EQ(trial.last, 1u);
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
    trial.run(LOOK, 1000, 9000, 10);
    EXPECT_EQ(trial.last, 2u);
}

} // namespace
