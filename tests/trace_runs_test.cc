// Traces of one run after another, in one folder.
#include "tests/trace_session.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace
{

// When all sessions have ended MPI may begin again.
TEST(Trace, GoesOnWhereMpiBeginsAgain)
{
    TraceFolder folder;
    constexpr uint32_t times = 3, events = 10000; // more than a window
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  collx_recorder.reopen(); // it is not closed
                  for (uint32_t time = 0; time < times; time++) {
                      uint32_t comm = trace_comm(time, 0, 1, "world");
                      for (uint32_t i = 0; i < events; i++)
                          barrier_now(comm, i);
                      collx_recorder.close();
                      Trace trace = open_trace(folder.file(0));
                      EXPECT_EQ(problem_of(trace), "");
                      EXPECT_EQ(trace->events, events * (time + 1));
                      EXPECT_EQ(in_process([&] {
                                    collx_recorder.reopen();
                                    EXPECT_EQ(trace_event(COLLX_BCAST, comm, 0, 1, 2), UINT64_MAX);
                                }),
                                0);
                      collx_recorder.reopen();
                      EXPECT_NE(problem_of(open_trace(folder.file(0))), "");
                  }
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    EXPECT_EQ(problem_of(trace), "");
    EXPECT_EQ(trace->invalid, 0u);
    EXPECT_EQ(count_events(trace.get()), times * events);
}

TEST(Trace, LimitHoldsWhereMpiBeginsAgain)
{
    TraceFolder folder;
    constexpr uint64_t limit = COLLX_TRACE_HEADER + 100 * COLLX_TRACE_RECORD;
    EXPECT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  setup.limit = limit;
                  open_or_die(setup);
                  uint32_t comm = trace_comm(1, 0, 1, "");
                  for (int time = 0; time < 3; time++) {
                      for (uint32_t i = 0; i < 60; i++)
                          barrier_now(comm, i);
                      collx_recorder.close();
                      collx_recorder.reopen();
                  }
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    EXPECT_EQ(trace->header.stop, (uint32_t)COLLX_TRACE_LIMIT);
    EXPECT_GT(trace->header.dropped, 0u);
    EXPECT_EQ(trace->events + trace->header.dropped, 180u);
    EXPECT_LE(std::filesystem::file_size(folder.file(0)), limit);
}

TEST(Trace, SessionsHaveNoRank)
{
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, -1, 0));
                  collx_recorder.close();
              }),
              0);
    int found = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path)) {
        EXPECT_EQ(entry.path().filename().string().rfind("pid-", 0), 0u) << entry.path();
        EXPECT_TRUE(open_trace(entry.path().string()));
        found++;
    }
    EXPECT_EQ(found, 1);
}

// Where the run began before there was a trace, the clocks are those of its beginning.
TEST(Trace, BeginsWhereTheRunDid)
{
    const uint64_t second = 1000000000;
    TraceFolder folder;
    collx_trace_setup setup = trace_setup(folder, 0, 1);
    struct timespec now;
    /* The clock began with the machine, which may have done so a minute ago. */
    setup.start_ns = collx_clock_ns() / 2;
    const uint64_t before = collx_clock_ns() - setup.start_ns;
    clock_gettime(CLOCK_REALTIME, &now);
    ASSERT_EQ(in_process([&] {
                  open_or_die(setup);
                  collx_recorder.close();
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->header.start_ns, setup.start_ns);
    EXPECT_NEAR((double)((int64_t)((uint64_t)now.tv_sec * second - before) -
                         (int64_t)trace->header.start_realtime_ns),
                0, (double)before / 2);
}

TEST(Trace, EarlierRunIsReplacedARunningOneIsNot)
{
    TraceFolder folder;
    for (uint64_t job = 1; job <= 2; job++)
        ASSERT_EQ(in_process([&] {
                      collx_trace_setup setup = trace_setup(folder, 0, 1);
                      setup.job = job;
                      open_or_die(setup);
                      collx_recorder.close();
                  }),
                  0);
    EXPECT_EQ(open_trace(folder.file(0))->header.job, 2u);
    ASSERT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  for (setup.job = 5; setup.job <= 6; setup.job++) /* by one process number */
                      open_or_die(setup);                          /* that ends as if killed */
              }),
              0);
    EXPECT_EQ(open_trace(folder.file(0))->header.job, 6u);

    ASSERT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  setup.job = 3;
                  open_or_die(setup);
                  EXPECT_EQ(in_process([&] {
                                setup.job = 4;
                                open_or_die(setup);
                                collx_recorder.close();
                            }),
                            0);
                  collx_recorder.close();
              }),
              0);
    EXPECT_EQ(open_trace(folder.file(0))->header.job, 3u);
    size_t files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path)) {
        files++;
        EXPECT_NE(entry.path().filename().string()[0], '.');
    }
    EXPECT_EQ(files, 2u);
}

