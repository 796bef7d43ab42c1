// The reader of traces: files that are foreign, cut or damaged.
#include "tests/trace_session.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <sys/syscall.h>

namespace
{

// What happens before a header is copied; and when records have been, until it says that it is
// done.
std::function<void()> before_header;
std::function<bool(char *records, ssize_t bytes)> after_copy;

} // namespace

// In place of the C library's, for the reader.
ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    if (at == 0 && before_header)
        before_header();
    const ssize_t got = syscall(SYS_pread64, fd, to, bytes, at);

    if (at >= COLLX_TRACE_HEADER && after_copy && after_copy(static_cast<char *>(to), got))
        after_copy = nullptr;
    return got;
}

// What compilers make of that which look at the lengths of buffers unasked, such as Ubuntu's.
extern "C" ssize_t checked_pread(int fd, void *to, size_t bytes, off_t at,
                                 size_t room) __asm__("__pread64_chk");
ssize_t checked_pread(int fd, void *to, size_t bytes, off_t at, size_t room)
{
    EXPECT_LE(bytes, room);
    return pread(fd, to, bytes, at);
}

namespace
{

std::string slurp(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

void spit(const std::string &path, const std::string &bytes)
{
    unlink(path.c_str()); // to overwrite a file may mean to wait for the disk
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), (std::streamsize)bytes.size());
}

// A small trace with everything in it.
std::string sample(const TraceFolder &folder)
{
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 2));
                  uint32_t comm = trace_comm(1, 0, 2, "MPI_COMM_WORLD");
                  uint32_t site = collx_recorder.site(__builtin_return_address(0));
                  for (uint32_t i = 0; i < 20; i++) {
                      uint64_t now = collx_clock_ns();
                      uint64_t event = trace_event(COLLX_ALLREDUCE, comm, i, now, now, 8, site,
                                                   i % 2 ? COLLX_BLOCKING : COLLX_NONBLOCKING);
                      if (i % 2 == 0)
                          collx_recorder.complete(event, now + 1);
                  }
                  collx_recorder.close();
              }),
              0);
    return slurp(folder.file(0));
}

// An event is within the run that it is of.
TEST(TraceReader, EventsOfAnotherTimeAreNotBelieved)
{
    const auto events = [](uint64_t begin_ns, uint64_t end_ns, uint64_t run_end_ns) {
        TraceFolder folder;
        collx_trace_header header;
        EXPECT_EQ(in_process([&] {
                      open_or_die(trace_setup(folder, 0, 2));
                      trace_event(COLLX_BARRIER, trace_comm(1, 0, 2, ""), 0, begin_ns, end_ns);
                      collx_recorder.close();
                  }),
                  0);
        std::string bytes = slurp(folder.file(0));
        memcpy(&header, bytes.data(), sizeof header);
        header.start_ns = 1000;
        header.end_ns = run_end_ns;
        memcpy(bytes.data(), &header, sizeof header);
        spit(folder.file(0), bytes);
        Trace trace = open_trace(folder.file(0));
        EXPECT_EQ(trace->events + trace->invalid, 1u);
        return trace->events;
    };

    EXPECT_EQ(events(1000, 2000, 2000), 1u);
    EXPECT_EQ(events(999, 2000, 2000), 0u);
    EXPECT_EQ(events(1000, 2001, 2000), 0u);
    EXPECT_EQ(events(2000, 1999, 2000), 0u);
    EXPECT_EQ(events(1000, 2001, 0), 1u) << "the run has not ended";
}

TEST(TraceReader, RanksAreOfTheirCommunicator)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 2));
                  trace_comm(1, 1, 2, "");
                  trace_comm(2, 2, 2, "");
                  collx_recorder.close();
              }),
              0);
    EXPECT_EQ(open_trace(folder.file(0))->invalid, 1u);
}

// A run's end is known from the first look; events after it would take more than all of its time.
TEST(TraceReader, WhatIsWrittenMeanwhileIsLeftAlone)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 2));
                  uint32_t comm = trace_comm(1, 0, 2, "");
                  barrier_now(comm, 0);
                  Trace trace = open_trace(folder.file(0));
                  barrier_now(comm, 1);
                  EXPECT_EQ(trace->events, 1u);
                  EXPECT_EQ(problem_of(trace), "has not ended yet");
                  unsigned events = 0;
                  while (collx_trace_next(trace.get(), nullptr))
                      events++;
                  EXPECT_EQ(events, 1u);
              }),
              0);
}

// A record whose words are written after they have been copied, and its tag before that is.
TEST(TraceReader, RecordThatIsBeingWrittenIsNotDamage)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 2));
                  uint32_t comm = trace_comm(1, 0, 2, "");
                  barrier_now(comm, 0);
                  barrier_now(comm, 1);
                  after_copy = [](char *records, ssize_t bytes) {
                      ssize_t at = bytes - COLLX_TRACE_RECORD;
                      while (at >= 0 && !records[at + COLLX_TRACE_RECORD - 1])
                          at -= COLLX_TRACE_RECORD;
                      if (at >= 0)
                          memset(records + at, 0, COLLX_TRACE_RECORD - 8);
                      return at >= 0;
                  };
                  Trace trace = open_trace(folder.file(0));
                  EXPECT_FALSE(after_copy);
                  EXPECT_EQ(trace->invalid, 0u);
                  EXPECT_EQ(trace->events, 2u);
                  EXPECT_EQ(problem_of(trace), "has not ended yet");
              }),
              0);
}

