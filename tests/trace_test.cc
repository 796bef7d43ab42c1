// The trace: what is recorded can be read, whatever happened to the process or the file.
#include "tests/trace_session.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace
{

void record_one_event()
{
    barrier_now(trace_comm(1, 0, 1, ""), 0);
    collx_recorder.close();
}

void expect_one_event(const TraceFolder &folder)
{
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->events, 1u);
    EXPECT_NE(trace->header.end_ns, 0u);
    EXPECT_EQ(problem_of(trace), "");
}

// What a process writes to stderr.
int in_process_with_stderr(const std::function<void()> &body, std::string *said)
{
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    int status = in_process([&] {
        dup2(ends[1], STDERR_FILENO);
        body();
    });
    close(ends[1]);
    char text[4096];
    ssize_t got;
    while ((got = read(ends[0], text, sizeof text)) > 0)
        said->append(text, (size_t)got);
    close(ends[0]);
    return status;
}

TEST(Trace, EverythingComesBack)
{
    TraceFolder folder;
    const std::string name(100, 'x'); // longer than a record
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 3, 8));
                  uint64_t now = collx_clock_ns();
                  uint32_t comm = trace_comm(77, 1, 4, name.c_str(), 3ull << 40);
                  uint32_t site = collx_recorder.site(__builtin_return_address(0));
                  EXPECT_NE(site, 0u);
                  uint64_t event = trace_event(COLLX_BCAST, comm, 5, now, now + 1000, 4096, site,
                                               COLLX_NONBLOCKING, 1, COLLX_REASON_WARMUP);
                  collx_recorder.complete(event, now + 5000);
                  usleep(1000);
                  collx_recorder.close();
                  EXPECT_EQ(trace_event(COLLX_BCAST, comm, 6, now, now), UINT64_MAX);
              }),
              0);

    Trace trace = open_trace(folder.file(3));
    ASSERT_TRUE(trace);
    EXPECT_EQ(problem_of(trace), "");
    EXPECT_EQ(trace->header.world_rank, 3);
    EXPECT_EQ(trace->header.world_size, 8);
    EXPECT_STREQ(trace->header.mpi, "Test MPI 1.0");
    EXPECT_NE(strstr(trace->header.command, "trace-test"), nullptr);
    EXPECT_EQ(trace->events, 1u);
    ASSERT_EQ(trace->routes_count, 2u);
    EXPECT_STREQ(trace->routes[1], "shm");

    uint64_t number;
    const collx_trace_record *record = collx_trace_next(trace.get(), &number);
    ASSERT_TRUE(record);
    ASSERT_EQ(collx_trace_tag(record), (unsigned)COLLX_TRACE_EVENT);
    collx_trace_record event = *record;
    EXPECT_EQ(event.event.end_ns - event.event.begin_ns, 1000u);
    EXPECT_EQ(event.event.bytes, 4096u);
    EXPECT_EQ(event.event.sequence, 5u);
    EXPECT_EQ(event.event.root, -1);
    EXPECT_EQ(event.event_small.kind, COLLX_BCAST);
    EXPECT_EQ(event.event_small.form, COLLX_NONBLOCKING);
    EXPECT_EQ(event.event_small.reason, COLLX_REASON_WARMUP);
    const collx_trace_read_comm &comm = trace->comms[event.event.comm];
    EXPECT_EQ(comm.global, 77u);
    EXPECT_EQ(comm.size, 4);
    EXPECT_EQ(comm.name, name);
    EXPECT_EQ(comm.shared, 3ull << 40);
    const collx_trace_read_site &site = trace->sites[event.event.site];
    EXPECT_NE(strstr(trace->modules[site.module].path, "trace-test"), nullptr);
    EXPECT_NE(site.offset, 0u);

    record = collx_trace_next(trace.get(), nullptr);
    ASSERT_TRUE(record);
    ASSERT_EQ(collx_trace_tag(record), (unsigned)COLLX_TRACE_COMPLETION);
    EXPECT_EQ(record->completion.event, number);
    collx_trace_record of;
    ASSERT_TRUE(collx_trace_event_of(trace.get(), record, &of));
    EXPECT_EQ(memcmp(&of, &event, sizeof of), 0);
    EXPECT_EQ(record->completion.when_ns - event.event.begin_ns, 5000u);
    EXPECT_EQ(collx_trace_next(trace.get(), nullptr), nullptr);
}

