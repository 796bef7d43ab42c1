/* Segments when something is missing. */
#include "tests/alone.h"

extern "C" {
#include "base/clock.h"
#include "base/error.h"
#include "hw/shm.h"
#include "hw/sisci.h"
}

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

/* What tests/constructor.c runs while it is loaded. */
static std::function<void()> now_in_constructor;
extern "C" __attribute__((visibility("default"))) void in_constructor()
{
    now_in_constructor();
}

namespace
{

TEST(SegmentDrivers, AreFoundByName)
{
    for (const char *name : {"shm", "sisci"})
        EXPECT_NE(collx_seg_find(name), nullptr);
    for (auto *driver = collx_seg_drivers; *driver; driver++)
        EXPECT_EQ(collx_seg_find((*driver)->name), *driver);
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

/* The loader's lock is held there, for which a thread waits that loads the library, too. */
TEST_F(Alone, LibraryOfAConstructor)
{
    auto acquire = [] {
        const collx_sisci *sisci = nullptr;
        char why[512] = "";
        EXPECT_EQ(collx_sisci_acquire(COLLX_TEST_SISCI, &sisci, why, sizeof why), 0) << why;
        EXPECT_NE(sisci, nullptr);
    };
    std::thread other;

    set({});
    std::vector<std::string> before = open_things();
    now_in_constructor = [&] {
        other = std::thread(acquire);
        usleep(200000);
        acquire();
    };
    alarm(30);
    void *library = dlopen(COLLX_TEST_CONSTRUCTOR, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    other.join();
    alarm(0);
    dlclose(library);
    collx_sisci_release();
    collx_sisci_release();
    EXPECT_EQ(dlopen(COLLX_TEST_SISCI, RTLD_NOW | RTLD_NOLOAD), nullptr);
    EXPECT_EQ(open_things(), before);
}

/* The stand-in dies of a second beginning, or of one end too many. */
TEST_F(Alone, LibraryOfSeveralThreads)
{
    set({});
    std::vector<std::string> before = open_things();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int round = 0; round < 300; round++) {
                const collx_sisci *sisci = nullptr;
                char why[512] = "";
                ASSERT_EQ(collx_sisci_acquire(COLLX_TEST_SISCI, &sisci, why, sizeof why), 0) << why;
                unsigned node = 0, error = 0;
                sisci->GetLocalNodeId(0, &node, 0, &error);
                EXPECT_EQ(error, 0u);
                collx_sisci_release();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(dlopen(COLLX_TEST_SISCI, RTLD_NOW | RTLD_NOLOAD), nullptr);
    EXPECT_EQ(open_things(), before);
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

    for (auto *each = collx_seg_drivers; *each; each++) {
        const char *driver = (*each)->name;
        ASSERT_EQ(open(driver), 0) << driver << ": " << why;
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