// More than is read at a time, of communicators that have come where it has been read.
TEST(TraceReader, WhatIsWrittenWhileItIsReadIsNotDamage)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 2));
                  barrier_now(trace_comm(1, 0, 2, ""), 0);
                  after_copy = [](char *, ssize_t) {
                      uint32_t comm = trace_comm(2, 0, 2, "");
                      for (uint32_t i = 0; i < 3 * COLLX_TRACE_PIECE; i++)
                          barrier_now(comm, i);
                      return true;
                  };
                  Trace trace = open_trace(folder.file(0));
                  EXPECT_FALSE(after_copy);
                  EXPECT_EQ(trace->invalid, 0u);
                  EXPECT_EQ(problem_of(trace), "has not ended yet");
                  const uint64_t events = trace->events;
                  EXPECT_GE(events, 1u);
                  uint64_t next = 0;
                  while (collx_trace_next(trace.get(), nullptr))
                      next++;
                  EXPECT_EQ(next, events);
              }),
              0);
}

// It grows and ends between two looks of the reader.
TEST(TraceReader, RunThatEndsMeanwhileIsWhole)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  enum { MORE = 10000 };
                  open_or_die(trace_setup(folder, 0, 2));
                  uint32_t comm = trace_comm(1, 0, 2, "");
                  before_header = [&] {
                      for (uint32_t i = 0; i < MORE; i++)
                          barrier_now(comm, i);
                      collx_recorder.close();
                  };
                  Trace trace = open_trace(folder.file(0));
                  EXPECT_EQ(trace->events, MORE);
                  EXPECT_EQ(problem_of(trace), "");
              }),
              0);
}

TEST(TraceReader, ForeignAndTruncatedFilesAreNamed)
{
    TraceFolder folder;
    const std::string good = sample(folder), path = folder.root + "/rank-000003.collx";
    const struct {
        std::string bytes;
        const char *says;
    } cases[] = {
        {"", "it is empty"},
        {"hello", "not a collx trace"},
        {std::string(10000, '\0'), "not a collx trace"},
        {good.substr(0, 100), "truncated"},
        {good.substr(0, 8) + std::string("\5\0\0\0", 4) + good.substr(12), "format version 5"},
        {good.substr(0, 12) + std::string("\1\2\3\4", 4) + good.substr(16), "byte order"},
        {good.substr(0, 20) + std::string("\0\0\0\0", 4) + good.substr(24), "header is damaged"},
        {good.substr(0, 32) + "\377\377\377\177" + good.substr(36), "header is damaged"},
        {good.substr(0, 36) + std::string("\0\0\0\0", 4) + good.substr(40), "header is damaged"},
    };
    for (const auto &each : cases) {
        spit(path, each.bytes);
        std::string why;
        EXPECT_FALSE(open_trace(path, &why));
        EXPECT_EQ(why.rfind("rank-000003.collx: ", 0), 0u) << why;
        EXPECT_NE(why.find(each.says), std::string::npos) << why;
    }
    std::string why;
    EXPECT_FALSE(open_trace(folder.root, &why));
    EXPECT_NE(why.find("not a collx trace"), std::string::npos) << why;
    EXPECT_FALSE(open_trace(folder.root + "/none.collx", &why));
    EXPECT_NE(why.find(strerror(ENOENT)), std::string::npos) << why;
}

/* Version 1 had nothing where version 2 has what a communicator shares, and that nothing where
 * version 3 tells how many records there are. */
TEST(TraceReader, ReadsOlderVersions)
{
    TraceFolder folder;
    const std::string good = sample(folder), path = folder.root + "/rank-000003.collx";

    for (const char version : {1, 2}) {
        std::string bytes = good, why;
        bytes[8] = version;
        bytes.replace(offsetof(collx_trace_header, records), 8, 8, '\0');
        spit(path, bytes);
        Trace trace = open_trace(path, &why);
        ASSERT_TRUE(trace) << why;
        EXPECT_GT(trace->events, 0u);
        EXPECT_EQ(trace->comms[1].shared, 0u);
        EXPECT_EQ(problem_of(trace), "");
        bytes.pop_back();
        spit(path, bytes);
        EXPECT_EQ(problem_of(open_trace(path)), "truncated: of its records the last 1 are missing");
    }
}

