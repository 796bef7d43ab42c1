/* Segments when stores are lost, or their owner is gone. */
#include "tests/alone.h"

extern "C" {
#include "base/clock.h"
}

#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

/* What the stand-in is for: who forgets the check waits in vain. */
TEST_F(Alone, NothingArrivesUnchecked)
{
    collx_remote *remote;

    for (const char *mode : {"barrier", "flush", "full"}) {
        ASSERT_EQ(open("sisci", {{"COLLX_SISCI_CHECK", mode}}), 0) << why;
        ASSERT_EQ(make(256), 0) << why;
        ASSERT_EQ(connect(address, 256, &remote), 0) << why;
        ops->store(remote, 60, 7);
        usleep(1000);
        EXPECT_EQ(collx_seg_read(local, 60), 0u);
        EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
        EXPECT_EQ(last, 0);
        EXPECT_EQ(collx_seg_read(local, 60), 7u);
        EXPECT_EQ(counts().barriers, 1u);
        /* Nothing was stored: there is nothing to ask. */
        EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
        EXPECT_EQ(counts().checks, 1u);
        ops->disconnect(remote);
        ops->unmake(own);
        ops->close(net);
    }
}

TEST_F(Alone, WhatIsLostIsStoredAgain)
{
    collx_remote *remote;

    ASSERT_EQ(open("sisci", {{"COLLX_TEST_SISCI_FAIL", "100"}, {"COLLX_TEST_SISCI_LOSE", "100"}}),
              0);
    ASSERT_EQ(make(64), 0);
    ASSERT_EQ(connect(address, 64, &remote), 0);
    for (int i = 0; i < 100; i++) {
        ops->store(remote, 60, 7);
        EXPECT_EQ(check(remote), COLLX_SEG_LOST);
        EXPECT_EQ(last, 1);
        EXPECT_EQ(collx_seg_read(local, 60), 0u);
    }
    ops->disconnect(remote);
    ops->unmake(own);
    ops->close(net);
}

/* The sequence has to be started again, now and then more than once, before anything is stored. */
TEST_F(Alone, ConnectionIsRestored)
{
    for (const char *kind : {"COLLX_TEST_SISCI_HARD", "COLLX_TEST_SISCI_PENDING"}) {
        collx_remote *remote;
        int busy = 0, lost = 0;

        ASSERT_EQ(open("sisci", {{"COLLX_TEST_SISCI_FAIL", "30"}, {kind, "100"}}), 0);
        ASSERT_EQ(make(64), 0);
        ASSERT_EQ(connect(address, 64, &remote), 0);
        for (uint32_t i = 1; i <= 200; i++) {
            ops->store(remote, 60, i);
            for (uint8_t state; (state = check(remote)) != COLLX_SEG_ARRIVED;) {
                ASSERT_TRUE(state == COLLX_SEG_BUSY || state == COLLX_SEG_LOST);
                busy += state == COLLX_SEG_BUSY;
                lost += state == COLLX_SEG_LOST;
                /* In any state: what is stored too early is asked for again. */
                ops->store(remote, 60, i);
            }
            ASSERT_EQ(collx_seg_read(local, 60), i);
        }
        EXPECT_GT(busy, 0);
        EXPECT_GT(lost, 0);
        EXPECT_GE(counts().starts, 1u + counts().hard + counts().pending);
        ops->disconnect(remote);
        ops->unmake(own);
        ops->close(net);
    }
}

