/* The barriers between nodes, proved without a process: for every number of nodes up to 128 and
 * every parameter, from the lists that would be executed. */
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <functional>
#include <string>
#include <vector>

extern "C" {
#include "algorithms/between/schedule.h"
}

namespace
{

constexpr int MOST = 128;

/* From one number of nodes that is tried to the next.  What is proved without a sanitizer for all
 * of them need not be proved again with it: of the many some are left out. */
constexpr int after(int nodes)
{
#ifdef __SANITIZE_ADDRESS__
    return nodes + (nodes < 23 ? 1 : 7);
#else
    return nodes + 1;
#endif
}

using Nodes = std::bitset<MOST>;
using Make = std::function<void(collx_pattern *)>;

/* The schedules of all nodes. */
class Schedules
{
  public:
    explicit Schedules(const collx_pattern &pattern) : all((size_t)pattern.nodes)
    {
        for (int node = 0; node < pattern.nodes; node++)
            EXPECT_EQ(0, collx_schedule_init(&all[(size_t)node], &pattern, node));
    }
    ~Schedules()
    {
        for (collx_schedule &schedule : all)
            collx_schedule_finish(&schedule);
    }
    Schedules(const Schedules &) = delete;
    Schedules &operator=(const Schedules &) = delete;

    std::vector<collx_schedule> all;
};

int steps_of(const collx_schedule &schedule, collx_step_kind kind)
{
    int count = 0;

    for (int i = 0; i < schedule.count; i++)
        count += schedule.steps[i].kind == kind;
    return count;
}

/* A flag in somebody's row. */
struct Flag {
    int writer = -1; /* nobody so far */
    int waits = 0;
    Nodes known; /* whose arrival the writer knew of */
};

/* Execute the schedules as far as they go.  Each flag is written once and never changes, so the
 * order in which nodes make their steps has no influence on how far that is, nor on what they hear:
 * one execution stands for all.  Returns what is wrong, or nothing. */
std::string flaw(const std::vector<collx_schedule> &all)
{
    size_t nodes = all.size(), slots = (size_t)all[0].slots;
    std::vector<Flag> flags(nodes * slots);
    std::vector<Nodes> known(nodes);
    std::vector<int> next(nodes, 0), unchecked(nodes, 0);
    std::vector<size_t> able;

    for (size_t node = 0; node < nodes; node++) {
        if (all[node].node != (int)node || all[node].nodes != (int)nodes)
            return "the schedule of another node";
        if ((size_t)all[node].slots != slots)
            return "rows of different lengths";
        known[node].set(node);
        able.push_back(node);
    }
    while (!able.empty()) {
        size_t node = able.back();
        const collx_schedule &own = all[node];
        able.pop_back();
        for (; next[node] < own.count; next[node]++) {
            const collx_step &step = own.steps[next[node]];
            if (step.kind == COLLX_STEP_CHECK) {
                if (!unchecked[node])
                    return "a check of nothing";
                unchecked[node] = 0;
                continue;
            }
            if (step.peer < 0 || step.peer >= (int)nodes || step.peer == (int)node)
                return "a flag from or to nobody else";
            if (step.slot < 0 || step.slot >= own.slots)
                return "a slot outside the row";
            if (step.kind == COLLX_STEP_WRITE) {
                Flag &flag = flags[(size_t)step.peer * slots + (size_t)step.slot];
                if (flag.writer >= 0)
                    return "a slot that is written twice";
                flag.writer = (int)node;
                flag.known = known[node];
                unchecked[node]++;
                able.push_back((size_t)step.peer);
                continue;
            }
            Flag &flag = flags[node * slots + (size_t)step.slot];
            if (unchecked[node])
                return "a wait before the writes are checked";
            if (flag.writer < 0)
                break;
            if (flag.writer != step.peer)
                return "a flag that another node writes";
            flag.waits++;
            known[node] |= flag.known;
        }
    }
    for (size_t node = 0; node < nodes; node++) {
        if (next[node] < all[node].count)
            return "node " + std::to_string(node) + " waits for ever";
        if (unchecked[node])
            return "writes that are never checked";
        if (known[node].count() != nodes)
            return "node " + std::to_string(node) + " does not hear of everybody";
    }
    for (const Flag &flag : flags)
        if (flag.writer >= 0 && flag.waits != 1)
            return "a flag that is not waited for once";
    return "";
}

/* What the simulation relies on: both sides mean the same flag in the same round, and `order` is
 * its place among those that its writer writes. */
void check_rounds(const collx_pattern &pattern)
{
    std::vector<collx_crossing> written((size_t)pattern.width), awaited((size_t)pattern.width);

    for (int round = 0; round < pattern.rounds; round++) {
        int sum = 0;
        for (int node = 0; node < pattern.nodes; node++) {
            int waits = pattern.waits(&pattern, node, round, awaited.data());
            sum -= pattern.writes(&pattern, node, round, written.data());
            for (int i = 0; i < waits; i++) {
                const collx_crossing &flag = awaited[(size_t)i];
                int writes = pattern.writes(&pattern, flag.peer, round, written.data());
                ASSERT_LT(flag.order, writes);
                ASSERT_EQ(written[(size_t)flag.order].peer, node);
                ASSERT_EQ(written[(size_t)flag.order].slot, flag.slot);
                ASSERT_EQ(written[(size_t)flag.order].order, flag.order);
            }
            sum += waits;
        }
        ASSERT_EQ(sum, 0);
    }
}

/* ceil(log_base(value)), in integers. */
int log_up(int base, int value)
{
    int log = 0;

    for (long power = 1; power < value; power *= base)
        log++;
    return log;
}

/* Levels below the root of a tree of so many nodes that have up to `fan` children each. */
int tree_levels(int fan, int nodes)
{
    int levels = 0;

    for (long width = 1, all = 1; all < nodes; levels++)
        all += width *= fan;
    return levels;
}

TEST(Nx, DisseminationIsProvedForAllNodesAndN)
{
    for (int nodes = 1; nodes <= MOST; nodes = after(nodes))
        for (int n = 2; n <= std::max(nodes, 2); n++) {
            collx_pattern pattern;
            collx_nx_dissemination(&pattern, nodes, n);
            Schedules schedules(pattern);
            ASSERT_EQ(flaw(schedules.all), "") << nodes << " nodes, n = " << n;
            ASSERT_EQ(pattern.rounds, log_up(n, nodes)) << nodes << " nodes, n = " << n;
            int writes = 0;
            for (int stride = 1; stride < nodes; stride *= n)
                writes += std::min(n, (nodes + stride - 1) / stride) - 1;
            for (const collx_schedule &own : schedules.all) {
                ASSERT_EQ(steps_of(own, COLLX_STEP_WRITE), writes);
                ASSERT_EQ(steps_of(own, COLLX_STEP_WAIT), writes);
                ASSERT_EQ(steps_of(own, COLLX_STEP_CHECK), pattern.rounds);
            }
        }
}

TEST(Nx, ExchangeIsProvedForAllNodesAndN)
{
    for (int nodes = 1; nodes <= MOST; nodes = after(nodes))
        for (int n = 2; n <= std::max(nodes, 2); n++) {
            collx_pattern pattern;
            collx_nx_exchange(&pattern, nodes, n);
            Schedules schedules(pattern);
            ASSERT_EQ(flaw(schedules.all), "") << nodes << " nodes, n = " << n;
            int digits = 0, core = 1;
            for (; core * n <= nodes; core *= n)
                digits++;
            bool power = core == nodes;
            ASSERT_EQ(pattern.rounds, power ? digits : digits + 2) << nodes << ", n = " << n;
            for (const collx_schedule &own : schedules.all) {
                int served = own.node < core ? (nodes - 1 - own.node) / core : 0;
                bool inside = own.node < core;
                ASSERT_EQ(steps_of(own, COLLX_STEP_WRITE), inside ? digits * (n - 1) + served : 1);
                ASSERT_EQ(steps_of(own, COLLX_STEP_CHECK), inside ? digits + (served > 0) : 1);
                ASSERT_LT(served, n);
            }
        }
}

/* The paper counts 2 ceil(log_f N) steps.  A level of a tree whose nodes have f children each holds
 * those of the levels above besides, so that some N need one level less: 9 nodes with f = 8. */
void check_hsb(int nodes, int f_in, int f_out)
{
    collx_pattern pattern;

    collx_hsb(&pattern, nodes, f_in, f_out);
    Schedules schedules(pattern);
    ASSERT_EQ(flaw(schedules.all), "") << nodes << " nodes, f " << f_in << ", " << f_out;
    ASSERT_EQ(pattern.rounds, tree_levels(f_in, nodes) + tree_levels(f_out, nodes));
    int writes = 0, checks = 0;
    for (const collx_schedule &own : schedules.all) {
        long first = (long)own.node * f_out + 1;
        int children = (int)std::max(0L, std::min((long)nodes - first, (long)f_out));
        int parents = own.node ? 1 : 0;
        ASSERT_EQ(steps_of(own, COLLX_STEP_WRITE), parents + children);
        ASSERT_EQ(steps_of(own, COLLX_STEP_CHECK), parents + (children > 0));
        writes += parents + children;
        checks += steps_of(own, COLLX_STEP_CHECK);
    }
    ASSERT_EQ(writes, 2 * (nodes - 1));
    ASSERT_LE(checks, writes);
}

TEST(Hsb, IsProvedForAllNodesAndFans)
{
    for (int nodes = 1; nodes <= MOST; nodes = after(nodes))
        for (int fan = 2; fan <= std::max(nodes - 1, 2); fan++) {
            check_hsb(nodes, fan, fan);
            if (testing::Test::HasFatalFailure())
                return;
        }
}

TEST(Hsb, IsProvedForPairsOfFans)
{
    for (int nodes = 3; nodes <= MOST; nodes = after(nodes))
        for (int fan = 2; fan < nodes; fan++)
            for (int other = 2; other < nodes; other++) {
                /* All pairs would take long. */
                if (nodes > 32 && other != 2 && other != 8 && other != nodes - 1)
                    continue;
                check_hsb(nodes, fan, other);
                check_hsb(nodes, other, fan);
                if (testing::Test::HasFatalFailure())
                    return;
            }
}

TEST(Hsb, HasAtMostAsManyStepsAsThePaperCounts)
{
    int same = 0;

    for (int nodes = 2; nodes <= MOST; nodes = after(nodes))
        for (int fan = 2; fan < nodes; fan++) {
            collx_pattern pattern;
            collx_hsb(&pattern, nodes, fan, fan);
            int levels = pattern.rounds / 2;
            long full = 1;
            for (int i = 0; i < levels; i++)
                full *= fan;
            /* The last full level is all that the logarithm counts. */
            int paper = nodes <= full ? levels : levels + 1;
            ASSERT_EQ(paper, log_up(fan, nodes)) << nodes << " nodes, f = " << fan;
            same += paper == levels;
        }
    EXPECT_GT(same, 0);
}

TEST(Pattern, RoundsOfWriterAndReaderAgree)
{
    for (int nodes : {1, 2, 3, 9, 10, 17, 64, 81, 100})
        for (int fan = 2; fan <= std::max(nodes, 2); fan++) {
            const Make makes[] = {
                [=](collx_pattern *pattern) { collx_nx_dissemination(pattern, nodes, fan); },
                [=](collx_pattern *pattern) { collx_nx_exchange(pattern, nodes, fan); },
                [=](collx_pattern *pattern) { collx_hsb(pattern, nodes, fan, fan); },
                [=](collx_pattern *pattern) { collx_hsb(pattern, nodes, fan, 3); },
                [=](collx_pattern *pattern) { collx_hsb(pattern, nodes, 3, fan); },
            };
            for (const Make &make : makes) {
                collx_pattern pattern;
                make(&pattern);
                check_rounds(pattern);
                if (testing::Test::HasFatalFailure())
                    FAIL() << nodes << " nodes, fan " << fan;
            }
        }
}

/* Numbers of nodes that are far from small: nothing overflows, and the last node has its flags. */
TEST(Pattern, IsRightForABillionNodes)
{
    std::vector<collx_crossing> flags(1 << 16);
    collx_pattern pattern;

    for (int fan : {2, 3, 10, 1000, 1 << 15}) {
        const Make makes[] = {
            [=](collx_pattern *p) { collx_nx_dissemination(p, COLLX_NODES_MAX, fan); },
            [=](collx_pattern *p) { collx_nx_exchange(p, COLLX_NODES_MAX, fan); },
            [=](collx_pattern *p) { collx_hsb(p, COLLX_NODES_MAX, fan, fan); },
        };
        for (const Make &make : makes) {
            make(&pattern);
            ASSERT_LE(pattern.width, 1 << 16);
            int met = 0;
            for (int node : {0, 1, COLLX_NODES_MAX / 2, COLLX_NODES_MAX - 1})
                for (int round = 0; round < pattern.rounds; round++) {
                    int count = pattern.writes(&pattern, node, round, flags.data());
                    for (int i = 0; i < count; i++) {
                        const collx_crossing &flag = flags[(size_t)i];
                        ASSERT_TRUE(flag.peer >= 0 && flag.peer < COLLX_NODES_MAX) << fan;
                        ASSERT_TRUE(flag.slot >= 0 && flag.slot < pattern.slots) << fan;
                        met++;
                    }
                }
            ASSERT_GE(met, 4) << fan;
        }
    }
}

TEST(Nx, DefaultIsThatOfThePaper)
{
    for (int nodes = 2; nodes <= 16; nodes++)
        EXPECT_EQ(collx_nx_default(nodes), nodes);
    for (int nodes = 17; nodes <= 36; nodes++)
        EXPECT_EQ(collx_nx_default(nodes), 6);
    EXPECT_EQ(collx_nx_default(64), 8);
    EXPECT_EQ(collx_nx_default(1024), 11);
    EXPECT_EQ(collx_nx_default(1 << 20), 8);
    /* No other n has as few rounds and fewer writes. */
    for (int nodes = 37; nodes <= 1000; nodes += 7) {
        collx_pattern chosen, other;
        collx_nx_dissemination(&chosen, nodes, 0);
        for (int n = 2; n <= nodes; n++) {
            collx_nx_dissemination(&other, nodes, n);
            ASSERT_TRUE(other.rounds > chosen.rounds || other.slots >= chosen.slots)
                << nodes << " nodes, n = " << n;
        }
    }
}

TEST(Pattern, TakesParametersThatDoNotFit)
{
    collx_pattern pattern, same;

    collx_nx_dissemination(&pattern, 5, 100);
    EXPECT_EQ(pattern.nx.n, 5);
    collx_nx_exchange(&pattern, 5, 1);
    EXPECT_EQ(pattern.nx.n, 2);
    collx_hsb(&pattern, 5, 0, 1);
    EXPECT_EQ(pattern.hsb.fan[0], 4);
    EXPECT_EQ(pattern.hsb.fan[1], 2);
    collx_hsb(&pattern, 64, 0, 0);
    collx_hsb(&same, 64, COLLX_HSB_FAN, COLLX_HSB_FAN);
    EXPECT_EQ(pattern.rounds, same.rounds);
    EXPECT_EQ(pattern.slots, same.slots);
}

/* The prover itself: it finds each thing that it is there to find. */
class Flaw : public testing::Test
{
  protected:
    using Steps = std::vector<collx_step>;

