/* Segments when something is missing, lost or gone. */
#include "tests/nodes.h"

#include "tests/sisci/standin.h"

extern "C" {
#include "base/clock.h"
#include "base/error.h"
#include "hw/shm.h"
#include "hw/sisci.h"
}

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

bool has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* A process with one net, of the stand-in or another library. */
class Alone : public testing::Test
{
  protected:
    void set(Variables variables)
    {
        variables.insert(variables.begin(), {{"COLLX_SISCI_LIBRARY", COLLX_TEST_SISCI},
                                             {"COLLX_TEST_SISCI_FOLDER", folder.path}});
        environment.reset();
        environment = std::make_unique<Environment>(variables);
    }

    int open(const char *driver, Variables variables = {})
    {
        set(variables);
        ops = collx_seg_find(driver);
        return ops->open(&net, &caps, why, sizeof why);
    }

    int make(size_t bytes)
    {
        return ops->make(net, bytes, &own, &local, &address, why, sizeof why);
    }

    int connect(const collx_seg_address &to, size_t bytes, collx_remote **remote)
    {
        return ops->connect(net, &to, bytes, remote, why, sizeof why);
    }

    uint8_t check(collx_remote *remote)
    {
        uint8_t state = 99;
        last = ops->check(net, &remote, 1, &state);
        return state;
    }

    standin::Counts counts()
    {
        standin::Counts counts = {};
        void *library = dlopen(COLLX_TEST_SISCI, RTLD_NOW | RTLD_NOLOAD);
        auto *get = reinterpret_cast<void (*)(standin::Counts *)>(dlsym(library, STANDIN_COUNTS));
        get(&counts);
        dlclose(library);
        return counts;
    }

    Folder folder;
    std::unique_ptr<Environment> environment;
    const collx_seg_ops *ops = nullptr;
    collx_net *net = nullptr;
    collx_seg_caps caps = {};
    collx_export *own = nullptr;
    collx_seg_address address = {};
    void *local = nullptr;
    char why[512] = "";
    int last = 0;
};

TEST(SegmentDrivers, AreFoundByName)
{
    for (const char *name : {"shm", "sisci"}) {
        ASSERT_NE(collx_seg_find(name), nullptr);
        EXPECT_STREQ(collx_seg_find(name)->name, name);
    }
    EXPECT_EQ(collx_seg_find("carrier pigeon"), nullptr);
}

TEST(SegmentDrivers, EpochsWrapAround)
{
    EXPECT_TRUE(collx_seg_reached(5, 5));
    EXPECT_TRUE(collx_seg_reached(6, 5));
    EXPECT_FALSE(collx_seg_reached(4, 5));
    EXPECT_TRUE(collx_seg_reached(2, UINT32_MAX - 2));
    EXPECT_FALSE(collx_seg_reached(UINT32_MAX - 2, 2));
}

TEST_F(Alone, LibraryIsMissing)
{
    std::vector<std::string> before = open_things();

    EXPECT_EQ(open("sisci", {{"COLLX_SISCI_LIBRARY", "/nowhere/libsisci.so"}}), COLLX_EUNFIT);
    EXPECT_TRUE(has(why, "/nowhere/libsisci.so: cannot open shared object file")) << why;
    EXPECT_TRUE(has(why, "COLLX_SISCI_LIBRARY")) << why;
    EXPECT_EQ(net, nullptr);
    EXPECT_EQ(open_things(), before);
}

TEST_F(Alone, SymbolIsMissing)
{
    EXPECT_EQ(open("sisci", {{"COLLX_SISCI_LIBRARY", "libm.so.6"}}), COLLX_EUNFIT);
    EXPECT_TRUE(has(why, "has no _SISCI_PUBLIC_FUNC_MT_SCIInitialize; ")) << why;
    /* And can be opened with the right one afterwards. */
    EXPECT_EQ(open("sisci"), 0) << why;
    ops->close(net);
}

TEST_F(Alone, AdapterIsMissing)
{
    std::vector<std::string> before = open_things();

    EXPECT_EQ(open("sisci", {{"COLLX_SISCI_ADAPTER", "3"}}), COLLX_EUNFIT);
    EXPECT_TRUE(has(why, "cannot use adapter 3 of Dolphin's: no such adapter (0x40000909); "))
        << why;
    EXPECT_EQ(open_things(), before);
    EXPECT_EQ(open("sisci", {{"COLLX_SISCI_ADAPTER", "3"}, {"COLLX_TEST_SISCI_ADAPTERS", "4"}}), 0)
        << why;
    EXPECT_EQ(make(4096), 0) << why;
    ops->unmake(own);
    ops->close(net);
}