// What a program calls its communicators, and what it is called with, goes to terminals.
TEST(TraceReader, NothingControlsATerminal)
{
    TraceFolder folder;
    const std::string long_name(39, 'x'); // so that a character lies in two records
    ASSERT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 1));
                  trace_comm(1, 0, 1, "\x1b[31m\x7f\xc2\x9b\xc2\xa0\xe2\x89\xa4");
                  trace_comm(2, 0, 1, (long_name + "\xc2\x9b").c_str());
                  collx_recorder.close();
              }),
              0);
    std::string bytes = slurp(folder.file(0));
    bytes.replace(offsetof(collx_trace_header, command), 6, std::string("a\nb\xc2\x9b\0", 6));
    spit(folder.file(0), bytes);
    Trace trace = open_trace(folder.file(0));
    ASSERT_TRUE(trace);
    EXPECT_STREQ(trace->comms[1].name, "?[31m???\xc2\xa0\xe2\x89\xa4");
    EXPECT_EQ(trace->comms[2].name, long_name + "??");
    EXPECT_STREQ(trace->header.command, "a b  ");
}

TEST(TraceReader, CutAnywhereShowsWhatIsThere)
{
    TraceFolder folder;
    const std::string good = sample(folder), path = folder.root + "/cut.collx";
    uint64_t before = 0;
    for (size_t size = COLLX_TRACE_HEADER; size <= good.size();
         size = size < good.size() ? std::min(size + 7, good.size()) : size + 1) {
        spit(path, good.substr(0, size));
        Trace trace = open_trace(path);
        ASSERT_TRUE(trace);
        EXPECT_EQ(trace->invalid, 0u);
        const bool whole = size == good.size();
        EXPECT_EQ(trace->lost == 0, whole) << size;
        EXPECT_EQ(problem_of(trace).find("truncated") == std::string::npos, whole) << size;
        EXPECT_EQ(collx_trace_seen_ns(trace.get()), whole           ? trace->header.end_ns
                                                    : trace->events ? trace->last_ns
                                                                    : trace->header.start_ns);
        EXPECT_EQ(count_events(trace.get()), trace->events);
        EXPECT_GE(trace->events, before);
        before = trace->events;
    }
    EXPECT_GT(before, 18u);
}

TEST(TraceReader, AHoleInAFileIsDamage)
{
    TraceFolder folder;
    std::string bytes = sample(folder);
    ASSERT_EQ(problem_of(open_trace(folder.file(0))), "");
    bytes.replace(bytes.size() - 3 * COLLX_TRACE_RECORD, 2 * COLLX_TRACE_RECORD,
                  2 * COLLX_TRACE_RECORD, '\0');
    spit(folder.file(0), bytes);
    EXPECT_EQ(problem_of(open_trace(folder.file(0))),
              "damaged: 2 records make no sense and were passed over");
}

TEST(TraceReader, FileThatIsCutWhileItIsRead)
{
    TraceFolder folder;
    sample(folder);
    Trace trace = open_trace(folder.file(0));
    ASSERT_EQ(truncate(folder.file(0).c_str(), 10), 0);
    EXPECT_LE(count_events(trace.get()), 20u);
}

// Whatever the bytes, the reader ends, keeps to its arrays and says when something is wrong.
TEST(TraceReader, AnyBytes)
{
    TraceFolder folder;
    const std::string good = sample(folder), path = folder.root + "/bad.collx";
    std::mt19937 random(20); // the same every time
    for (int round = 0; round < 4000; round++) {
        std::string bytes = good;
        for (unsigned i = 0, n = 1 + random() % 8; i < n; i++) {
            size_t at = random() % 4
                            ? COLLX_TRACE_HEADER + random() % (bytes.size() - COLLX_TRACE_HEADER)
                            : random() % COLLX_TRACE_HEADER;
            bytes[at] = random() % 3 ? (char)random() : (char)(bytes[at] ^ (1 << random() % 8));
        }
        if (round % 5 == 0)
            bytes.resize(random() % bytes.size());
        spit(path, bytes);
        std::string why;
        Trace trace = open_trace(path, &why);
        if (!trace) {
            ASSERT_EQ(why.rfind("bad.collx: ", 0), 0u) << why;
            continue;
        }
        problem_of(trace);
        while (const collx_trace_record *record = collx_trace_next(trace.get(), nullptr)) {
            if (collx_trace_tag(record) == COLLX_TRACE_EVENT) {
                ASSERT_LT(record->event.comm, trace->comms_count);
                ASSERT_LT(record->event.site, trace->sites_count);
                ASSERT_LT(trace->sites[record->event.site].module, trace->modules_count);
                ASSERT_LT(record->event_small.route, trace->routes_count);
                ASSERT_LT(record->event_small.kind, COLLX_KINDS);
                ASSERT_LT(record->event_small.form, COLLX_FORMS);
                ASSERT_LT(record->event_small.op, COLLX_OP_COUNT);
                ASSERT_LT(record->event_small.reason, COLLX_REASON_COUNT);
                ASSERT_LE(record->event.bytes, (uint64_t)INT64_MAX);
                ASSERT_LE(record->event.begin_ns, record->event.end_ns);
            } else {
                collx_trace_record event;
                if (collx_trace_event_of(trace.get(), record, &event)) {
                    ASSERT_LT(event.event.comm, trace->comms_count);
                    ASSERT_LE(event.event.begin_ns, record->completion.when_ns);
                    ASSERT_LE(record->completion.when_ns, (uint64_t)INT64_MAX);
                }
            }
        }
    }
}

} // namespace
