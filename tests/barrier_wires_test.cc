/* What hw/barrier.h promises, over wires to the emulated boards, which run the FPGA's Verilog. */
#include "tests/wired.h"

extern "C" {
#include "hw/board.h"
}

#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

class Barrier : public testing::TestWithParam<Wiring>
{
  protected:
    /* FUSE takes some 20 us for an access. */
    unsigned rounds() const
    {
        return GetParam().ports ? 60 : 400;
    }
};

uint64_t first(unsigned nodes)
{
    return (1ull << nodes) - 1;
}

#define RUN_OR_SKIP(emulated)                                                                      \
    if (!(emulated).why_not.empty())                                                               \
    GTEST_SKIP() << (emulated).why_not

std::string attached(Bar &bar, unsigned channel, uint64_t participants, unsigned self)
{
    int error = bar.attach(channel, participants, self);
    return error ? std::string(bar.why) + " (" + std::to_string(error) + ")" : "";
}

TEST_P(Barrier, ReleasesNobodyEarlyAndEverybody)
{
    for (unsigned nodes : {1u, 2u, 3u, 5u, GetParam().board == "single" ? 9u : 8u}) {
        Emulated board(GetParam(), nodes);
        RUN_OR_SKIP(board);
        auto body = [&](unsigned node, Shared &shared) {
            Bar bar(board.spec(node));
            std::mt19937 random(node);
            std::string wrong = attached(bar, 0, first(nodes), node);
            if (!wrong.empty())
                return wrong;
            meet(shared, nodes);
            collx_bar_counts before = {}, after = {};
            for (unsigned round = 0; round < rounds(); round++) {
                if (round == 1)
                    bar.ops.counts(bar.bar, &before);
                if (random() % 8 == 0)
                    usleep(random() % 300);
                bar.barrier(0, first(nodes), node, shared);
            }
            bar.ops.counts(bar.bar, &after);
            if (after.writes - before.writes != rounds() - 1)
                return std::to_string(after.writes - before.writes) + " writes";
            if (after.reads - before.reads < rounds() - 1)
                return std::string("released without reading");
            meet(shared, nodes);
            return std::string();
        };
        EXPECT_EQ(run_wired(nodes, body), "") << nodes << " nodes";
    }
}

/* A job dies with some nodes arrived, on either level; the next one must not notice. */
TEST_P(Barrier, LevelsOfADeadJobReleaseNobody)
{
    const unsigned nodes = 3;
    Emulated board(GetParam(), nodes);
    RUN_OR_SKIP(board);
    for (unsigned barriers : {0u, 1u}) {
        auto dies = [&](unsigned node, Shared &shared) {
            Bar bar(board.spec(node));
            std::string wrong = attached(bar, 0, first(nodes), node);
            if (!wrong.empty())
                return wrong;
            meet(shared, nodes);
            for (unsigned round = 0; round < barriers; round++)
                bar.barrier(0, first(nodes), node, shared);
            if (node != 1 && bar.ops.enter(bar.bar, 0))
                return std::string("cannot enter");
            meet(shared, nodes);
            _exit(0); /* nothing is closed or detached */
        };
        ASSERT_EQ(run_wired(nodes, dies), "");
        auto next = [&](unsigned node, Shared &shared) {
            Bar bar(board.spec(node));
            std::string wrong = attached(bar, 0, first(nodes), node);
            if (!wrong.empty())
                return wrong;
            meet(shared, nodes);
            /* The one that had not arrived enters alone. */
            if (node == 1) {
                shared.entered[0][1]++;
                if (bar.ops.enter(bar.bar, 0))
                    return std::string("cannot enter");
                if (bar.ops.wait(bar.bar, 0, 50) != -ETIMEDOUT)
                    return std::string("released alone");
            }
            meet(shared, nodes);
            if (node == 1 && bar.ops.test(bar.bar, 0) != 0)
                return std::string("released alone, a little later");
            meet(shared, nodes);
            if (node == 1)
                return bar.ops.wait(bar.bar, 0, 30000) ? std::string("not released") : "";
            bar.barrier(0, first(nodes), node, shared);
            return std::string();
        };
        EXPECT_EQ(run_wired(nodes, next), "");
    }
}