    static collx_step write(int peer, int slot)
    {
        return {COLLX_STEP_WRITE, 0, peer, slot};
    }
    static collx_step wait(int peer, int slot)
    {
        return {COLLX_STEP_WAIT, 0, peer, slot};
    }
    static collx_step check()
    {
        return {COLLX_STEP_CHECK, 0, -1, -1};
    }
    static std::string of(std::vector<Steps> steps)
    {
        std::vector<collx_schedule> all;
        all.reserve(steps.size());
        for (Steps &own : steps)
            all.push_back({(int)all.size(), (int)steps.size(), 2, (int)own.size(), own.data()});
        return flaw(all);
    }
};

TEST_F(Flaw, IsFound)
{
    EXPECT_EQ(of({{write(1, 0), check(), wait(1, 0)}, {write(0, 0), check(), wait(0, 0)}}), "");
    EXPECT_EQ(of({{wait(1, 0), write(1, 0), check()}, {wait(0, 0), write(0, 0), check()}}),
              "node 0 waits for ever");
    EXPECT_EQ(of({{write(1, 0), check(), wait(1, 0)}, {write(0, 1), check(), wait(0, 0)}}),
              "node 0 waits for ever");
    EXPECT_EQ(of({{write(1, 0), wait(1, 0), check()}, {write(0, 0), check(), wait(0, 0)}}),
              "a wait before the writes are checked");
    EXPECT_EQ(of({{write(1, 0), check(), wait(1, 0)}, {write(0, 0), wait(0, 0)}}),
              "a wait before the writes are checked");
    EXPECT_EQ(of({{write(1, 0), check(), wait(1, 0)}, {wait(0, 0), write(0, 0)}}),
              "writes that are never checked");
    EXPECT_EQ(of({{write(1, 0), check(), check(), wait(1, 0)}, {}}), "a check of nothing");
    EXPECT_EQ(of({{write(1, 0), check()}, {write(0, 0), check(), wait(0, 0)}}),
              "node 0 does not hear of everybody");
    EXPECT_EQ(
        of({{write(1, 0), write(1, 1), check(), wait(1, 0)}, {write(0, 0), check(), wait(0, 0)}}),
        "a flag that is not waited for once");
    EXPECT_EQ(of({{write(1, 0), write(1, 0), check()}, {}}), "a slot that is written twice");
    EXPECT_EQ(of({{write(1, 0), check()}, {wait(2, 0)}, {}}), "a flag that another node writes");
    EXPECT_EQ(of({{write(0, 0), check()}}), "a flag from or to nobody else");
    EXPECT_EQ(of({{write(1, 2), check()}, {}}), "a slot outside the row");
}

} // namespace