TEST(Trace, NothingIsLostByAKill)
{
    TraceFolder folder;
    auto *done = static_cast<std::atomic<uint64_t> *>(mmap(nullptr, sizeof(std::atomic<uint64_t>),
                                                           PROT_READ | PROT_WRITE,
                                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_t child = fork();
    if (!child) {
        open_or_die(trace_setup(folder, 0, 1));
        uint32_t comm = trace_comm(1, 0, 1, "MPI_COMM_WORLD");
        for (uint32_t i = 0;; i++) {
            uint64_t now = collx_clock_ns();
            trace_event(COLLX_BARRIER, comm, i, now, now + 1, i);
            done->store(i + 1);
        }
    }
    while (done->load() < 20000) // several windows
        usleep(1000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);

    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_NE(problem_of(trace).find("ended without MPI_Finalize"), std::string::npos);
    EXPECT_EQ(trace->invalid, 0u);
    // The one that was being written may be there or not.
    EXPECT_GE(trace->events, done->load());
    EXPECT_LE(trace->events, done->load() + 1);
    uint64_t i = 0;
    while (const collx_trace_record *record = collx_trace_next(trace.get(), nullptr))
        ASSERT_EQ(record->event.bytes, i++);
    munmap(done, sizeof *done);
}

// However long it goes on, a process has its header and one window mapped.
TEST(Trace, OneWindowAtATimeIsMapped)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  uint32_t comm = trace_comm(1, 0, 1, "");
                  for (uint32_t i = 0; i < 20000; i++)
                      barrier_now(comm, i);
                  std::ifstream maps("/proc/self/maps");
                  int mapped = 0;
                  for (std::string line; std::getline(maps, line);)
                      mapped += line.find(folder.path) != std::string::npos;
                  EXPECT_LE(mapped, 2);
                  EXPECT_GE(mapped, 1);
                  collx_recorder.close();
              }),
              0);
}

// A process that was killed before its file had a name, and whose number is another one's since.
TEST(Trace, HalfAFileOfAProcessThatWasKilledIsReplaced)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  char host[65] = "";
                  gethostname(host, sizeof host - 1);
                  std::filesystem::create_directory(folder.path);
                  std::ofstream(folder.path + "/.rank-000000.collx." + host + "." +
                                std::to_string(getpid()))
                      << std::string(10000, 'x');
                  open_or_die(trace_setup(folder, 0, 1));
                  record_one_event();
              }),
              0);
    expect_one_event(folder);
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
        EXPECT_EQ(entry.path(), folder.file(0));
}

TEST(Trace, CompletionOfAnEventLongGone)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  uint32_t comm = trace_comm(1, 0, 1, "");
                  uint64_t now = collx_clock_ns();
                  uint64_t first =
                      trace_event(COLLX_BARRIER, comm, 0, now, now, 0, 0, COLLX_NONBLOCKING);
                  for (uint32_t i = 1; i < 30000; i++)
                      trace_event(COLLX_BCAST, comm, i, now, now);
                  collx_recorder.complete(first, now + 7);
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    while (const collx_trace_record *record = collx_trace_next(trace.get(), nullptr)) {
        if (collx_trace_tag(record) != COLLX_TRACE_COMPLETION)
            continue;
        collx_trace_record event;
        ASSERT_TRUE(collx_trace_event_of(trace.get(), record, &event));
        EXPECT_EQ(event.event_small.kind, COLLX_BARRIER);
        EXPECT_EQ(record->completion.when_ns - event.event.begin_ns, 7u);
        return;
    }
    FAIL() << "no completion";
}

TEST(Trace, ThreadsShareAFile)
{
    TraceFolder folder;
    const int threads = 4, calls = 10000;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  std::vector<std::thread> all;
                  for (int t = 0; t < threads; t++)
                      all.emplace_back([t] {
                          uint32_t comm = trace_comm((uint64_t)t + 10, 0, 1, "");
                          for (uint32_t i = 0; i < calls; i++) {
                              uint64_t now = collx_clock_ns();
                              trace_event(COLLX_BCAST, comm, i, now, now, (uint64_t)t,
                                          collx_recorder.site(__builtin_return_address(0)));
                          }
                      });
                  for (std::thread &thread : all)
                      thread.join();
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->invalid, 0u);
    EXPECT_EQ(trace->events, (uint64_t)threads * calls);
    std::vector<uint32_t> next(threads);
    while (const collx_trace_record *record = collx_trace_next(trace.get(), nullptr)) {
        ASSERT_LT(record->event.bytes, (uint64_t)threads);
        ASSERT_EQ(trace->comms[record->event.comm].global, record->event.bytes + 10);
        ASSERT_EQ(record->event.sequence, next[record->event.bytes]++);
    }
}