TEST_P(Barrier, TellsWhoIsMissing)
{
    const unsigned nodes = 4;
    Emulated board(GetParam(), nodes);
    RUN_OR_SKIP(board);
    const bool knows = GetParam().board == "channels";
    auto body = [&](unsigned node, Shared &shared) {
        Bar bar(board.spec(node));
        std::string wrong = attached(bar, 0, first(nodes), node);
        if (!wrong.empty())
            return wrong;
        meet(shared, nodes);
        uint64_t missing = ~0ull;
        if (node < 2 && bar.ops.enter(bar.bar, 0))
            return std::string("cannot enter");
        meet(shared, nodes);
        if (node == 0) {
            int error = bar.ops.missing(bar.bar, 0, &missing);
            if (knows ? error || missing != 0xc : error != -EOPNOTSUPP)
                return "missing: " + std::to_string(missing) + ", " + std::to_string(error);
        }
        meet(shared, nodes);
        if (node >= 2 && bar.ops.enter(bar.bar, 0))
            return std::string("cannot enter");
        if (bar.ops.wait(bar.bar, 0, 30000))
            return std::string("not released");
        return std::string();
    };
    EXPECT_EQ(run_wired(nodes, body), "");
}

TEST_P(Barrier, GivesAChannelOnce)
{
    Emulated board(GetParam(), 2);
    RUN_OR_SKIP(board);
    auto body = [&](unsigned node, Shared &shared) {
        {
            Bar bar(board.spec(node));
            std::string wrong = attached(bar, 0, 3, node);
            if (!wrong.empty())
                return wrong;
            if (bar.attach(0, 3, node) != -EBUSY)
                return std::string("a channel was given twice to a process");
            meet(shared, 2);
            /* Another job on this node: it gets the port, or at least not this channel. */
            try {
                Bar other(board.spec(node));
                if (!(other.caps.flags & COLLX_BAR_SHARED))
                    return std::string("two processes have a port that cannot be shared");
                if (other.attach(0, 3, node) != -EBUSY)
                    return std::string("a channel was given to two jobs");
            } catch (const std::string &thrown) {
                if (thrown.find("in use") == std::string::npos)
                    return thrown;
            }
            bar.barrier(0, 3, node, shared);
            meet(shared, 2);
        }
        Bar again(board.spec(node));
        return attached(again, 0, 3, node);
    };
    EXPECT_EQ(run_wired(2, body), "");
}

TEST_P(Barrier, RefusesWhatCannotBe)
{
    Emulated board(GetParam(), 3);
    RUN_OR_SKIP(board);
    Bar bar(board.spec(1));
    EXPECT_EQ(bar.attach(bar.caps.channels, 7, 1), -EINVAL);
    EXPECT_EQ(bar.attach(0, 5, 1), -EINVAL) << "not a participant";
    EXPECT_EQ(bar.ops.enter(bar.bar, 0), -EINVAL) << "not attached";
    EXPECT_EQ(bar.ops.test(bar.bar, 0), -EINVAL);
    if (bar.caps.flags & COLLX_BAR_MASKS) {
        EXPECT_EQ(bar.caps.self, 1u);
        EXPECT_EQ(bar.caps.nodes, 8u);
        EXPECT_EQ(bar.caps.channels, 4u);
        EXPECT_EQ(bar.attach(0, 7, 2), -EINVAL);
        EXPECT_STREQ(bar.why, "this node is in socket 1 of the board, and should be in 2");
    } else {
        EXPECT_EQ(bar.attach(0, 3, 1), -EINVAL);
        EXPECT_STREQ(bar.why, "on this board all 3 nodes take part, or none");
    }
    ASSERT_EQ(bar.attach(0, 7, 1), 0) << bar.why;
    ASSERT_EQ(bar.ops.enter(bar.bar, 0), 0);
    EXPECT_EQ(bar.ops.enter(bar.bar, 0), -EINVAL) << "entered twice";
}

class Channels : public Barrier
{
};

