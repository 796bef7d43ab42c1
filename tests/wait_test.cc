/* When a rank leaves its CPU to others: in a crowd at once, if they may be waited for. */
#include "tests/team.h"

extern "C" {
#include "base/clock.h"
#include "tests/wait_view.h"
extern const collx_algorithm collx_barrier_shm;
}

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace
{

enum { FEW = 8, MANY = 64 };

/* Rank 0 waits, on a CPU of which it knows the number; nobody else exists. */
class Waiting : public testing::Test
{
  protected:
    void SetUp() override
    {
        cpu_set_t one;

        ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        here = sched_getcpu() + 1;
        ops.progress = [](void *) {};
        team.size = 4;
        team.ops = &ops;
        team.crowded = true;
        team.pauses = 1;
        team.seen = seen;
    }
    void TearDown() override
    {
        sched_setaffinity(0, sizeof before, &before);
    }
    int looks(int32_t one, int32_t two, int32_t three, unsigned missing, bool relayed = false,
              unsigned behind = 0)
    {
        look(one, two, three);
        return wait_looks(&team, missing, behind, nullptr, relayed);
    }
    /* The same, before those of `after` are waited for. */
    int looks_before(const std::vector<int> &after, int32_t one, int32_t two, int32_t three,
                     unsigned missing, unsigned behind)
    {
        look(one, two, three);
        return wait_looks(&team, missing, behind, after.data(), false);
    }

    int32_t here, seen[4];
    collx_team team = {};

  private:
    void look(int32_t one, int32_t two, int32_t three)
    {
        seen[0] = 0;
        seen[1] = one, seen[2] = two, seen[3] = three;
    }

    cpu_set_t before;
    collx_lender_ops ops = {};
};

TEST_F(Waiting, PollsForRanksElsewhereIfTheOneBesideItWaitsToo)
{
    EXPECT_GT(looks(here, here + 1, here + 1, 0b1100), MANY);
    EXPECT_EQ(seen[0], here);
    EXPECT_GT(looks(here, here + 1, here + 1, 0b0100), MANY);
}

TEST_F(Waiting, DoesNotYieldIfTheyComeMeanwhile)
{
    seen[0] = seen[1] = here;
    seen[2] = seen[3] = here + 1;
    EXPECT_EQ(wait_yields(&team, 0b1100, FEW), 0);
}

TEST_F(Waiting, YieldsToOneBesideItThatIsMissing)
{
    EXPECT_LT(looks(here, here + 1, here + 1, 0b0010), FEW);
    EXPECT_LT(looks(here, here + 1, here + 1, 0b1110), FEW);
}

TEST_F(Waiting, YieldsToOneBesideItThatIsBehind)
{
    EXPECT_LT(looks(here, here + 1, here + 1, 0b0100, false, 0b0010), FEW);
    EXPECT_GT(looks(here, here + 1, here + 1, 0b0100, false, 0b1001), MANY);
}

/* Rank 1 is beside it, 2 and 3 are elsewhere, and 2 is missing. */
TEST_F(Waiting, KeepsItsCpuFromOneThatIsBehindIfItIsWaitedForNext)
{
    auto next = [&](const std::vector<int> &after, unsigned missing = 0b0100) {
        return looks_before(after, here, here + 1, here + 1, missing, 0b0010);
    };
    EXPECT_GT(next({3, 0, 1}), MANY);
    EXPECT_LT(next({3, 1, 0}), FEW) << "that one is";
    EXPECT_LT(next({-1, 0, 1}), FEW) << "nobody knows";
    EXPECT_LT(next({3, 2, 3}), FEW) << "neither is";
    EXPECT_LT(next({3, 0, 1}, 0b0110), FEW) << "that one is missing already";
}

TEST_F(Waiting, YieldsToNobodyWhoIsNextButWaitsToo)
{
    EXPECT_GT(looks_before({3, 1, 0}, here, here + 1, here + 1, 0b0100, 0), MANY);
}

/* Others have as many ranks to let run. */
TEST_F(Waiting, PollsLongerWhereMoreRanksShareTheCpu)
{
    const int two = looks(here, here + 1, here + 1, 0b1000);
    const int three = looks(here, here, here + 1, 0b1000);
    EXPECT_GT(three, two + two / 4);
    EXPECT_LT(three, 2 * two);
}

TEST_F(Waiting, YieldsWhereOneThatIsMissingMayBeBesideIt)
{
    EXPECT_LT(looks(here, 0, here + 1, 0b0100), FEW);
}

TEST_F(Waiting, YieldsWhereNobodyIsBesideIt)
{
    EXPECT_LT(looks(here + 1, here + 1, here + 1, 0b1110), FEW);
}

TEST_F(Waiting, YieldsWhereNobodyIsMissingSinceSomebodyPassesThatOn)
{
    EXPECT_LT(looks(here, here + 1, here + 1, 0), FEW);
    EXPECT_LT(looks(here, here + 1, here + 1, 0b1100, true), FEW);
}

TEST_F(Waiting, YieldsWhereNobodyTells)
{
    team.seen = nullptr;
    EXPECT_LT(looks(here, here + 1, here + 1, 0b1100), FEW);
}

/* Who has a CPU is there for whoever needs MPI of it. */
TEST_F(Waiting, SleepsInACrowdAlone)
{
    EXPECT_GT(wait_sleeps(&team, 10000), 0);
    team.crowded = false;
    EXPECT_EQ(wait_sleeps(&team, 100), 0);
}

TEST_F(Waiting, GoesOnSleeping)
{
    EXPECT_EQ(wait_yields_between(&team), 0);
}

/* A process on this CPU that waits, too. */
class Beside
{
  public:
    Beside() : pid(fork())
    {
        if (pid == 0)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (pid == 0)
            sched_yield();
    }
    ~Beside()
    {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    /* Whether every yield lets it run: not of every kernel. */
    static bool runs()
    {
        enum { YIELDS = 1000 };
        rusage begin, end;

        getrusage(RUSAGE_SELF, &begin);
        for (int i = 0; i < YIELDS; i++)
            sched_yield();
        getrusage(RUSAGE_SELF, &end);
        return end.ru_nivcsw - begin.ru_nivcsw >= YIELDS * 9 / 10;
    }

  private:
    const pid_t pid;
};

TEST_F(Waiting, YieldsToOthersOfACrowdForLong)
{
    enum { YIELD_MS = 30 };
    Beside beside;
    int ms;

    if (!beside.runs())
        GTEST_SKIP() << "a yield does not let others run here";
    const int yields = wait_yields_awake(&team, &ms);
    /* Where others on this CPU are busy, it gets it back for a few in all that time. */
    EXPECT_TRUE(yields > MANY || ms >= YIELD_MS) << yields << " yields in " << ms << " ms";
}

TEST_F(Waiting, YieldsAFewTimesWhereCpuTimeIsRationed)
{
    Beside beside;
    int ms;

    team.rationed = true;
    EXPECT_LT(wait_yields_awake(&team, &ms), MANY);
}

/* A batch system may suspend a job, and all of it goes on later. */
TEST(Waits, DoNotCountWhileTheProcessIsStopped)
{
    const int stall_ms = 3000;
    int status;

    const pid_t job = fork();
    if (job == 0) {
        testing::internal::CaptureStderr();
        const std::string wrong =
            run_team(&collx_barrier_shm, 2, Ranks::threads, false, [&](Rank &self) {
                self.team.stall_ms = stall_ms;
                if (self.team.rank == 1) {
                    usleep(100000); // the other one waits
                    raise(SIGSTOP);
                    usleep(100000);
                }
                self.barrier();
                return std::string();
            });
        _exit(wrong.empty() && testing::internal::GetCapturedStderr().empty() ? 0 : 1);
    }
    ASSERT_EQ(waitpid(job, &status, WUNTRACED), job);
    ASSERT_TRUE(WIFSTOPPED(status));
    usleep((stall_ms + 500) * 1000);
    kill(job, SIGCONT);
    ASSERT_EQ(waitpid(job, &status, 0), job);
    EXPECT_EQ(status, 0) << "it has said something";
}

TEST(Waits, CountWhatIsSeenOfAClock)
{
    const uint64_t second = 1000000000;
    collx_waited waited = {};

    EXPECT_EQ(collx_waited_look(&waited, 7 * second), 0u) << "the first look";
    EXPECT_EQ(collx_waited_look(&waited, 7 * second + 5), 5u);
    EXPECT_EQ(collx_waited_look(&waited, 8 * second), second);
    EXPECT_EQ(collx_waited_look(&waited, 800 * second), 2 * second);
    EXPECT_EQ(collx_waited_look(&waited, 3 * second), 2 * second) << "it has been set back";
    EXPECT_EQ(collx_waited_look(&waited, 3 * second + 1), 2 * second + 1);
}

/* Who waits for one alone says who that is, whichever rank it has. */
TEST(Waits, SayForWhichOfTwo)
{
    for (int late : {0, 1}) {
        std::atomic<uint32_t> said{0};

        testing::internal::CaptureStderr();
        EXPECT_EQ("", run_team(&collx_barrier_shm, 2, Ranks::threads, false, [&](Rank &self) {
                      self.team.stall_ms = 20;
                      self.team.stall_said = reinterpret_cast<uint32_t *>(&said);
                      while (self.team.rank == late && !said)
                          usleep(1000);
                      self.barrier();
                      return std::string();
                  }));
        std::string text = testing::internal::GetCapturedStderr();
        EXPECT_NE(
            text.find("s in MPI_Barrier for rank " + std::to_string(late) + ". Have they stopped"),
            std::string::npos)
            << text;
    }
}

/* Which processes those are, where that is known, and that one of them is there no more. */
TEST(Waits, SayWhichProcessesTheyWaitFor)
{
    pid_t ended[2]; /* of the second one nobody has taken notice yet */
    siginfo_t info;
    for (pid_t &each : ended) {
        each = fork();
        if (each == 0)
            _exit(0);
        ASSERT_EQ(0, waitid(P_PID, each, &info, WEXITED | (&each == ended ? 0 : WNOWAIT)));
    }
    const int32_t pid[] = {0, getpid(), ended[0], ended[1]};
    std::atomic<uint32_t> said{0};

    testing::internal::CaptureStderr();
    EXPECT_EQ("", run_team(&collx_barrier_shm, 5, Ranks::threads, false, [&](Rank &self) {
                  self.team.stall_ms = 20;
                  self.team.stall_said = reinterpret_cast<uint32_t *>(&said);
                  self.team.pid = pid;
                  self.team.pids = 4;
                  while (self.team.rank != 0 && !said)
                      usleep(1000);
                  self.barrier();
                  return std::string();
              }));
    std::string text = testing::internal::GetCapturedStderr();
    const std::string who = "s in MPI_Barrier for ranks 1 (process " + std::to_string(pid[1]) +
                            ") 2 (process " + std::to_string(ended[0]) +
                            ", which has ended) 3 (process " + std::to_string(ended[1]) +
                            ", which has ended) 4. Have they stopped";
    EXPECT_NE(text.find(who), std::string::npos) << text;
    waitid(P_PID, ended[1], &info, WEXITED);
}

} // namespace
