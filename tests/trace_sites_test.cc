// Where in the program a call was made, as a trace says.
#include "tests/trace_session.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <fstream>
#include <sched.h>
#include <string>
#include <thread>

extern "C" uint32_t passing_on_site(uint32_t (*site)(const void *)); // tests/passing_on.c

// What tests/constructor.c runs while it is loaded.
static std::function<void()> now_in_constructor;
static const void *constructor; // a place in it
extern "C" __attribute__((visibility("default"))) void in_constructor()
{
    constructor = __builtin_return_address(0);
    now_in_constructor();
}

namespace
{

__attribute__((noinline)) uint32_t site_here()
{
    uint32_t site = collx_recorder.site(__builtin_return_address(0));
    asm volatile("");
    return site;
}

// A library that only passes MPI calls on is not where the program made them.
TEST(Trace, CallSitesAreInTheProgram)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  uint32_t sites[4];
                  for (volatile int i = 0; i < 2; i = i + 1) // one place, not unrolled
                      sites[i] = site_here();
                  EXPECT_EQ(sites[0], sites[1]);
                  sites[2] = passing_on_site(collx_recorder.site);
                  sites[3] = passing_on_site(collx_recorder.site);
                  EXPECT_NE(sites[2], sites[0]);
                  EXPECT_NE(sites[2], sites[3]); // two places here, one place there
                  uint32_t comm = trace_comm(1, 0, 1, "");
                  for (uint32_t i = 0; i < 4; i++)
                      barrier_now(comm, i, sites[i]);
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    while (const collx_trace_record *record = collx_trace_next(trace.get(), nullptr)) {
        const collx_trace_read_site &site = trace->sites[record->event.site];
        EXPECT_NE(site.offset, 0u);
        EXPECT_NE(strstr(trace->modules[site.module].path, "trace-test"), nullptr)
            << trace->modules[site.module].path;
    }
}

// The table of sites has an end; who comes later is told to be nowhere, at once.
TEST(Trace, MoreCallSitesThanThereIsRoomFor)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  const char *text = reinterpret_cast<const char *>(&site_here);
                  const uint32_t first = collx_recorder.site(text);
                  uint32_t last = first, many = 0;
                  alarm(20);
                  for (; last && many < 40000; many++)
                      last = collx_recorder.site(text - many % 2 - many);
                  EXPECT_GT(many, 1000u);
                  EXPECT_EQ(collx_recorder.site(text), first);
                  collx_recorder.close();
              }),
              0);
}

// The loader's lock is held there, for which a thread waits that has come from a new place.  That
// place is one for which no stack is walked: under ThreadSanitizer a thread that has walked one
// crashes where it ends, since libunwind's cache of it goes after what the sanitizer knew of it.
TEST(Trace, SitesOfAConstructor)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  std::thread other;
                  now_in_constructor = [&] {
                      std::atomic<bool> begun{false};
                      other = std::thread([&begun] {
                          begun = true;
                          EXPECT_NE(collx_recorder.site(
                                        reinterpret_cast<const char *>(&std::terminate) + 1),
                                    0u);
                      });
                      while (!begun)
                          sched_yield();
                      usleep(200000);
                      EXPECT_NE(collx_recorder.site(__builtin_return_address(0)), 0u);
                  };
                  alarm(30);
                  EXPECT_NE(dlopen(COLLX_TEST_CONSTRUCTOR, RTLD_NOW), nullptr) << dlerror();
                  other.join();
                  collx_recorder.close();
              }),
              0);
}

// A library may lie where another one has been: the same address is a place in another one then.
TEST(Trace, SitesOfLibrariesThatFollowEachOther)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  uint32_t comm = trace_comm(1, 0, 1, ""), calls = 0;
                  now_in_constructor = [&] {
                      barrier_now(comm, calls++, collx_recorder.site(constructor));
                  };
                  for (const char *name : {"/one.so", "/two.so", "/three.so"}) {
                      const std::string copy = folder.root + name;
                      std::ofstream(copy) << std::ifstream(COLLX_TEST_CONSTRUCTOR).rdbuf();
                      void *library = dlopen(copy.c_str(), RTLD_NOW);
                      ASSERT_NE(library, nullptr) << dlerror();
                      dlclose(library);
                  }
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    std::string seen;
    while (const collx_trace_record *record = collx_trace_next(trace.get(), nullptr)) {
        const collx_trace_read_site &site = trace->sites[record->event.site];
        seen += strrchr(trace->modules[site.module].path, '/');
    }
    EXPECT_EQ(seen, "/one.so/two.so/three.so");
}

TEST(Trace, SitesCanBeLeftOut)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  setup.call_sites = 0;
                  open_or_die(setup);
                  EXPECT_EQ(collx_recorder.site(__builtin_return_address(0)), 0u);
              }),
              0);
}

} // namespace