/* What was stored before it worked at all went nowhere, though no check has failed. */
TEST_F(Alone, ConnectionStartsLate)
{
    for (unsigned starts : {2u, 3u, 4u}) {
        collx_remote *remote;

        ASSERT_EQ(open("sisci", {{"COLLX_TEST_SISCI_STARTS", std::to_string(starts)}}), 0);
        ASSERT_EQ(make(64), 0);
        ASSERT_EQ(connect(address, 64, &remote), 0);
        ops->store(remote, 60, 5);
        for (unsigned i = 2; i < starts; i++)
            EXPECT_EQ(check(remote), COLLX_SEG_BUSY);
        EXPECT_EQ(check(remote), COLLX_SEG_LOST);
        ops->store(remote, 60, 5);
        EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
        EXPECT_EQ(collx_seg_read(local, 60), 5u);
        EXPECT_EQ(counts().starts, starts);
        ops->disconnect(remote);
        ops->unmake(own);
        ops->close(net);
    }
}

/* Nothing was stored while it did not work: nothing is lost. */
TEST_F(Alone, ConnectionStartsLateButInTime)
{
    collx_remote *remote;

    ASSERT_EQ(open("sisci", {{"COLLX_TEST_SISCI_STARTS", "2"}}), 0);
    ASSERT_EQ(make(64), 0);
    ASSERT_EQ(connect(address, 64, &remote), 0);
    EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
    ops->store(remote, 60, 5);
    EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
    EXPECT_EQ(collx_seg_read(local, 60), 5u);
    ops->disconnect(remote);
    ops->unmake(own);
    ops->close(net);
}

/* One check for two remotes has failed: who is asked later is told, too. */
TEST_F(Alone, OneCheckFailsForAll)
{
    collx_remote *first, *second;

    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_ONE_CHECK", "on"},
                             {"COLLX_TEST_SISCI_SHARED", "1"},
                             {"COLLX_TEST_SISCI_FAIL", "100"}}),
              0);
    ASSERT_EQ(make(128), 0);
    ASSERT_EQ(connect(address, 128, &first), 0);
    ASSERT_EQ(connect(address, 128, &second), 0);
    ops->store(first, 60, 1);
    ops->store(second, 124, 1);
    EXPECT_EQ(check(first), COLLX_SEG_LOST);
    EXPECT_EQ(counts().checks, 1u);
    EXPECT_EQ(check(second), COLLX_SEG_LOST);
    EXPECT_EQ(counts().checks, 1u);
    ops->disconnect(second);
    ops->disconnect(first);
    ops->unmake(own);
    ops->close(net);
}

TEST_F(Alone, OneCheckIsOneForAll)
{
    collx_remote *remotes[5];
    uint8_t state[5];

    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_ONE_CHECK", "on"}, {"COLLX_TEST_SISCI_SHARED", "1"}}),
              0);
    ASSERT_EQ(make(5 * 64), 0);
    for (size_t i = 0; i < 5; i++) {
        ASSERT_EQ(connect(address, 5 * 64, &remotes[i]), 0);
        ops->store(remotes[i], collx_seg_flag(i, 64), 9);
    }
    EXPECT_EQ(ops->check(net, remotes, 5, state), 0);
    EXPECT_EQ(counts().checks, 1u);
    EXPECT_EQ(counts().barriers, 1u);
    for (size_t i = 0; i < 5; i++) {
        EXPECT_EQ(state[i], COLLX_SEG_ARRIVED);
        EXPECT_EQ(collx_seg_read(local, collx_seg_flag(i, 64)), 9u);
        ops->disconnect(remotes[i]);
    }
    ops->unmake(own);
    ops->close(net);
}

/* Store until the other side is given up.  Returns the answers but the last. */
int store_until_gone(const collx_seg_ops *ops, collx_net *net, collx_remote *remote)
{
    uint8_t state = COLLX_SEG_ARRIVED;
    int answers = 0, result;

    do {
        ops->store(remote, 60, 1);
        result = ops->check(net, &remote, 1, &state);
        answers++;
    } while (result >= 0);
    EXPECT_EQ(result, -ENOTCONN);
    EXPECT_EQ(state, COLLX_SEG_GONE);
    return answers;
}