TEST_F(Alone, AdapterIsMissingThoughItsNodeIsNamed)
{
    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_ADAPTER", "3"}, {"COLLX_SISCI_NODE", "4"}}), 0);
    EXPECT_EQ(make(4096), -ENODEV);
    EXPECT_TRUE(has(why, "adapter 3: no such adapter (0x40000909)")) << why;
    EXPECT_EQ(own, nullptr);
    ops->close(net);
}

TEST_F(Alone, LineIsNoPowerOfTwo)
{
    EXPECT_EQ(open("sisci", {{"COLLX_SISCI_LINE", "96"}}), COLLX_EUNFIT);
    EXPECT_STREQ(why, "COLLX_SISCI_LINE is 96; it has to be a power of two");
}

TEST_F(Alone, CapabilitiesFollowTheOptions)
{
    ASSERT_EQ(open("sisci"), 0);
    EXPECT_EQ(caps.line, 64u);
    EXPECT_TRUE(caps.flags & COLLX_SEG_CHECKED);
    EXPECT_FALSE(caps.flags & COLLX_SEG_ORDERED);
    EXPECT_FALSE(caps.flags & COLLX_SEG_ONE_CHECK);
    ops->close(net);
    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_LINE", "128"}, {"COLLX_SISCI_ONE_CHECK", "on"}}), 0);
    EXPECT_EQ(caps.line, 128u);
    EXPECT_TRUE(caps.flags & COLLX_SEG_ONE_CHECK);
    ops->close(net);
}

/* The next number is taken by somebody else. */
TEST_F(Alone, TriesOtherSegmentNumbers)
{
    collx_export *second = nullptr;
    collx_seg_address next = {};

    ASSERT_EQ(open("sisci", {{"COLLX_TEST_SISCI_NODE", "12"}}), 0);
    ASSERT_EQ(make(64), 0) << why;
    EXPECT_EQ(address.word[1], 12u);
    std::string taken =
        folder.path + "/segment-12-" + std::to_string(static_cast<uint32_t>(address.word[2]) + 1);
    close(::open(taken.c_str(), O_CREAT | O_WRONLY, 0600));
    ASSERT_EQ(ops->make(net, 64, &second, &local, &next, why, sizeof why), 0) << why;
    EXPECT_EQ(static_cast<uint32_t>(next.word[2]), static_cast<uint32_t>(address.word[2]) + 2);
    ops->unmake(second);
    ops->unmake(own);
    ops->close(net);
}

TEST_F(Alone, NodeNumberIsWhatIsSaid)
{
    ASSERT_EQ(open("sisci", {{"COLLX_SISCI_NODE", "77"}}), 0);
    ASSERT_EQ(make(64), 0);
    EXPECT_EQ(address.word[1], 77u);
    ops->unmake(own);
    ops->close(net);
}

TEST_F(Alone, AddressOfAnotherDriverOrSize)
{
    collx_remote *remote = nullptr;

    for (const char *driver : {"shm", "sisci"}) {
        ASSERT_EQ(open(driver), 0) << why;
        ASSERT_EQ(make(8192), 0) << why;
        collx_seg_address other = address;
        other.word[0]++;
        EXPECT_EQ(connect(other, 8192, &remote), -EINVAL);
        EXPECT_EQ(remote, nullptr);
        EXPECT_LT(connect(address, 4096, &remote), 0) << driver;
        EXPECT_EQ(remote, nullptr);
        ops->unmake(own);
        ops->close(net);
    }
}

int idled;

TEST_F(Alone, PeerNeverExports)
{
    collx_remote *remote = nullptr;
    auto idle = [](void *) { idled++; };

    ASSERT_EQ(open("sisci"), 0) << why;
    ASSERT_EQ(make(64), 0) << why;
    ops->unmake(own);
    EXPECT_EQ(connect(address, 64, &remote), -EAGAIN);
    uint64_t start = collx_clock_ns();
    EXPECT_EQ(
        collx_seg_connect(ops, net, &address, 64, &remote, 30, idle, nullptr, why, sizeof why),
        -ETIMEDOUT);
    EXPECT_GE(collx_clock_ns() - start, 30000000u) << "it gave up early";
    EXPECT_GT(idled, 0);
    EXPECT_EQ(remote, nullptr);
    EXPECT_TRUE(has(why, "no such segment (0x4000090c); dis_diag")) << why;
    ops->close(net);
}

