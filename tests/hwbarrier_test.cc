/* The algorithm hwbarrier, without MPI: nodes of processes that are wired to emulated boards. */
#include "tests/nodes.h"
#include "tests/team.h"
#include "tests/wired.h"

extern "C" {
#include "base/options.h"
#include "hw/barrier_port.h"
extern const collx_algorithm collx_barrier_hwbarrier;
}

#include <cerrno>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sched.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

using Layout = std::vector<int>; /* the node of each rank */

const Wiring single = {"single", "single", false}, channels = {"channels", "channels", false};

/* What all ranks share, beside the board. */
struct Common {
    std::atomic<int> entered[4][64];
    std::atomic<int> flag;
};

class HwBarrier : public testing::Test
{
  protected:
    ~HwBarrier() override
    {
        munmap(common, sizeof(Common));
    }

    /* As run_team(), of nodes that have these specs.  `refused`: instead of the bodies, everybody
     * is refused, and that is in the reason. */
    std::string run(const std::vector<std::string> &specs, const Layout &layout,
                    const std::function<std::string(Rank &)> &body,
                    const std::string &refused = "") const
    {
        collx_algorithm algorithm = collx_barrier_hwbarrier;

        spec_of = specs;
        expected = refused;
        algorithm.attach = [](collx_team *team, const collx_args *args, void *memory,
                              collx_slot *slot) {
            setenv("COLLX_HWBARRIER", spec_of.at(team->node[team->rank]).c_str(), 1);
            collx_options_load(environ, nullptr);
            return collx_barrier_hwbarrier.attach(team, args, memory, slot);
        };
        if (!refused.empty())
            algorithm.connect = [](collx_team *team, collx_slot *slot, char *why, size_t size) {
                if (collx_barrier_hwbarrier.connect(team, slot, why, size))
                    return std::string(why).find(expected) == std::string::npos ? 1 : 0;
                snprintf(why, size, "nobody refused it");
                return 1;
            };
        return run_team(
            &algorithm, static_cast<int>(layout.size()), Ranks::processes, true,
            refused.empty() ? body : [](Rank &) { return std::string(); }, nullptr, nullptr,
            layout);
    }

    static std::vector<std::string> specs(const Emulated &board, unsigned nodes)
    {
        std::vector<std::string> all;

        for (unsigned node = 0; node < nodes; node++)
            all.push_back(board.spec(node));
        return all;
    }

    /* Barriers by `enter`, and "" if nobody left one before all had entered it. */
    std::string barriers(const collx_team &team, int lane, int rounds,
                         const std::function<int()> &enter) const
    {
        std::minstd_rand dice(static_cast<unsigned>(team.rank + 7 * lane + 1));

        for (int i = 0; i < rounds; i++) {
            const int round = common->entered[lane][team.rank] + 1;
            if (dice() % 16 == 0)
                usleep(static_cast<useconds_t>(dice() % 200));
            common->entered[lane][team.rank] = round;
            if (enter())
                return "an error in round " + std::to_string(round);
            for (int rank = 0; rank < team.size; rank++)
                if (int at = common->entered[lane][rank]; at < round || at > round + 1)
                    return "left round " + std::to_string(round) + " with rank " +
                           std::to_string(rank) + " in " + std::to_string(at);
        }
        return "";
    }

    std::string barriers(Rank &self, int rounds) const
    {
        return barriers(self.team, 0, rounds, [&] { return self.barrier(); });
    }

