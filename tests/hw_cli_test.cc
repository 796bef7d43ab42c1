/* `collx hw`, on emulated boards: as an administrator sees a good installation, and faulty ones. */
#include "tests/cli.h"
#include "tests/wired.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

Outcome run(const std::string &arguments)
{
    return run_collx("hw " + arguments);
}

const Wiring file_channels = {"file_channels", "channels", false};
const Wiring ppdev_channels = {"ppdev_channels", "channels", true};
const Wiring file_single = {"file_single", "single", false};

#define RUN_OR_SKIP(emulated)                                                                      \
    if (!(emulated).why_not.empty())                                                               \
    GTEST_SKIP() << (emulated).why_not

TEST(HwProbe, SaysWhatThereIs)
{
    const Outcome probe = run("probe");

    EXPECT_TRUE(probe.has("can be used")) << probe.out;
    if (access("/dev/parport0", F_OK)) {
        EXPECT_EQ(probe.code, 1);
        EXPECT_TRUE(probe.has("ppdev: no /dev/parport*; `modprobe -a parport_pc ppdev` makes them"))
            << probe.out;
    }
}

TEST(HwProbe, MeasuresAndAsksTheBoard)
{
    Emulated board(ppdev_channels, 3);
    RUN_OR_SKIP(board);
    const Outcome probe = run("probe " + board.spec(2) + " ppdev:/dev/no-such-port");

    EXPECT_EQ(probe.code, 1) << "one of them is not there";
    EXPECT_TRUE(probe.has("a write takes ")) << probe.out;
    EXPECT_TRUE(probe.has("a board with 4 channels for 8 nodes; this is node 2")) << probe.out;
    EXPECT_TRUE(probe.has("no: there is no /dev/no-such-port; `modprobe")) << probe.out;
    EXPECT_EQ(run("probe " + board.spec(0)).code, 0);
}

/* Whether an MPI program could use the port: of hwbarrier. */
TEST(CollxInfo, SaysWhatBoardThereIs)
{
    const std::string ask = "policy explain --collective barrier --ranks 4 --nodes 2 ";
    char policy[] = "/tmp/collx-test-XXXXXX";
    close(mkstemp(policy));
    std::ofstream(policy) << "version: 1\nrules: [ use: [ hwbarrier, nx ] ]\n";

    Outcome info = run_collx("info"), explained = run_collx(ask + policy);
    EXPECT_TRUE(info.has("here: no, COLLX_HWBARRIER does not say what wires there are"))
        << info.out;
    EXPECT_TRUE(explained.has("not hwbarrier: COLLX_HWBARRIER does not say")) << explained.out;

    const std::string bad = "COLLX_HWBARRIER=ppdev:/dev/no-such-port,nodes=2";
    info = run_collx("info", bad);
    EXPECT_TRUE(info.has("here: no, there is no /dev/no-such-port")) << info.out;

    for (const Wiring &wiring : {file_channels, file_single}) {
        Emulated board(wiring, 2);
        if (!board.why_not.empty()) {
            unlink(policy);
            GTEST_SKIP() << board.why_not;
        }
        const std::string good = "COLLX_HWBARRIER=" + board.spec(1);
        info = run_collx("info", good);
        EXPECT_TRUE(
            info.has(wiring.board == "single"
                         ? "here: yes, this node is one of 2 at a board of 1 channel; a write"
                         : "here: yes, this node is number 1 of 8 at a board of 4 channels"))
            << info.out;
        explained = run_collx(ask + policy, good);
        EXPECT_FALSE(explained.has("not hwbarrier")) << explained.out;
        EXPECT_TRUE(explained.has("  hwbarrier\n")) << explained.out;
        /* What a job would say, too. */
        info = run_collx("info", good.substr(0, good.find(",nodes=")));
        EXPECT_EQ(info.has("here: no, COLLX_HWBARRIER has to say by nodes= how many nodes are"),
                  wiring.board == "single")
            << info.out;
    }
    unlink(policy);
}

TEST(HwTest, PassesAGoodNode)
{
    for (const Wiring &wiring : {file_channels, ppdev_channels}) {
        Emulated board(wiring, 2);
        RUN_OR_SKIP(board);
        const Outcome test = run("test --times 20 " + board.spec(1));
        EXPECT_EQ(test.code, 0) << test.out;
        EXPECT_TRUE(test.has("4 channels for 8 nodes answers; this is node 1")) << test.out;
        EXPECT_TRUE(test.has("channel 3: good; a barrier takes ")) << test.out;
        EXPECT_TRUE(test.has("1.0 writes and ")) << test.out;
    }
}