TEST_F(Alone, SegmentIsWithdrawn)
{
    collx_remote *remote;

    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_PATIENCE", "20ms"}}), 0);
    ASSERT_EQ(make(64), 0);
    ASSERT_EQ(connect(address, 64, &remote), 0);
    ops->unmake(own);
    uint64_t start = collx_clock_ns();
    EXPECT_GE(store_until_gone(ops, net, remote), 64);
    EXPECT_GE(collx_clock_ns() - start, 20000000u) << "without patience";
    ops->disconnect(remote);
    ops->close(net);
}

/* A patience of nothing still stands some failures: time says little where processes do not run. */
TEST_F(Alone, SomeFailuresAreNeverTheEnd)
{
    collx_remote *remote;

    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_PATIENCE", "0"}, {"COLLX_TEST_SISCI_FAIL", "50"}}), 0);
    ASSERT_EQ(make(64), 0);
    ASSERT_EQ(connect(address, 64, &remote), 0);
    for (uint32_t i = 1; i <= 2000; i++)
        do
            ops->store(remote, 60, i);
        while (check(remote) == COLLX_SEG_LOST);
    EXPECT_EQ(last, 0);
    ops->disconnect(remote);
    ops->unmake(own);
    ops->close(net);
}

/* A process that is killed, with a segment that this one is connected to. */
class Victim
{
  public:
    Victim(const collx_seg_ops *ops, const char *node)
    {
        int ends[2];
        if (pipe(ends))
            abort();
        child_ = fork();
        if (child_ == 0) {
            collx_net *net;
            collx_seg_caps caps;
            collx_export *own;
            collx_seg_address address;
            void *local;
            char why[512];
            alarm(60);
            setenv("COLLX_TEST_SISCI_NODE", node, 1);
            if (ops->open(&net, &caps, why, sizeof why) ||
                ops->make(net, 64, &own, &local, &address, why, sizeof why) ||
                write(ends[1], &address, sizeof address) != sizeof address)
                _exit(1);
            pause();
            _exit(1);
        }
        close(ends[1]);
        made = read(ends[0], &address, sizeof address) == sizeof address;
        close(ends[0]);
    }
    Victim(const Victim &) = delete;
    Victim &operator=(const Victim &) = delete;
    ~Victim()
    {
        die();
    }
    void die()
    {
        if (child_ > 0) {
            kill(child_, SIGKILL);
            waitpid(child_, nullptr, 0);
        }
        child_ = 0;
    }
    bool made = false;
    collx_seg_address address = {};

  private:
    pid_t child_;
};

TEST_F(Alone, OwnerIsKilled)
{
    collx_remote *remote;

    set({{"COLLX_SISCI_PATIENCE", "20ms"}});
    Victim victim(collx_seg_find("sisci"), "8");
    ASSERT_TRUE(victim.made);
    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_PATIENCE", "20ms"}}), 0) << why;
    ASSERT_EQ(connect(victim.address, 64, &remote), 0) << why;
    ops->store(remote, 60, 1);
    EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
    victim.die();
    store_until_gone(ops, net, remote);
    ops->disconnect(remote);
    EXPECT_EQ(connect(victim.address, 64, &remote), -EAGAIN);
    ops->close(net);
}

/* Shared memory outlives its owner as long as somebody has it, and then is gone. */
TEST_F(Alone, OwnerOfSharedMemoryIsKilled)
{
    collx_remote *remote;

    Victim victim(collx_seg_find("shm"), "8");
    ASSERT_TRUE(victim.made);
    std::vector<std::string> before = open_things();
    ASSERT_EQ(open("shm"), 0) << why;
    ASSERT_EQ(connect(victim.address, 64, &remote), 0) << why;
    victim.die();
    ops->store(remote, 60, 1);
    EXPECT_EQ(check(remote), COLLX_SEG_ARRIVED);
    ops->disconnect(remote);
    EXPECT_EQ(connect(victim.address, 64, &remote), -ENOENT) << why;
    ops->close(net);
    EXPECT_EQ(open_things(), before);
}

} // namespace