/* Several at once, with other participants each; a node is in up to three of them. */
TEST_P(Channels, AreIndependent)
{
    const unsigned nodes = 6;
    const uint64_t masks[] = {0x3f, 0x15, 0x2a, 0x06};
    Emulated board(GetParam(), 8);
    RUN_OR_SKIP(board);
    auto body = [&](unsigned node, Shared &shared) {
        Bar bar(board.spec(node));
        std::mt19937 random(node);
        for (unsigned channel = 0; channel < 4; channel++)
            if (masks[channel] >> node & 1) {
                std::string wrong = attached(bar, channel, masks[channel], node);
                if (!wrong.empty())
                    return wrong;
            }
        meet(shared, nodes);
        for (unsigned round = 0; round < rounds(); round++)
            for (unsigned channel = 4; channel-- > 0;) {
                if (!(masks[channel] >> node & 1))
                    continue;
                /* Some go faster, so that channels are rounds apart. */
                if (channel && round % (channel + 1) == 0)
                    continue;
                if (random() % 16 == 0)
                    usleep(random() % 200);
                bar.barrier(channel, masks[channel], node, shared);
            }
        meet(shared, nodes);
        return std::string();
    };
    EXPECT_EQ(run_wired(nodes, body), "");
}

/* Jobs on other nodes, which no lock of a node can see: the board sees them. */
TEST_P(Channels, BelongToOneJobOfTheBoard)
{
    Emulated board(GetParam(), 8);
    RUN_OR_SKIP(board);
    auto body = [&](unsigned node, Shared &shared) {
        const uint64_t job = node < 2 ? 0x03 : 0x0c;
        Bar bar(board.spec(node));
        if (node < 2) {
            std::string wrong = attached(bar, 2, job, node);
            if (!wrong.empty())
                return wrong;
        }
        meet(shared, 4);
        if (node >= 2) {
            if (bar.attach(2, job, node) != -EBUSY)
                return std::string("a channel was given to two jobs");
            if (std::string(bar.why).find("belongs to a job on nodes 0, 1") == std::string::npos)
                return std::string(bar.why);
            if (bar.ops.detach(bar.bar, 2))
                return std::string("cannot detach");
        } else {
            bar.barrier(2, job, node, shared);
        }
        meet(shared, 4);
        if (node < 2 && bar.ops.detach(bar.bar, 2))
            return std::string("cannot detach");
        meet(shared, 4);
        if (node >= 2) {
            std::string wrong = attached(bar, 2, job, node);
            if (!wrong.empty())
                return wrong;
        }
        meet(shared, 4);
        if (node >= 2)
            bar.barrier(2, job, node, shared);
        return std::string();
    };
    EXPECT_EQ(run_wired(4, body), "");
}

/* A dead job's channel goes to the next one that has one of its nodes, whoever asks first. */
TEST_P(Channels, OfADeadJobCanBeHad)
{
    Emulated board(GetParam(), 8);
    RUN_OR_SKIP(board);
    auto dies = [&](unsigned node, Shared &shared) {
        Bar bar(board.spec(node));
        std::string wrong = attached(bar, 1, 0x3, node);
        if (!wrong.empty())
            return wrong;
        meet(shared, 2);
        _exit(0);
    };
    ASSERT_EQ(run_wired(2, dies), "");
    auto next = [&](unsigned number, Shared &shared) {
        const unsigned node = number + 1;
        Bar bar(board.spec(node));
        if (node == 1)
            usleep(50000);
        std::string wrong = attached(bar, 1, 0x6, node);
        if (!wrong.empty())
            return wrong;
        meet(shared, 2);
        bar.barrier(1, 0x6, node, shared);
        return std::string();
    };
    EXPECT_EQ(run_wired(2, next), "");
}