    Common *common = new (mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Common();

  private:
    static std::vector<std::string> spec_of;
    static std::string expected;
};

std::vector<std::string> HwBarrier::spec_of;
std::string HwBarrier::expected;

#define BOARD(name, wiring, nodes)                                                                 \
    Emulated name(wiring, nodes);                                                                  \
    if (!name.why_not.empty())                                                                     \
    GTEST_SKIP() << name.why_not

/* One more communicator of the ranks of a team, each of which is a node of its own. */
class Another
{
  public:
    explicit Another(const Rank &self) : team_(self.team)
    {
        Layout layout;
        char text[512] = "";

        for (int rank = 0; rank < team_.size; rank++)
            layout.push_back(rank);
        team_.node = layout.data();
        if (collx_barrier_hwbarrier.attach(&team_, nullptr, nullptr, &slot_))
            throw std::string("cannot attach");
        refused = collx_barrier_hwbarrier.connect(&team_, &slot_, text, sizeof text);
        team_.node = nullptr;
        if (!refused)
            collx_barrier_hwbarrier.describe(slot_.state, text, sizeof text);
        says = text;
    }
    Another(const Another &) = delete;
    Another &operator=(const Another &) = delete;
    ~Another()
    {
        collx_barrier_hwbarrier.detach(slot_.state);
    }

    int barrier()
    {
        return slot_.run(&slot_, nullptr);
    }

    bool refused;
    std::string says;