TEST(Trace, LimitIsKept)
{
    TraceFolder folder;
    const uint64_t limit = COLLX_TRACE_HEADER + 2 * COLLX_TRACE_WINDOW + 5000;
    std::string said;
    ASSERT_EQ(in_process_with_stderr(
                  [&] {
                      collx_trace_setup setup = trace_setup(folder, 0, 1);
                      setup.limit = limit;
                      open_or_die(setup);
                      uint32_t comm = trace_comm(1, 0, 1, "");
                      for (uint32_t i = 0; i < 10000; i++)
                          barrier_now(comm, i);
                      collx_recorder.close();
                  },
                  &said),
              0);
    EXPECT_NE(said.find("has reached the limit"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_LE(std::filesystem::file_size(folder.file(0)), limit);
    EXPECT_GT(std::filesystem::file_size(folder.file(0)), limit - COLLX_TRACE_RECORD);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_GT(trace->events, 8000u);
    EXPECT_EQ(trace->events + trace->header.dropped, 10000u);
    EXPECT_NE(problem_of(trace).find("the limit was reached"), std::string::npos);
}

// Also where it is not a whole window that does not fit, but its last byte.
TEST(Trace, LimitIsKeptToTheByte)
{
    TraceFolder folder;
    const uint64_t limit = COLLX_TRACE_HEADER + COLLX_TRACE_WINDOW - 1;
    ASSERT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  setup.limit = limit;
                  open_or_die(setup);
                  EXPECT_LE(std::filesystem::file_size(folder.file(0)), limit);
              }),
              0);
}

TEST(Trace, LimitThatNothingFitsIn)
{
    TraceFolder folder;
    collx_trace_setup setup = trace_setup(folder, 0, 1);
    char why[512];
    setup.limit = 1000;
    EXPECT_EQ(collx_recorder.open(&setup, why, sizeof why), -EINVAL);
    EXPECT_NE(strstr(why, "COLLX_TRACE_LIMIT"), nullptr);
}

// Neither SIGXFSZ nor anything else may reach the program.
TEST(Trace, FileSizeLimitOfTheShell)
{
    TraceFolder folder;
    std::string said;
    ASSERT_EQ(in_process_with_stderr(
                  [&] {
                      struct rlimit limit = {500000, 500000};
                      setrlimit(RLIMIT_FSIZE, &limit);
                      open_or_die(trace_setup(folder, 0, 1));
                      uint32_t comm = trace_comm(1, 0, 1, "");
                      for (uint32_t i = 0; i < 20000; i++)
                          barrier_now(comm, i);
                      collx_recorder.close();
                  },
                  &said),
              0);
    EXPECT_NE(said.find(strerror(EFBIG)), std::string::npos) << said;
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_GT(trace->events, 4000u);
    EXPECT_EQ(trace->events + trace->header.dropped, 20000u);
    EXPECT_NE(problem_of(trace).find(strerror(EFBIG)), std::string::npos);
}

// A program that closes all descriptors, as daemons do, gets files of its own under their numbers.
// Neither is made longer, nor cut where the trace ends.
class TraceOfDaemon : public testing::TestWithParam<uint32_t>
{
};

TEST_P(TraceOfDaemon, LeavesFilesOfTheProgramAlone)
{
    TraceFolder folder;
    const std::string own = folder.root + "/own";
    std::string said;
    ASSERT_EQ(in_process_with_stderr(
                  [&] {
                      open_or_die(trace_setup(folder, 0, 1));
                      uint32_t comm = trace_comm(1, 0, 1, "");
                      for (int fd = 3; fd < 100; fd++)
                          close(fd);
                      for (int fd = 3; fd < 100; fd++)
                          if (open(own.c_str(), O_RDWR | O_CREAT, 0666) != fd)
                              _exit(3);
                      if (write(99, "own", 3) != 3)
                          _exit(4);
                      for (uint32_t i = 0; i < GetParam(); i++)
                          barrier_now(comm, i);
                      collx_recorder.close();
                      for (int fd = 3; fd < 100; fd++)
                          if (fcntl(fd, F_GETFD) < 0)
                              _exit(5);
                  },
                  &said),
              0);
    EXPECT_EQ(std::filesystem::file_size(own), 3u);
    EXPECT_EQ(said.find(strerror(EBADF)) != std::string::npos, GetParam() > 4000) << said;
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_GT(trace->events, std::min(GetParam(), 4001u) - 1);
}

