/* Shares of the memory of a node, and what launchers say of how many share it. */
extern "C" {
#include "base/launcher.h"
#include "hw/budget.h"
}

#include <atomic>
#include <cerrno>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

TEST(Budget, IsTakenToItsEndAndComesBack)
{
    collx_budget budget = {};

    EXPECT_EQ(collx_budget_take(&budget, 60, 100), 0);
    EXPECT_EQ(collx_budget_take(&budget, 41, 100), -EDQUOT);
    EXPECT_EQ(collx_budget_take(&budget, 40, 100), 0);
    EXPECT_EQ(collx_budget_take(&budget, 1, 100), -EDQUOT);
    EXPECT_EQ(collx_budget_take(&budget, 0, 100), 0);
    /* The share has become less than what is taken already. */
    EXPECT_EQ(collx_budget_take(&budget, 1, 50), -EDQUOT);
    EXPECT_EQ(collx_budget_take(&budget, SIZE_MAX, SIZE_MAX), -EDQUOT) << "it would wrap around";
    EXPECT_EQ(collx_budget_taken(&budget), 100u);
    collx_budget_give(&budget, 60);
    collx_budget_give(&budget, 40);
    EXPECT_EQ(collx_budget_taken(&budget), 0u);
}

/* However segments of any size are shared, what all their members are charged is not less. */
TEST(Budget, PartsCoverTheSegment)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

    for (size_t size : {1ul, 100ul, page - 1, page, page + 1, 1000003ul})
        for (int members : {1, 2, 3, 7, 64, 1000}) {
            size_t pages = (size + page - 1) / page * page;
            size_t all = collx_budget_part(size, members) * static_cast<size_t>(members);
            EXPECT_GE(all, pages) << size << " by " << members;
            EXPECT_LT(all, pages + static_cast<size_t>(members)) << size << " by " << members;
        }
}

TEST(Budget, ThreadsNeverTakeTooMuch)
{
    enum { THREADS = 4, ROUNDS = 20000, SHARE = 10, BYTES = 4 };
    collx_budget budget = {};
    std::atomic<int> holders = 0, most = 0, refused = 0;
    std::vector<std::thread> threads;

    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < ROUNDS; i++) {
                if (collx_budget_take(&budget, BYTES, SHARE)) {
                    refused++;
                    continue;
                }
                int now = ++holders;
                if (now > SHARE / BYTES)
                    most = now;
                holders--;
                collx_budget_give(&budget, BYTES);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(most, 0) << "more than there is room for";
    EXPECT_LT(refused, THREADS * ROUNDS);
    EXPECT_EQ(collx_budget_taken(&budget), 0u);
}

TEST(Launcher, TheFullestNodeOfAList)
{
    EXPECT_EQ(collx_launcher_largest("4"), 4);
    EXPECT_EQ(collx_launcher_largest("4(x2),3"), 4);
    EXPECT_EQ(collx_launcher_largest("2,16(x3),3"), 16);
    for (const char *wrong : {"", "x", "-3", "0", ",", "4,x", "99999999999"})
        EXPECT_EQ(collx_launcher_largest(wrong), 0) << wrong;
}

void unset_launchers()
{
    for (const collx_launcher &launcher : collx_launchers) {
        unsetenv(launcher.local);
        unsetenv(launcher.all);
    }
}

TEST(Launcher, RanksOfThisNode)
{
    unset_launchers();
    EXPECT_EQ(collx_launcher_local_ranks(), 0);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2,5(x2)", 1);
    EXPECT_EQ(collx_launcher_local_ranks(), 5);
    /* A launcher within an allocation knows better. */
    setenv("MPI_LOCALNRANKS", "3", 1);
    EXPECT_EQ(collx_launcher_local_ranks(), 3);
    setenv("MPI_LOCALNRANKS", "many", 1);
    EXPECT_EQ(collx_launcher_local_ranks(), 5);
}

TEST(Launcher, WhatIsOfAnotherJob)
{
    unset_launchers();
    setenv("SLURM_STEP_TASKS_PER_NODE", "2,5(x2)", 1);
    setenv("SLURM_STEP_NUM_TASKS", "12", 1);
    setenv("MPI_LOCALNRANKS", "3", 1);
    EXPECT_EQ(collx_launcher_node_most(12), 5);
    /* What is of this job as well as far as can be told: the larger number is safe. */
    setenv("PMI_SIZE", "12", 1);
    EXPECT_EQ(collx_launcher_node_most(12), 5);
    setenv("PMI_SIZE", "6", 1);
    EXPECT_EQ(collx_launcher_node_most(6), 3);
    EXPECT_EQ(collx_launcher_node_most(13), 0);
    setenv("PMI_SIZE", "all", 1);
    EXPECT_EQ(collx_launcher_node_most(6), 0);
}

} // namespace
