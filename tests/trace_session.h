// Records traces from a test: every rank is a forked process, as it would be a process of MPI.
#pragma once

extern "C" {
#include "base/clock.h"
#include "trace/reader.h"
#include "trace/recorder.h"

extern const struct collx_recorder collx_recorder;
}

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

// A folder for traces that goes with the test.
class TraceFolder
{
  public:
    TraceFolder()
    {
        char name[] = "/tmp/collx-trace-XXXXXX";
        root = mkdtemp(name);
        path = root + "/traces";
    }
    ~TraceFolder()
    {
        std::filesystem::remove_all(root);
    }
    std::string file(int rank) const
    {
        char name[32];
        snprintf(name, sizeof name, "/rank-%06d.collx", rank);
        return path + name;
    }

    std::string root, path; // path: not made yet
};

inline const char *const trace_routes[] = {"pmpi", "shm", nullptr};

inline collx_trace_setup trace_setup(const TraceFolder &folder, int rank, int size)
{
    collx_trace_setup setup = {};
    setup.dir = folder.path.c_str();
    setup.job = 0xc0117;
    setup.call_sites = 1;
    setup.world_rank = rank;
    setup.world_size = size;
    setup.mpi = "Test MPI 1.0";
    setup.routes = trace_routes;
    return setup;
}

inline uint32_t trace_comm(uint64_t global, int rank, int size, const char *name,
                           uint64_t shared = 0)
{
    collx_trace_comm comm = {};
    comm.global = global;
    comm.rank = rank;
    comm.size = size;
    comm.nodes = 1;
    comm.name = name;
    comm.shared = shared;
    return collx_recorder.comm(&comm);
}

inline uint64_t trace_event(collx_kind kind, uint32_t comm, uint32_t sequence, uint64_t begin,
                            uint64_t end, uint64_t bytes = 8, uint32_t site = 0,
                            collx_form form = COLLX_BLOCKING, uint8_t route = 1,
                            collx_reason reason = COLLX_REASON_POLICY)
{
    collx_trace_event event = {};
    event.begin_ns = begin;
    event.end_ns = end;
    event.bytes = bytes;
    event.comm = comm;
    event.sequence = sequence;
    event.site = site;
    event.root = -1;
    event.kind = (uint8_t)kind;
    event.form = (uint8_t)form;
    event.op = kind == COLLX_ALLREDUCE ? (uint8_t)COLLX_OP_SUM : (uint8_t)COLLX_OP_NONE;
    event.route = route;
    event.reason = (uint8_t)reason;
    return collx_recorder.event(&event);
}

inline void barrier_now(uint32_t comm, uint32_t sequence, uint32_t site = 0)
{
    uint64_t now = collx_clock_ns();
    trace_event(COLLX_BARRIER, comm, sequence, now, now, 0, site);
}

// Runs in a process of its own and returns how that ended; 0 is well.
inline int in_process(const std::function<void()> &body)
{
    fflush(nullptr);
    pid_t child = fork();
    if (!child) {
        body();
        fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

struct Closer {
    void operator()(collx_trace *trace) const
    {
        collx_trace_close(trace);
    }
};
using Trace = std::unique_ptr<collx_trace, Closer>;

inline Trace open_trace(const std::string &path, std::string *why = nullptr)
{
    collx_trace *trace;
    char text[512] = "";
    int error = collx_trace_open(&trace, path.c_str(), text, sizeof text);
    EXPECT_EQ(error != 0, trace == nullptr);
    if (why)
        *why = text;
    else
        EXPECT_EQ(error, 0) << text;
    return Trace(trace);
}

inline std::string problem_of(const Trace &trace)
{
    char text[256] = "";
    return collx_trace_problem(trace.get(), text, sizeof text) ? text : "";
}

inline uint64_t count_events(collx_trace *trace)
{
    uint64_t count = 0;
    while (const collx_trace_record *record = collx_trace_next(trace, nullptr))
        count += collx_trace_tag(record) == COLLX_TRACE_EVENT;
    return count;
}

inline void open_or_die(const collx_trace_setup &setup)
{
    char why[512] = "";
    ASSERT_EQ(collx_recorder.open(&setup, why, sizeof why), 0) << why;
}