TEST_F(Alone, SharedMemoryIsGone)
{
    collx_remote *remote = nullptr;

    ASSERT_EQ(open("shm"), 0);
    ASSERT_EQ(make(64), 0);
    collx_seg_address stale = address;
    stale.word[3]++;
    EXPECT_EQ(connect(stale, 64, &remote), -ESTALE) << "somebody else's memory";
    stale = address;
    stale.word[1]++;
    EXPECT_EQ(connect(stale, 64, &remote), -EHOSTUNREACH);
    EXPECT_TRUE(has(why, "its owner is on another node")) << why;
    ops->unmake(own);
    EXPECT_EQ(connect(address, 64, &remote), -ENOENT);
    EXPECT_TRUE(has(why, "it is gone, or its owner is")) << why;
    EXPECT_EQ(remote, nullptr);
    ops->close(net);
}

/* Who cleans up, or opens files in our place, is not disturbed, and a forked child keeps nothing.
 */
TEST_F(Alone, SharedMemoryThatIsSettledHasNoDescriptor)
{
    collx_shm_address at;
    collx_remote *remote, *late;

    ASSERT_EQ(open("shm"), 0);
    ASSERT_EQ(make(1000), 0) << why;
    memcpy(&at, &address.word[2], sizeof at);
    ASSERT_EQ(connect(address, 1000, &remote), 0) << why;
    ops->settle(own);
    EXPECT_NE(connect(address, 1000, &late), 0);
    EXPECT_TRUE(has(why, "it is gone")) << why;

    const int other = fcntl(STDERR_FILENO, F_DUPFD, at.fd);
    EXPECT_EQ(other, at.fd) << "the number is free again";
    ops->store(remote, 124, 7);
    EXPECT_EQ(collx_seg_read(local, 124), 7u);
    ops->disconnect(remote);
    ops->unmake(own);
    ops->close(net);
    EXPECT_EQ(close(other), 0) << "it was not ours to close";
}

TEST_F(Alone, TooMuchMemory)
{
    ASSERT_EQ(open("shm"), 0);
    EXPECT_LT(make(1ull << 60), 0);
    EXPECT_TRUE(has(why, "cannot share 1152921504606846976 bytes of memory: ")) << why;
    EXPECT_EQ(own, nullptr);
    ops->close(net);
}

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

/* The program itself uses SISCI: we do not end that. */
TEST_F(Alone, LibraryOfTheProgramStaysInitialized)
{
    unsigned error = 0, node = 0;

    set({{"COLLX_TEST_SISCI_NODE", "16"}});
    void *library = dlopen(COLLX_TEST_SISCI, RTLD_NOW);
    ASSERT_NE(library, nullptr);
    ASSERT_EQ(open("sisci", {{"COLLX_TEST_SISCI_NODE", "16"}}), 0) << why;
    ops->close(net);
    auto *ask = reinterpret_cast<void (*)(unsigned, unsigned *, unsigned, unsigned *)>(
        dlsym(library, "_SISCI_PUBLIC_FUNC_MT_SCIGetLocalNodeId"));
    ask(0, &node, 0, &error);
    EXPECT_EQ(error, 0u);
    EXPECT_EQ(node, 16u);
    reinterpret_cast<void (*)()>(dlsym(library, "_SISCI_PUBLIC_FUNC_MT_SCITerminate"))();
    dlclose(library);
}

TEST(SisciErrors, BecomeErrno)
{
    char text[80];

    EXPECT_EQ(collx_sisci_errno(0), 0);
    EXPECT_EQ(collx_sisci_errno(0x40000909), -ENODEV);
    EXPECT_EQ(collx_sisci_errno(0x4000090a), -EAGAIN);
    EXPECT_EQ(collx_sisci_errno(0x4000090c), -EAGAIN);
    EXPECT_EQ(collx_sisci_errno(0x40000918), -EEXIST);
    EXPECT_EQ(collx_sisci_errno(0x40000999), -EIO);
    EXPECT_STREQ(collx_sisci_text(0x40000999, text, sizeof text), "an error of SISCI (0x40000999)");
}

} // namespace
