/* Traces with known numbers, and what collx-report says of them. */
#ifndef COLLX_TESTS_REPORT_SESSION_H
#define COLLX_TESTS_REPORT_SESSION_H

#include "tests/trace_session.h"

#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

struct Result {
    int status;
    std::string out, err;
};

inline std::string slurp(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

inline Result report(const TraceFolder &folder, const std::string &arguments)
{
    const std::string out = folder.root + "/out", err = folder.root + "/err";
    int status = system(
        (std::string(getenv("COLLX_REPORT")) + " " + arguments + " >" + out + " 2>" + err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -status, slurp(out), slurp(err)};
}

using Line = std::map<std::string, std::string>;

inline std::vector<std::string> split(const std::string &line)
{
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (char c : line) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            cells.emplace_back();
        else if (c != '\r')
            cells.back() += c;
    }
    return cells;
}

inline std::vector<Line> csv(const std::string &text)
{
    std::istringstream in(text);
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> titles = split(line);
    std::vector<Line> lines;
    while (std::getline(in, line)) {
        const std::vector<std::string> cells = split(line);
        EXPECT_EQ(cells.size(), titles.size()) << line;
        Line named;
        for (size_t i = 0; i < titles.size() && i < cells.size(); i++)
            named[titles[i]] = cells[i];
        lines.push_back(named);
    }
    return lines;
}

const uint64_t run_ns = 1000000000, start_ns = 5000000000, start_realtime = 1700000000000000000;

// Times of a trace as if the run had been at a known time: the tests' numbers are exact.
inline void set_times(const std::string &path, uint64_t end, const char *boot_id = nullptr,
                      int64_t realtime_shift = 0)
{
    collx_trace_header header;
    int fd = open(path.c_str(), O_RDWR);
    ASSERT_GE(fd, 0) << path;
    ASSERT_EQ(pread(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
    header.start_ns = start_ns;
    header.end_ns = end;
    header.start_realtime_ns = start_realtime + (uint64_t)realtime_shift;
    if (boot_id)
        snprintf(header.boot_id, sizeof header.boot_id, "%s", boot_id);
    ASSERT_EQ(pwrite(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
    close(fd);
}

inline void record(const TraceFolder &folder, int rank, int size, const std::function<void()> &body,
                   uint64_t job = 0xc0117)
{
    ASSERT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, rank, size);
                  char why[512] = "";
                  setup.job = job;
                  ASSERT_EQ(collx_recorder.open(&setup, why, sizeof why), 0) << why;
                  body();
                  collx_recorder.close();
              }),
              0);
    set_times(folder.file(rank), start_ns + run_ns);
}

// The first `traced` of them.
inline void record_ranks(const TraceFolder &folder, int traced, int size,
                         const std::function<void(int rank)> &body)
{
    for (int rank = 0; rank < traced; rank++)
        record(folder, rank, size, [&] { body(rank); });
}

// Two ranks, ten allreduces of 1000 us on rank 0, which waits 600 us for rank 1, where they take
// 400 us; one barrier for which rank 1 waits 50 us; and a nonblocking broadcast on a part.
inline void record_pair(const TraceFolder &folder)
{
    record_ranks(folder, 2, 2, [](int rank) {
        uint32_t world = trace_comm(1, rank, 2, "MPI_COMM_WORLD");
        uint64_t t = start_ns;
        uint32_t sequence = 0;
        for (int i = 0; i < 10; i++) {
            if (i == 3) /* it has been set up */
                world = trace_comm(1, rank, 2, "MPI_COMM_WORLD", 300000);
            t += 10000000;
            trace_event(COLLX_ALLREDUCE, world, sequence++, t + (rank ? 600000 : 0), t + 1000000);
        }
        t += 10000000;
        trace_event(COLLX_BARRIER, world, sequence++, t + (rank ? 0 : 50000), t + 100000, 0, 0,
                    COLLX_BLOCKING, 0, COLLX_REASON_WARMUP);
        uint32_t part = trace_comm(2u + (unsigned)rank, 0, 1, "");
        t += 10000000;
        uint64_t event = trace_event(COLLX_BCAST, part, 0, t, t + 2000, 3 << 20, 0,
                                     COLLX_NONBLOCKING, 0, COLLX_REASON_NOT_ROUTED);
        collx_recorder.complete(event, t + 70000);
    });
}

#endif