INSTANTIATE_TEST_SUITE_P(All, TraceOfDaemon, testing::Values(10, 10000));

// Nor is the trace where a program writes that has closed its output.
TEST(Trace, HasNoNumberOfAnInputOrOutput)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                      close(fd);
                  open_or_die(trace_setup(folder, 0, 1));
                  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                      if (write(fd, "lost", 4) >= 0)
                          _exit(3);
                  record_one_event();
              }),
              0);
    expect_one_event(folder);
}

TEST(Trace, FullDisk)
{
    TraceFolder folder;
    std::string said;
    std::filesystem::create_directory(folder.path);
    int status = in_process_with_stderr(
        [&] {
            // A mount of our own, which goes with the process.
            if (unshare(CLONE_NEWNS) || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
                mount("none", folder.path.c_str(), "tmpfs", 0, "size=600k"))
                _exit(77);
            open_or_die(trace_setup(folder, 0, 1));
            uint32_t comm = trace_comm(1, 0, 1, "");
            for (uint32_t i = 0; i < 20000; i++)
                barrier_now(comm, i);
            collx_recorder.close();
            Trace trace = open_trace(folder.file(0));
            ASSERT_TRUE(trace);
            EXPECT_GT(trace->events, 8000u);
            EXPECT_EQ(trace->events + trace->header.dropped, 20000u);

            std::ofstream(folder.path + "/rest") << std::string(700000, 'x');
            collx_trace_setup setup = trace_setup(folder, 1, 2);
            char why[512] = "";
            EXPECT_EQ(collx_recorder.open(&setup, why, sizeof why), -ENOSPC);
            EXPECT_NE(strstr(why, strerror(ENOSPC)), nullptr) << why;
            EXPECT_FALSE(std::filesystem::exists(folder.file(1)));
        },
        &said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        GTEST_SKIP() << "may not mount a small file system to fill";
    ASSERT_EQ(status, 0) << said;
    EXPECT_NE(said.find(strerror(ENOSPC)), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(Trace, FolderThatCannotBe)
{
    TraceFolder folder;
    collx_trace_setup setup = trace_setup(folder, 0, 1);
    char why[512];
    const std::string deep = folder.path + "/a/b", file = folder.root + "/file";
    setup.dir = deep.c_str();
    EXPECT_EQ(collx_recorder.open(&setup, why, sizeof why), -ENOENT);
    EXPECT_NE(strstr(why, deep.c_str()), nullptr);
    EXPECT_NE(strstr(why, "COLLX_TRACE"), nullptr);
    std::ofstream(file) << "x";
    setup.dir = file.c_str();
    EXPECT_EQ(collx_recorder.open(&setup, why, sizeof why), -ENOTDIR);
    setup.dir = "/proc";
    EXPECT_LT(collx_recorder.open(&setup, why, sizeof why), 0);
    EXPECT_EQ(trace_event(COLLX_BARRIER, 0, 0, 1, 2), UINT64_MAX);
    EXPECT_EQ(collx_recorder.site(__builtin_return_address(0)), 0u);
    collx_recorder.close();
}

TEST(Trace, ChildrenOfAForkDoNotWrite)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  uint32_t comm = trace_comm(1, 0, 1, "");
                  uint64_t now = collx_clock_ns();
                  EXPECT_EQ(in_process([&] {
                                EXPECT_EQ(trace_event(COLLX_BCAST, comm, 0, now, now), UINT64_MAX);
                                collx_recorder.close();
                            }),
                            0);
                  EXPECT_NE(trace_event(COLLX_BARRIER, comm, 0, now, now), UINT64_MAX);
                  collx_recorder.close();
              }),
              0);
    expect_one_event(folder);
}

TEST(Trace, DoesNotTouchErrno)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  errno = 42;
                  open_or_die(trace_setup(folder, 0, 1));
                  uint32_t comm = trace_comm(1, 0, 1, "x");
                  for (uint32_t i = 0; i < 10000; i++)
                      trace_event(COLLX_BCAST, comm, i, 1, 2, 8,
                                  collx_recorder.site(__builtin_return_address(0)));
                  collx_recorder.close();
                  EXPECT_EQ(errno, 42);
              }),
              0);
}

} // namespace