/* A process is killed with all but one bit of a frame on the wire; the next one begins its own. */
TEST_P(Channels, FrameThatWasCutShortClaimsForNobody)
{
    constexpr unsigned last = 7;
    Emulated emulated(GetParam(), last + 1);
    RUN_OR_SKIP(emulated);
    collx_wires wires[2];
    const unsigned nodes[2] = {0, last};
    collx_board board, shorter;
    uint64_t mask;
    char why[512];
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(collx_wires_open(&wires[i], emulated.spec(nodes[i]).c_str(), why, sizeof why), 0)
            << why;
    ASSERT_EQ(collx_board_identify(&wires[1], &board), 0);
    shorter = board;
    shorter.nodes--;

    ASSERT_EQ(collx_board_claim(&wires[1], &board, 1, 1u << 2 | 1u << last), 0);
    ASSERT_EQ(collx_board_claim(&wires[1], &shorter, 1, 0), 0);
    ASSERT_EQ(collx_board_identify(&wires[1], &board), 0);
    ASSERT_EQ(collx_board_mask(&wires[1], &board, 1, &mask), 0);
    EXPECT_EQ(mask, 1u << 2 | 1u << last) << "a node was thrown out by another one that left";

    ASSERT_EQ(collx_board_claim(&wires[0], &shorter, 2, 0x3), 0);
    ASSERT_EQ(collx_board_identify(&wires[0], &board), 0);
    ASSERT_EQ(collx_board_mask(&wires[0], &board, 2, &mask), 0);
    EXPECT_EQ(mask & ~0x3ull, 0u) << "a node takes part that never did";
    for (collx_wires &each : wires)
        collx_wires_close(&each);
}

std::string name_of(const testing::TestParamInfo<Wiring> &info)
{
    return info.param.name;
}

const Wiring wirings[] = {
    {"file_single", "single", false},
    {"file_channels", "channels", false},
    {"ppdev_single", "single", true},
    {"ppdev_channels", "channels", true},
};

INSTANTIATE_TEST_SUITE_P(Wirings, Barrier, testing::ValuesIn(wirings), name_of);
INSTANTIATE_TEST_SUITE_P(Wirings, Channels, testing::Values(wirings[1], wirings[3]), name_of);

TEST(Emulated, SaysWhenTheBoardIsGone)
{
    Emulated board(wirings[0], 2);
    RUN_OR_SKIP(board);
    board.stop();
    collx_bar *bar;
    collx_bar_caps caps;
    char why[512] = "";
    EXPECT_EQ(collx_barrier_wires.open(&bar, board.spec(0).c_str(), &caps, why, sizeof why),
              -ENXIO);
    EXPECT_EQ(std::string(why),
              "the board of " + board.folder + "/board does not run; start its collx-hwemu again");
}

TEST(Emulated, SaysWhenTheBoardGoesBeforeAClaim)
{
    Emulated board(wirings[1], 2);
    RUN_OR_SKIP(board);
    Bar bar(board.spec(0));
    board.stop();
    EXPECT_EQ(bar.attach(0, 0x3, 0), -ENXIO);
    EXPECT_EQ(std::string(bar.why), "the board cannot be asked: No such device or address; `collx "
                                    "hw test` looks into it");
}

TEST(Emulated, MayHaveFewerNodesThanSockets)
{
    Emulated board(wirings[1], 8);
    RUN_OR_SKIP(board);
    collx_bar *bar;
    collx_bar_caps caps;
    char why[512] = "";
    ASSERT_EQ(collx_barrier_wires.open(&bar, (board.spec(0) + ",nodes=4").c_str(), &caps, why,
                                       sizeof why),
              0)
        << why;
    EXPECT_EQ(caps.nodes, 8u);
    collx_barrier_wires.close(bar);
    EXPECT_EQ(collx_barrier_wires.open(&bar, (board.spec(0) + ",nodes=9").c_str(), &caps, why,
                                       sizeof why),
              -EINVAL);
    EXPECT_EQ(std::string(why), "nodes=9, but the board has 8 sockets; it needs no nodes=");
}

/* Who has its wires does not die of that. */
TEST(Emulated, MayStartAgain)
{
    Emulated board(wirings[0], 2);
    RUN_OR_SKIP(board);
    int ends[2];
    char byte = 0;
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        Bar bar(board.spec(0));
        if (!attached(bar, 0, 3, 0).empty() || write(ends[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            if (bar.ops.enter(bar.bar, 0) == 0)
                while (bar.ops.test(bar.bar, 0) == 0)
                    ;
    }
    close(ends[1]);
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "it does not get on with its wires";
    close(ends[0]);
    for (int i = 0; i < 30 && board.why_not.empty(); i++) {
        board.stop();
        board.start();
    }
    EXPECT_EQ(board.why_not, "");
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it has ended with status " << status;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

} // namespace