// Jobs that begin at the same moment, in a new folder or where an earlier one has left its trace.
TEST(Trace, JobsThatBeginAtOnceReplaceNoneOfEachOther)
{
    enum { JOBS = 8, ROUNDS = 40 };

    for (int round = 0; round < ROUNDS; round++) {
        TraceFolder folder;
        int begin[2], begun[2];
        pid_t jobs[JOBS];
        char byte;
        std::filesystem::create_directory(folder.path);
        if (round % 2) {
            ASSERT_EQ(in_process([&] {
                          open_or_die(trace_setup(folder, 0, 1));
                          collx_recorder.close();
                      }),
                      0);
        }
        ASSERT_EQ(pipe(begin) + pipe(begun), 0);
        for (int job = 0; job < JOBS; job++) {
            jobs[job] = fork();
            if (jobs[job])
                continue;
            collx_trace_setup setup = trace_setup(folder, 0, 1);
            setup.job = 1000u + (unsigned)job;
            close(begin[1]);
            if (!read(begin[0], &byte, 1)) // all at once
                open_or_die(setup);
            close(begun[1]);
            pause();
        }
        close(begin[0]);
        close(begin[1]);
        close(begun[1]);
        EXPECT_EQ(read(begun[0], &byte, 1), 0); // until all have
        close(begun[0]);
        std::set<uint64_t> found;
        for (const auto &entry : std::filesystem::directory_iterator(folder.path)) {
            EXPECT_NE(entry.path().filename().string()[0], '.');
            found.insert(open_trace(entry.path())->header.job);
        }
        for (pid_t job : jobs) {
            kill(job, SIGKILL);
            waitpid(job, nullptr, 0);
        }
        ASSERT_EQ(found.size(), (size_t)JOBS) << "round " << round;
        ASSERT_TRUE(std::filesystem::exists(folder.file(0)));
    }
}

// In a folder of several users, who write files that nobody else may read.
TEST(Trace, WhatMayNotBeReadIsNotReplaced)
{
    TraceFolder folder;
    std::filesystem::create_directory(folder.path);
    for (const std::string &each : {folder.root, folder.path})
        std::filesystem::permissions(each, std::filesystem::perms::all);
    std::ofstream(folder.file(0)) << "another user's";
    ASSERT_EQ(chmod(folder.file(0).c_str(), 0), 0);
    ASSERT_EQ(in_process([&] {
                  ASSERT_EQ(geteuid() ? 0 : seteuid(65534), 0); // root may read all
                  open_or_die(trace_setup(folder, 0, 1));
                  collx_recorder.close();
              }),
              0);
    EXPECT_EQ(std::filesystem::file_size(folder.file(0)), strlen("another user's"));
    size_t traces = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
        traces += entry.path() != folder.file(0) && open_trace(entry.path());
    EXPECT_EQ(traces, 1u);
}

// What is no trace, and cannot be removed, stays where it is.
TEST(Trace, FolderOfTheSameName)
{
    TraceFolder folder;
    std::filesystem::create_directories(folder.file(0) + "/something");
    EXPECT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  char why[512] = "";
                  EXPECT_EQ(collx_recorder.open(&setup, why, sizeof why), -EISDIR);
                  EXPECT_NE(strstr(why, "rank-000000.collx"), nullptr) << why;
              }),
              0);
    EXPECT_TRUE(std::filesystem::exists(folder.file(0) + "/something"));
}

// Opening it would be to wait until somebody writes to it.
TEST(Trace, PipeOfTheSameName)
{
    TraceFolder folder;
    std::filesystem::create_directory(folder.path);
    ASSERT_EQ(mkfifo(folder.file(0).c_str(), 0666), 0);
    EXPECT_EQ(in_process([&] {
                  alarm(10);
                  open_or_die(trace_setup(folder, 0, 1));
                  collx_recorder.close();
              }),
              0);
    EXPECT_TRUE(open_trace(folder.file(0)));
}

} // namespace