  private:
    collx_team team_;
    collx_slot slot_ = {};
};

TEST_F(HwBarrier, NobodyLeavesBeforeTheLastHasEntered)
{
    const Layout layouts[] = {{0, 1}, {0, 0, 1}, {0, 1, 2}, {0, 1, 0, 1, 2}, {0, 1, 2, 3, 4, 5}};

    for (const Wiring &wiring : {single, channels})
        for (const Layout &layout : layouts) {
            const unsigned nodes = static_cast<unsigned>(layout.back()) + 1;
            BOARD(board, wiring, nodes);
            for (int rank = 0; rank < 64; rank++)
                common->entered[0][rank] = 0;
            EXPECT_EQ("", run(specs(board, nodes), layout,
                              [&](Rank &self) {
                                  if (layout.size() % 2)
                                      self.team.spins = 200;
                                  return barriers(self, 300);
                              }))
                << wiring.name << ", " << layout.size() << " ranks";
        }
}

/* One write, and reads until it is released; the first one takes a read more. */
TEST_F(HwBarrier, ABarrierIsOneWrite)
{
    BOARD(board, single, 3);
    const Variables variables = {{"COLLX_VERBOSE", "2"}};
    Environment verbose(variables);

    testing::internal::CaptureStderr();
    std::string wrong =
        run(specs(board, 3), {0, 0, 1, 2}, [&](Rank &self) { return barriers(self, 100); });
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(wrong, "");
    for (int rank : {0, 2, 3}) {
        unsigned reads = 0;
        std::string says = "rank " + std::to_string(rank) +
                           " of a test: 100 barriers; the port was written 100 times meanwhile, "
                           "and read ";
        size_t at = text.find(says);
        ASSERT_NE(at, std::string::npos) << text;
        EXPECT_EQ(sscanf(text.c_str() + at + says.size(), "%u times", &reads), 1);
        EXPECT_GE(reads, 100u);
    }
    EXPECT_EQ(text.find("rank 1 of"), std::string::npos) << "it leads no node";
}

/* Sockets of a board with channels need not be in the order of the ranks, nor all in use. */
TEST_F(HwBarrier, SocketsMayBeAny)
{
    BOARD(board, channels, 6);

    EXPECT_EQ("", run({board.spec(5), board.spec(0), board.spec(3)}, {0, 1, 1, 2},
                      [&](Rank &self) { return barriers(self, 100); }));
}

/* Each has a channel, no two have the same, and who is freed gives it back. */
TEST_F(HwBarrier, CommunicatorsHaveChannels)
{
    BOARD(board, channels, 3);

    EXPECT_EQ("", run(specs(board, 3), {0, 1, 2}, [&](Rank &self) -> std::string {
                  {
                      Another one(self), two(self), three(self), four(self);
                      for (const Another *each : {&one, &two, &three})
                          if (each->refused)
                              return "refused: " + each->says;
                      if (!four.refused ||
                          four.says != "every channel of the board is another communicator's")
                          return "a fifth: " + four.says;
                      std::string wrong = barriers(self, 50);
                      for (Another *each : {&three, &one, &two})
                          if (wrong.empty())
                              wrong = barriers(self.team, 1, 50, [&] { return each->barrier(); });
                      if (!wrong.empty())
                          return wrong;
                  }
                  Another again(self);
                  return again.refused
                             ? "after the end of others: " + again.says
                             : barriers(self.team, 2, 50, [&] { return again.barrier(); });
              }));
}

/* MPI_THREAD_MULTIPLE: one port, two threads, each with a communicator. */
TEST_F(HwBarrier, ThreadsUseOnePort)
{
    BOARD(board, channels, 3);

    EXPECT_EQ("", run(specs(board, 3), {0, 1, 2}, [&](Rank &self) -> std::string {
                  Another other(self);
                  std::string wrong;
                  if (other.refused)
                      return other.says;
                  std::thread thread([&] {
                      wrong = barriers(self.team, 1, 200, [&] { return other.barrier(); });
                  });
                  std::string result = barriers(self, 200);
                  thread.join();
                  return result + wrong;
              }));
}

/* A child that frees what it has of MPI, as its copy of the program may when it ends, has not got
 * the port: its parent goes on, and nobody else gets the channel. */
TEST_F(HwBarrier, AChildLeavesThePortAlone)
{
    BOARD(board, channels, 2);

    EXPECT_EQ("", run(specs(board, 2), {0, 1}, [&](Rank &self) -> std::string {
                  int status = -1;
                  pid_t child = fork();
                  if (child == 0) {
                      self.algorithm->detach(self.slot.state);
                      _exit(0);
                  }
                  if (waitpid(child, &status, 0) != child || status)
                      return "the child ended with status " + std::to_string(status);
                  std::string result = barriers(self, 20);
                  Bar other(board.spec(static_cast<unsigned>(self.team.rank)));
                  if (other.attach(0, 3, static_cast<unsigned>(self.team.rank)) != -EBUSY)
                      return "somebody else was given the channel";
                  return result.empty() ? barriers(self, 20) : result;
              }));
}

/* Who was released and has left the channel may not have it anew, for others, while somebody is
 * still on its way out of that barrier: he would see the levels of the next one. */
TEST(HwBarrierPort, AChannelIsFreeWhenAllHaveLeftIt)
{
    BOARD(board, channels, 3);

    auto body = [&](unsigned node, Shared &shared) -> std::string {
        collx_bar_caps caps;
        char why[512] = "";

        setenv("COLLX_HWBARRIER", board.spec(node).c_str(), 1);
        collx_options_load(environ, nullptr);
        if (collx_bar_port_open(&caps, why, sizeof why) ||
            (node < 2 && collx_bar_port_attach(0, 3, node, why, sizeof why)))
            return why;
        meet(shared, 3);
        if (node < 2 && collx_bar_port_enter(0))
            return "cannot enter";
        while (node == 0 && !collx_bar_port_test(0))
            sched_yield();
        if (node == 0) {
            collx_bar_port_detach(0);
            collx_bar_port_close();
            if (collx_bar_port_open(&caps, why, sizeof why))
                return why;
        }
        shared.entered[0][node] = static_cast<unsigned>(collx_bar_port_free());
        meet(shared, 3);
        const int both = static_cast<int>(shared.entered[0][0] & shared.entered[0][2]);
        const unsigned channel = static_cast<unsigned>(ffs(both)) - 1;
        if (node != 1 && collx_bar_port_attach(channel, 5, node, why, sizeof why))
            return why;
        meet(shared, 3);
        if (node != 1 && collx_bar_port_enter(channel))
            return "cannot enter the next one";
        while (node != 1 && !collx_bar_port_test(channel))
            sched_yield();
        meet(shared, 3);
        if (node == 1) {
            if (collx_bar_port_test(0) != 1)
                return "not released by a barrier that all have entered";
            collx_bar_port_detach(0);
        }
        meet(shared, 3);
        if (!(collx_bar_port_free() & 1))
            return "not free when all have left it";
        collx_bar_port_detach(channel);
        collx_bar_port_close();
        return "";
    };
    EXPECT_EQ(run_wired(3, body), "");
}

/* What shares a wire with others' barriers is released by them. */
TEST_F(HwBarrier, OneChannelIsForOneCommunicator)
{
    BOARD(board, single, 2);

    EXPECT_EQ("", run(specs(board, 2), {0, 1}, [&](Rank &self) -> std::string {
                  Another other(self);
                  return other.refused && other.says ==
                                              "every channel of the board is another communicator's"
                             ? barriers(self, 100)
                             : other.says;
              }));
}

/* On one node another job has the first channel: then nobody uses it. */
TEST_F(HwBarrier, AnotherJobsChannelIsLeftAlone)
{
    BOARD(board, channels, 3);
    Bar holder(board.spec(1));
    ASSERT_EQ(holder.attach(0, 2, 1), 0) << holder.why;

    EXPECT_EQ("", run(specs(board, 3), {0, 1, 2}, [&](Rank &self) {
                  char text[256];
                  self.algorithm->describe(self.slot.state, text, sizeof text);
                  return strstr(text, "channel 0") ? std::string(text) : barriers(self, 50);
              }));
    EXPECT_EQ(holder.ops.enter(holder.bar, 0), 0);
    EXPECT_EQ(holder.ops.wait(holder.bar, 0, 5000), 0);
}

TEST_F(HwBarrier, AnotherJobsBoardIsLeftAlone)
{
    BOARD(board, single, 2);
    Bar holder(board.spec(1));
    ASSERT_EQ(holder.attach(0, 3, 1), 0) << holder.why;

    EXPECT_EQ("", run(specs(board, 2), {0, 1}, nullptr,
                      "the port on rank 1: channel 0 of this node is taken by another"));
}

/* A job that dies when one node, or all but one, has arrived; then the next one, at once. */
TEST_F(HwBarrier, LevelsOfADeadJobReleaseNobody)
{
    for (const Wiring &wiring : {single, channels})
        for (int late : {0, 1, 2}) {
            BOARD(board, wiring, 3);
            std::string wrong = run(specs(board, 3), {0, 1, 2}, [&](Rank &self) {
                if (self.barrier())
                    return std::string("an error");
                const pid_t dies = self.meet()[late];
                common->flag++;
                if (self.team.rank == late) {
                    while (common->flag < 3)
                        usleep(1000);
                    usleep(20000);
                    raise(SIGKILL);
                }
                std::thread([dies] {
                    await_end_of(dies);
                    usleep(100000);
                    raise(SIGALRM);
                }).detach();
                self.barrier();
                return std::string("released without the late one");
            });
            common->flag = 0;
            EXPECT_EQ(wrong.find("exit code"), std::string::npos) << wrong;
            EXPECT_NE(wrong.find("rank " + std::to_string(late) + " died by signal 9"),
                      std::string::npos)
                << wrong;
            for (int rank = 0; rank < 64; rank++)
                common->entered[0][rank] = 0;
            EXPECT_EQ("", run(specs(board, 3), {0, 1, 2},
                              [&](Rank &self) { return barriers(self, 50); }));
        }
}

/* Said once, as far as the board can tell, and then the barrier ends as usual. */
TEST_F(HwBarrier, SaysWhoIsLate)
{
    struct {
        Wiring wiring;
        const char *says;
    } cases[] = {{single, "in MPI_Barrier for some of ranks 1 3, or others that these wait for"},
                 {channels, "in MPI_Barrier for rank 3, or others that these wait for"}};

    for (const auto &c : cases) {
        BOARD(board, c.wiring, 3);
        common->flag = 0;
        testing::internal::CaptureStderr();
        std::string wrong = run(specs(board, 3), {0, 1, 1, 2}, [&](Rank &self) {
            self.team.stall_ms = self.team.rank == 0 ? 250 : 0;
            if (self.team.rank == 3)
                while (!common->flag)
                    usleep(1000);
            /* Who has said it may still be waiting: the late one need not know from him. */
            std::thread watch([&] {
                while (self.team.rank == 0 &&
                       !__atomic_load_n(&self.team.stalled, __ATOMIC_RELAXED))
                    usleep(1000);
                if (self.team.rank == 0)
                    common->flag = 1;
            });
            std::string result = barriers(self, 3);
            watch.join();
            return result;
        });
        std::string text = testing::internal::GetCapturedStderr();
        EXPECT_EQ(wrong, "");
        size_t at = text.find(c.says);
        EXPECT_NE(at, std::string::npos) << text;
        EXPECT_EQ(text.find(c.says, at + 1), std::string::npos) << text;
        for (int rank = 0; rank < 64; rank++)
            common->entered[0][rank] = 0;
    }
}

/* Both nodes lose their ports: an error on all ranks, at once from then on, and said. */
TEST_F(HwBarrier, ALostPortIsAnError)
{
    const Wiring ports = {"ports", "single", true};
    BOARD(board, ports, 2);

    testing::internal::CaptureStderr();
    std::string wrong = run(specs(board, 2), {0, 0, 1}, [&](Rank &self) -> std::string {
        std::string result = barriers(self, 5);
        common->flag++;
        while (common->flag < 3)
            usleep(1000);
        /* One of the ranks: what is forked beside a thread may have a lock that is never released.
         */
        if (self.team.rank == 0) {
            board.stop();
            common->flag++;
        }
        while (common->flag < 4)
            usleep(1000);
        for (int i = 0; i < 3; i++)
            if (result.empty() && self.barrier() != UNREACHABLE)
                result = "a barrier without a board";
        return result;
    });
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(wrong, "") << text;
    EXPECT_NE(text.find("rank 0 of a test can no longer use the port"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2 of a test can no longer use the port"), std::string::npos) << text;
}

TEST_F(HwBarrier, IsRefusedByAllIfOneCannot)
{
    BOARD(board, channels, 3);
    const std::string none = "emu:/nonexistent/board,node=2,channels=4";

    EXPECT_EQ("", run({board.spec(0), "", board.spec(2)}, {0, 1, 1, 2}, nullptr,
                      "the port on rank 1: COLLX_HWBARRIER does not say"));
    EXPECT_EQ("", run({board.spec(0), board.spec(1), none}, {0, 1, 1, 2}, nullptr,
                      "the port on rank 3: cannot open /nonexistent/board: No such file"));
    EXPECT_EQ("", run({board.spec(0), board.spec(0)}, {0, 1}, nullptr,
                      "rank 1 is node 0 of its board, as another one is"));
}

/* Who does not cover the board's nodes, or is wired in another way than it seems. */
TEST_F(HwBarrier, WiringThatCannotWorkIsRefused)
{
    const unsigned nodes = 2;
    BOARD(one, single, nodes);
    BOARD(other, single, nodes);
    BOARD(larger, single, nodes + 1);
    BOARD(chosen, channels, nodes);
    auto claim = [](const Emulated &board, unsigned node, const std::string &keys) {
        return "emu:" + board.folder + "/board,node=" + std::to_string(node) + keys;
    };

    EXPECT_EQ("", run(specs(larger, 2), {0, 1}, nullptr,
                      "all 3 nodes of the board have to take part, and these are 2"));
    EXPECT_EQ("", run({claim(one, 0, ""), claim(one, 1, "")}, {0, 1}, nullptr,
                      "COLLX_HWBARRIER on rank 0 has to say by nodes="));
    EXPECT_EQ("", run({claim(one, 0, ",nodes=4"), claim(one, 1, ",nodes=4"),
                       claim(other, 0, ",nodes=4"), claim(other, 1, ",nodes=4")},
                      {0, 1, 2, 3}, nullptr, "the board released it before the last node"));
    EXPECT_EQ("", run({claim(larger, 0, ",nodes=2"), claim(larger, 1, ",nodes=2")}, {0, 1}, nullptr,
                      "the port on rank 0: the board did not release it"));
    EXPECT_EQ("", run({one.spec(0), chosen.spec(1)}, {0, 1}, nullptr,
                      "the ports of ranks 0 and 1 are wired to different boards"));
}

} // namespace