TEST(HwTest, FindsACableThatIsWrong)
{
    Emulated board(ppdev_channels, 2);
    RUN_OR_SKIP(board);
    /* Two wires are swapped: one channel's release is seen at the other. */
    const Outcome swapped =
        run("test --seconds 1 --times 5 " + board.spec(0) + ",out=d1/d0/d2/d3/d6/d7");
    EXPECT_EQ(swapped.code, 1);
    EXPECT_TRUE(swapped.has("FAILED: barrier 0 of channel 0 is not over after 1 s")) << swapped.out;
    EXPECT_TRUE(swapped.has("FAILED: barrier 0 of channel 1 is not over after 1 s")) << swapped.out;
    EXPECT_TRUE(swapped.has("channel 2: good")) << swapped.out;
    const Outcome silent = run("test " + board.spec(0) + ",in=ack/paperout/select/error/!busy");
    EXPECT_EQ(silent.code, 1);
    EXPECT_TRUE(silent.has("no board with channels=4 answers")) << silent.out;
}

TEST(HwTest, KnowsAPlug)
{
    char path[] = "/tmp/collx-test-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    /* A register that reads as it was written, in two places. */
    const std::string spec = std::string("mmio:") + path + ",channels=2,registers=0/0";

    const Outcome good = run("test --plug " + spec + ",out=3/4/5/6,in=3/4/5");
    EXPECT_EQ(good.code, 0) << good.out;
    EXPECT_TRUE(good.has("wire 2: good")) << good.out;
    const Outcome bad = run("test --plug " + spec + ",out=3/4/5/6,in=3/7/5");
    EXPECT_EQ(bad.code, 1);
    EXPECT_TRUE(bad.has("wire 0: good")) << bad.out;
    EXPECT_TRUE(bad.has("wire 1: FAILED: it does not come back")) << bad.out;
    close(fd);
    unlink(path);
}

TEST(HwTest, RunsOnAllNodes)
{
    for (const Wiring &wiring : {file_single, file_channels}) {
        Emulated board(wiring, 3);
        RUN_OR_SKIP(board);
        std::vector<Outcome> outcomes(3);
        std::vector<std::thread> nodes;
        for (unsigned node = 0; node < 3; node++)
            nodes.emplace_back([&, node] {
                outcomes[node] = run("test --all 3 --seconds 6 " + board.spec(node));
            });
        for (std::thread &node : nodes)
            node.join();
        for (const Outcome &outcome : outcomes) {
            EXPECT_EQ(outcome.code, 0) << outcome.out;
            EXPECT_TRUE(outcome.has("channel 0: good; a barrier takes ")) << outcome.out;
        }
    }
}

TEST(HwTest, SaysWhoIsMissingAndFreesTheChannel)
{
    Emulated board(file_channels, 3);
    RUN_OR_SKIP(board);
    const Outcome alone = run("test --all 3 --seconds 1 " + board.spec(1));
    EXPECT_EQ(alone.code, 1);
    EXPECT_TRUE(alone.has("node 0 has not arrived\nnode 2 has not arrived")) << alone.out;
    const Outcome other = run("free " + board.spec(2));
    EXPECT_EQ(other.code, 0) << other.out;
    EXPECT_TRUE(other.has("channel 0: is free now\nchannel 1: free")) << other.out;
    EXPECT_TRUE(run("free " + board.spec(1)).has("channel 0: free")) << "it was free before";
}

TEST(HwTest, TogglesAndWatches)
{
    Emulated board(file_single, 1);
    RUN_OR_SKIP(board);
    Outcome watched;
    std::thread watching([&] { watched = run("test --watch --seconds 5 " + board.spec(0)); });
    usleep(500000);
    const Outcome toggled = run("test --toggle --times 2 " + board.spec(0));
    watching.join();
    EXPECT_EQ(toggled.code, 0);
    EXPECT_TRUE(toggled.has("wires to the board are 1 now")) << toggled.out;
    EXPECT_TRUE(toggled.has("wires to the board are 0 now")) << toggled.out;
    EXPECT_EQ(watched.code, 0);
    EXPECT_TRUE(watched.has("wire 0 from the board is 1")) << watched.out;
    EXPECT_TRUE(watched.has("wire 0 from the board is 0")) << watched.out;
    EXPECT_TRUE(run("test " + board.spec(0)).has("On this board one node alone cannot pass"));
}

} // namespace
