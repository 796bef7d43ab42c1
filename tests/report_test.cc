// collx-report on traces with known numbers.
#include "tests/trace_session.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <jansson.h>
#include <map>
#include <random>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <vector>

namespace
{

struct Result {
    int status;
    std::string out, err;
};

std::string slurp(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

Result report(const TraceFolder &folder, const std::string &arguments)
{
    const std::string out = folder.root + "/out", err = folder.root + "/err";
    int status = system(
        (std::string(getenv("COLLX_REPORT")) + " " + arguments + " >" + out + " 2>" + err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -status, slurp(out), slurp(err)};
}

using Line = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string &line)
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

std::vector<Line> csv(const std::string &text)
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
void set_times(const std::string &path, uint64_t end, const char *boot_id = nullptr,
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

void record(const TraceFolder &folder, int rank, int size, const std::function<void()> &body,
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
void record_ranks(const TraceFolder &folder, int traced, int size,
                  const std::function<void(int rank)> &body)
{
    for (int rank = 0; rank < traced; rank++)
        record(folder, rank, size, [&] { body(rank); });
}

// Two ranks, ten allreduces of 1000 us on rank 0, which waits 600 us for rank 1, where they take
// 400 us; one barrier for which rank 1 waits 50 us; and a nonblocking broadcast on a part.
void record_pair(const TraceFolder &folder)
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

TEST(Report, CsvHasTheNumbers)
{
    TraceFolder folder;
    record_pair(folder);
    Result run = report(folder, "summary --format csv " + folder.path);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    std::vector<Line> rows = csv(run.out);
    ASSERT_EQ(rows.size(), 3u) << run.out;

    Line &allreduce = rows[0];
    EXPECT_EQ(allreduce["collective"], "MPI_Allreduce");
    EXPECT_EQ(allreduce["comm"], "MPI_COMM_WORLD");
    EXPECT_EQ(allreduce["comm_size"], "2");
    EXPECT_EQ(allreduce["comm_instances"], "1");
    EXPECT_EQ(allreduce["comm_shared_bytes"], "300000");
    EXPECT_EQ(allreduce["bytes_min"], "1");
    EXPECT_EQ(allreduce["bytes_max"], "8");
    EXPECT_EQ(allreduce["route"], "shm");
    EXPECT_EQ(allreduce["reason"], "policy");
    EXPECT_EQ(allreduce["calls"], "20");
    EXPECT_EQ(allreduce["time_ns"], "14000000");
    EXPECT_EQ(allreduce["run_share"], "0.007");
    EXPECT_EQ(allreduce["min_ns"], "400000");
    EXPECT_EQ(allreduce["max_ns"], "1000000");
    EXPECT_NEAR(std::stod(allreduce["median_ns"]), 400000, 4000);
    EXPECT_NEAR(std::stod(allreduce["p99_ns"]), 1000000, 10000);
    EXPECT_EQ(allreduce["ranks"], "2");
    EXPECT_EQ(allreduce["imbalance"], "1.42857");
    EXPECT_EQ(allreduce["busiest_rank"], "0");
    EXPECT_EQ(allreduce["matched_calls"], "20");
    EXPECT_EQ(allreduce["wait_ns"], "6000000");
    EXPECT_EQ(allreduce["wait_share"], "0.428571");
    EXPECT_EQ(allreduce["last_rank"], "1");
    EXPECT_EQ(allreduce["last_count"], "10");
    EXPECT_EQ(allreduce["last_share"], "1");
    EXPECT_EQ(allreduce["completed_calls"], "0");

    Line &barrier = rows[1];
    EXPECT_EQ(barrier["collective"], "MPI_Barrier");
    EXPECT_EQ(barrier["route"], "pmpi");
    EXPECT_EQ(barrier["reason"], "warm-up");
    EXPECT_EQ(barrier["wait_ns"], "50000");
    EXPECT_EQ(barrier["last_rank"], "0");

    Line &bcast = rows[2]; // two communicators without a name are one line
    EXPECT_EQ(bcast["collective"], "MPI_Ibcast");
    EXPECT_EQ(bcast["comm"], "");
    EXPECT_EQ(bcast["comm_size"], "1");
    EXPECT_EQ(bcast["comm_instances"], "2");
    EXPECT_EQ(bcast["comm_shared_bytes"], "0");
    EXPECT_EQ(bcast["bytes_min"], "2097153");
    EXPECT_EQ(bcast["bytes_max"], "16777216");
    EXPECT_EQ(bcast["matched_calls"], "0");
    EXPECT_EQ(bcast["wait_share"], "");
    EXPECT_EQ(bcast["completed_calls"], "2");
    EXPECT_EQ(bcast["completion_mean_ns"], "70000");
}

TEST(Report, GroupsAndTop)
{
    TraceFolder folder;
    record_pair(folder);
    std::vector<Line> rows = csv(report(folder, "-f csv --by comm " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["comm"], "MPI_COMM_WORLD");
    EXPECT_EQ(rows[0]["collective"], "");
    EXPECT_EQ(rows[0]["calls"], "22");
    EXPECT_EQ(rows[0]["time_ns"], "14150000");
    EXPECT_EQ(rows[0]["last_count"], "10");
    EXPECT_EQ(rows[0]["last_share"], "0.909091");
    EXPECT_EQ(csv(report(folder, "-f csv --top 1 " + folder.path).out).size(), 1u);
    EXPECT_EQ(csv(report(folder, "-f csv --by route,size " + folder.path).out).size(), 3u);
}

TEST(Report, JsonHasTheNumbers)
{
    TraceFolder folder;
    record_pair(folder);
    Result run = report(folder, "--format=json " + folder.path);
    EXPECT_EQ(run.status, 0) << run.err;
    json_error_t error;
    json_t *all = json_loads(run.out.c_str(), 0, &error);
    ASSERT_TRUE(all) << error.text << "\n" << run.out;
    json_t *root = json_object_get(all, "run");
    EXPECT_EQ(json_integer_value(json_object_get(root, "ranks")), 2);
    EXPECT_EQ(json_integer_value(json_object_get(root, "nodes")), 1);
    EXPECT_EQ(json_integer_value(json_object_get(root, "duration_ns")), (json_int_t)run_ns);
    EXPECT_EQ(json_integer_value(json_object_get(root, "calls")), 24);
    EXPECT_EQ(json_integer_value(json_object_get(root, "wait_ns")), 6050000);
    EXPECT_STREQ(json_string_value(json_object_get(root, "mpi")), "Test MPI 1.0");
    EXPECT_STREQ(json_string_value(json_object_get(root, "job")), "00000000000c0117");
    json_t *rank = json_array_get(json_object_get(all, "ranks"), 1);
    EXPECT_EQ(json_integer_value(json_object_get(rank, "rank")), 1);
    EXPECT_EQ(json_integer_value(json_object_get(rank, "last_count")), 10);
    EXPECT_EQ(json_integer_value(json_object_get(rank, "time_ns")), 4102000);
    EXPECT_TRUE(json_is_true(json_object_get(rank, "complete")));
    json_t *rows = json_object_get(all, "rows");
    ASSERT_EQ(json_array_size(rows), 3u);
    json_t *row = json_array_get(rows, 0);
    EXPECT_STREQ(json_string_value(json_object_get(row, "collective")), "MPI_Allreduce");
    EXPECT_EQ(json_integer_value(json_object_get(row, "time_ns")), 14000000);
    EXPECT_EQ(json_integer_value(json_object_get(row, "wait_ns")), 6000000);
    EXPECT_EQ(json_integer_value(json_object_get(row, "comm_shared_bytes")), 300000);
    EXPECT_DOUBLE_EQ(json_real_value(json_object_get(row, "run_share")), 0.007);
    EXPECT_EQ(json_array_size(json_object_get(all, "problems")), 0u);
    json_decref(all);
}

TEST(Report, TextSaysWhatToThinkOfIt)
{
    TraceFolder folder;
    record_pair(folder);
    Result run = report(folder, folder.path);
    EXPECT_EQ(run.status, 0) << run.err;
    for (const char *part :
         {"2 ranks on 1 node", "Test MPI 1.0", "24 collective calls", "43%", "Allreduce", "≤ 8 B",
          "COMM_WORLD", "pmpi (warm-up)", "1 rank ×2", "Memory that ranks share", "293.0 KiB",
          "of the time in collectives is MPI_Allreduce. 43% of that was waiting for the last rank;",
          "1 was last in 100% of its calls.", "take 0.7% of the run time"})
        EXPECT_NE(run.out.find(part), std::string::npos) << part << " in:\n" << run.out;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
        size_t width = 0;
        for (unsigned char c : line)
            width += (c & 0xc0) != 0x80;
        EXPECT_LE(width, 120u) << line;
    }
}

// Calls of 1000 us, all of it waiting for whom `last` names: of the n-th call of a communicator.
void record_meetings(uint32_t comm, int rank, int calls, uint64_t &t,
                     const std::function<int(int)> &last)
{
    for (int i = 0; i < calls; i++, t += 2000000)
        trace_event(COLLX_ALLREDUCE, comm, (uint32_t)i, t + (rank == last(i) ? 990000 : 0),
                    t + 1000000);
}

// In pairs everybody is last in half of the calls, however many ranks there are, and the same ranks
// may meet in a larger communicator as well.
TEST(Report, NobodyIsBlamedForItsTurn)
{
    TraceFolder folder;
    record_ranks(folder, 8, 8, [](int rank) {
        uint64_t t = start_ns;
        uint32_t world = trace_comm(1, rank, 8, "MPI_COMM_WORLD");
        record_meetings(world, rank, 160, t, [](int i) { return i % 8; });
        uint32_t pair = trace_comm(2u + (unsigned)rank / 2, rank % 2, 2, "");
        if (rank < 2)
            record_meetings(pair, rank, 160, t, [](int i) { return i % 2; });
    });
    EXPECT_EQ(csv(report(folder, "-f csv --by collective " + folder.path).out)[0]["last_count"],
              "100");
    Result run = report(folder, folder.path);
    EXPECT_NE(run.out.find("takes unequal time"), std::string::npos) << run.out;
}

TEST(Report, WhoIsLateMoreOftenIsNamed)
{
    for (int size : {2, 8}) {
        TraceFolder folder;
        record_ranks(folder, 8, 8, [size](int rank) {
            uint64_t t = start_ns;
            uint32_t comm = trace_comm(2u + (unsigned)(rank / size), rank % size, size, "");
            // The first of them each second time, and of two as often as that again.
            record_meetings(comm, rank, 160, t, [rank, size](int i) {
                int first = rank - rank % size;
                return i % 2 || (size == 2 && i % 4) ? first : first + 1 + i / 2 % (size - 1);
            });
        });
        Result run = report(folder, folder.path);
        EXPECT_NE(
            run.out.find(size == 2 ? "rank 0 was last in 75% of" : "rank 0 was last in 50% of"),
            std::string::npos)
            << run.out;
    }
}

// Ranks whose runs are not of the same length, and calls of which it is not known who waited: one
// of the ranks left no trace.
TEST(Report, SharesInWordsAreOfAllTime)
{
    TraceFolder folder;
    record_ranks(folder, 2, 3, [](int rank) {
        uint64_t t = start_ns;
        uint32_t world = trace_comm(1, rank, 3, "MPI_COMM_WORLD");
        uint32_t pair = trace_comm(2, rank, 2, "");
        record_meetings(pair, rank, 1, t, [](int) { return 1; });
        trace_event(COLLX_ALLREDUCE, world, 0, t, t + 9000000);
    });
    set_times(folder.file(1), start_ns + run_ns / 10);
    Result run = report(folder, folder.path);
    for (const char *part : {"; 1.7% of the run time in 4 collective calls, most on rank 1: 9.0%",
                             "\n  5% of the time in collectives was waiting for the last rank",
                             "100% of the time in collectives is MPI_Allreduce. All collectives"})
        EXPECT_NE(run.out.find(part), std::string::npos) << part << " in:\n" << run.out;
}

// Who waits for whom is told of collectives in which each may have to wait for all.
TEST(Report, WaitsAreOfWhatBelongsTogether)
{
    TraceFolder folder;
    record_ranks(folder, 2, 2, [](int rank) {
        uint32_t world = trace_comm(1, rank, 2, "MPI_COMM_WORLD"), sequence = 0;
        uint64_t begin = start_ns + (rank ? 1000 : 0), end = start_ns + 2000;
        trace_event(rank ? COLLX_BARRIER : COLLX_ALLREDUCE, world, sequence++, begin, end);
        trace_event(COLLX_NEIGHBOR_ALLGATHER, world, sequence++, begin, end);
        for (collx_reason reason : {COLLX_REASON_INTERCOMM, COLLX_REASON_BAD_ARGUMENT})
            trace_event(COLLX_BARRIER, world, sequence++, begin, end, 0, 0, COLLX_BLOCKING, 0,
                        reason);
        for (collx_form form : {COLLX_NONBLOCKING, COLLX_PERSISTENT})
            trace_event(COLLX_BARRIER, world, sequence++, begin, end, 0, 0, form, 0,
                        COLLX_REASON_NOT_ROUTED);
        trace_event(COLLX_REDUCE, world, sequence++, begin, end);
    });
    for (Line &row : csv(report(folder, "-f csv " + folder.path).out)) {
        bool all = row["collective"] == "MPI_Reduce";
        EXPECT_EQ(row["matched_calls"], all ? "2" : "0") << row["collective"] << row["reason"];
        EXPECT_EQ(row["wait_ns"], all ? "1000" : "0") << row["collective"] << row["reason"];
    }
}

// Ranks of a node have one clock, whatever time of day each has seen when it began.
TEST(Report, ANodeHasOneClock)
{
    TraceFolder folder;
    record_pair(folder);
    set_times(folder.file(1), start_ns + run_ns, nullptr, 100000);
    std::vector<Line> rows = csv(report(folder, "-f csv --by collective " + folder.path).out);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0]["wait_ns"], "6000000");
}

// Two nodes whose monotonic clocks have nothing to do with each other.
TEST(Report, ClocksOfNodesAreAligned)
{
    TraceFolder folder;
    record_pair(folder);
    // All that rank 1 did was 100 us later by the clock of its node.
    set_times(folder.file(1), start_ns + run_ns, "another boot", 100000);
    Result run = report(folder, "-f csv --by collective " + folder.path);
    std::vector<Line> rows = csv(run.out);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0]["wait_ns"], "7000000");
    run = report(folder, folder.path);
    EXPECT_NE(run.out.find("2 nodes"), std::string::npos);
    EXPECT_NE(run.out.find("only as exact as their clocks agree"), std::string::npos) << run.out;
}

TEST(Report, NobodyWaitsAfterHavingLeft)
{
    TraceFolder folder;
    record_ranks(folder, 2, 2, [](int rank) {
        uint32_t world = trace_comm(1, rank, 2, "MPI_COMM_WORLD");
        uint64_t t = start_ns + (rank ? 900000 : 0); // the root has long gone on
        trace_event(COLLX_BCAST, world, 0, t, t + 1000);
    });
    std::vector<Line> rows = csv(report(folder, "-f csv " + folder.path).out);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]["wait_ns"], "1000");
}

TEST(Report, CallSitesGetNames)
{
    TraceFolder folder;
    record(folder, 0, 1, [] {
        uint32_t world = trace_comm(1, 0, 1, "MPI_COMM_WORLD");
        trace_event(
            COLLX_BARRIER, world, 0, start_ns, start_ns + 10, 0,
            collx_recorder.site(__builtin_extract_return_addr(__builtin_return_address(0))));
        trace_event(COLLX_BARRIER, world, 1, start_ns, start_ns + 5, 0, 0);
    });
    std::vector<Line> rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_NE(rows[0]["function"], "");
    EXPECT_NE(rows[0]["module"].find("report-test"), std::string::npos);
    EXPECT_EQ(rows[0]["offset"].rfind("0x", 0), 0u);
    EXPECT_NE(rows[0]["file"], "");
    EXPECT_GT(std::stoi(rows[0]["line"]), 0);
    EXPECT_EQ(rows[1]["module"], "");

    // Of a program that was built anew since, the names would be wrong: without a number of its
    // build, or with another one.
    std::string bytes = slurp(folder.file(0)), nameless = bytes;
    for (size_t at = COLLX_TRACE_HEADER; at < bytes.size(); at += COLLX_TRACE_RECORD)
        if (nameless[at + 47] == COLLX_TRACE_MODULE)
            nameless[at + 40] = 0;
    std::ofstream(folder.file(0), std::ios::binary) << nameless;
    rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["function"], "");
    for (size_t at = COLLX_TRACE_HEADER; at < bytes.size(); at += COLLX_TRACE_RECORD)
        if (bytes[at + 47] == COLLX_TRACE_MODULE)
            bytes[at] = (char)(bytes[at] + 1);
    std::ofstream(folder.file(0), std::ios::binary) << bytes;
    rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["function"], "");
    EXPECT_NE(rows[0]["module"].find("report-test"), std::string::npos);
    EXPECT_NE(report(folder, "--by site " + folder.path).out.find("report-test+0x"),
              std::string::npos);

    // What was a program may be a pipe by now, which nobody writes to.
    const std::string pipe = folder.root + "/pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    uint32_t path = 0;
    bool named = false;
    for (size_t at = COLLX_TRACE_HEADER; at < bytes.size(); at += COLLX_TRACE_RECORD)
        if (bytes[at + 47] == COLLX_TRACE_MODULE)
            memcpy(&path, &bytes[at + 36], sizeof path);
    for (size_t at = COLLX_TRACE_HEADER; at < bytes.size(); at += COLLX_TRACE_RECORD)
        if (bytes[at + 47] == COLLX_TRACE_STRING && !memcmp(&bytes[at + 40], &path, sizeof path)) {
            bytes.replace(at, pipe.size(), pipe);
            bytes[at + 44] = (char)(named ? 0 : pipe.size());
            named = true;
        }
    std::ofstream(folder.file(0), std::ios::binary) << bytes;
    rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["module"], pipe);
    EXPECT_EQ(rows[0]["function"], "");
}

// A call that does not come back may be the last that a function does: its return address is that
// of what lies behind it.
asm(".pushsection .text\n"
    ".globl ends_in_a_call, lies_behind\n"
    ".hidden ends_in_a_call, lies_behind\n"
    ".type ends_in_a_call, %function\n"
    "ends_in_a_call: .fill 16, 1, 0\n"
    ".size ends_in_a_call, 16\n"
    ".type lies_behind, %function\n"
    "lies_behind: .fill 16, 1, 0\n"
    ".size lies_behind, 16\n"
    ".popsection");
extern "C" const char lies_behind[];

TEST(Report, ACallIsBeforeWhereItReturns)
{
    TraceFolder folder;
    record(folder, 0, 1, [] {
        trace_event(COLLX_BARRIER, trace_comm(1, 0, 1, ""), 0, start_ns, start_ns + 10, 0,
                    collx_recorder.site(lies_behind));
    });
    std::vector<Line> rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]["function"], "ends_in_a_call");
}

// JSON is UTF-8; what is not has each byte that is none replaced.
TEST(Report, NamesThatAreNoUtf8)
{
    TraceFolder folder;
    record(folder, 0, 1, [] {
        uint32_t comm = trace_comm(1, 0, 1, "a\x80\xff");
        trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + 10);
    });
    Result run = report(folder, "-f json " + folder.path);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.out.find("\"a??\""), std::string::npos) << run.out;
}

// Those of four bytes, in a cell of a table.
TEST(Report, LongCharactersAreNotCut)
{
    for (size_t before : {0, 1, 2, 3}) {
        TraceFolder folder;
        record(folder, 0, 1, [before] {
            std::string name(before, 'x');
            for (int i = 0; i < 80; i++)
                name += "😀";
            trace_event(COLLX_BARRIER, trace_comm(1, 0, 1, name.c_str()), 0, start_ns,
                        start_ns + 10);
        });
        report(folder, folder.path);
        EXPECT_EQ(system(("iconv -f UTF-8 -t UTF-16 >/dev/null " + folder.root + "/out").c_str()),
                  0)
            << slurp(folder.root + "/out");
    }
}

// Wherever a text is cut, what is left of it is UTF-8: its last character is whole.
TEST(Report, TextsAreCutBetweenCharacters)
{
    for (size_t before : {0, 1, 2}) {
        TraceFolder folder;
        record(folder, 0, 1, [before] {
            std::string name(before, 'x');
            for (int i = 0; i < 80; i++)
                name += "€";
            uint32_t comm = trace_comm(1, 0, 1, name.c_str());
            trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + 10);
        });
        collx_trace_header header;
        std::fstream file(folder.file(0));
        file.read((char *)&header, sizeof header);
        for (size_t i = 0; i < sizeof header.command; i++)
            header.command[i] = i < before ? 'x' : "€"[(i - before) % 3];
        header.command[sizeof header.command - 1] = 0;
        file.seekp(0).write((const char *)&header, sizeof header);
        file.close();
        Result run = report(folder, folder.path);
        EXPECT_EQ(run.out.find('\n') / 3, 33 - (before == 2)) << run.out;
        EXPECT_EQ(system(("iconv -f UTF-8 -t UTF-16 >/dev/null " + folder.root + "/out").c_str()),
                  0)
            << run.out;
        EXPECT_EQ(report(folder, "-f json " + folder.path).out.find('?'), std::string::npos);
    }
}

TEST(Report, KilledJob)
{
    TraceFolder folder;
    record_pair(folder);
    set_times(folder.file(1), 0);
    Result run = report(folder, folder.path);
    EXPECT_EQ(run.status, 0);
    EXPECT_NE(run.out.find("rank-000001.collx: ended without MPI_Finalize"), std::string::npos)
        << run.out;
    set_times(folder.file(0), 0);
    run = report(folder, folder.path);
    EXPECT_NE(run.out.find("rank-000000.collx to rank-000001.collx: ended without MPI_Finalize"),
              std::string::npos)
        << run.out;
}

TEST(Report, MixedUpFiles)
{
    TraceFolder folder;
    record_pair(folder);
    std::filesystem::copy_file(folder.file(1), folder.path + "/rank-000009.collx");
    std::ofstream(folder.path + "/foreign.collx") << "something else";
    std::ofstream(folder.path + "/a\x1b[2J\nb.collx") << "something else";
    std::ofstream(folder.path + "/notes.txt") << "not looked at";
    record(
        folder, 4, 8, [] {}, 0xbad);
    set_times(folder.file(4), start_ns + run_ns, nullptr, -1000000000); // earlier
    Result run = report(folder, "-f csv " + folder.path);
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(csv(run.out).size(), 3u);
    EXPECT_EQ(csv(run.out)[0]["time_ns"], "14000000");
    for (const char *part :
         {"rank-000009.collx: of rank 1, like rank-000001.collx, and not counted",
          "foreign.collx: not a collx trace", "a?[2J?b.collx: not a collx trace",
          "rank-000004.collx: of another job, begun 2023-11-1",
          "--job 0000000000000bad shows that one"})
        EXPECT_NE(run.err.find(part), std::string::npos) << part << " in:\n" << run.err;

    run = report(folder, folder.path + " --job bad");
    EXPECT_NE(run.out.find("1 rank on"), std::string::npos) << run.out << run.err;
    EXPECT_NE(run.out.find("No collective was called"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("no trace of ranks 0–3, 5–7"), std::string::npos) << run.out;
}

// What the user has started is shown, not what that has.
TEST(Report, JobThatSpawns)
{
    TraceFolder folder;
    record_pair(folder);
    record(
        folder, 4, 8, [] {}, 0xbad);
    struct {
        uint64_t end;
        int64_t later; /* the other one begins */
        const char *shown;
    } const cases[] = {
        {start_ns + run_ns, 900000000, "  2 ranks on"},
        {start_ns + run_ns, 1100000000, "  1 rank on"},
        /* It was killed, and its calls say how long it ran at least. */
        {0, 50000000, "  2 ranks on"},
        {0, 900000000, "  1 rank on"},
    };
    for (const auto &one : cases) {
        set_times(folder.file(0), one.end);
        set_times(folder.file(1), one.end);
        set_times(folder.file(4), start_ns + run_ns, nullptr, one.later);
        Result run = report(folder, folder.path);
        EXPECT_NE(run.out.find(one.shown), std::string::npos) << one.later << '\n' << run.out;
    }
}

TEST(Report, NothingToShow)
{
    TraceFolder folder;
    Result run = report(folder, folder.path);
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find("No such file or directory; give the folder"), std::string::npos)
        << run.err;
    std::filesystem::create_directory(folder.path);
    run = report(folder, folder.path);
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find("no traces in it"), std::string::npos) << run.err;
    std::ofstream(folder.path + "/rank-000000.collx") << "x";
    run = report(folder, folder.path);
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find("rank-000000.collx: not a collx trace"), std::string::npos) << run.err;
}

TEST(Report, Arguments)
{
    TraceFolder folder;
    Result run = report(folder, "--help");
    EXPECT_EQ(run.status, 0);
    for (const char *option : {"--format", "--by", "--top", "--job"})
        EXPECT_NE(run.out.find(option), std::string::npos) << option;
    EXPECT_EQ(report(folder, "--version").out, "collx-report " COLLX_RELEASE "\n");
    const char *const wrong[] = {"",
                                 "summary",
                                 "frob dir",
                                 "--format xml dir",
                                 "--by rank dir",
                                 "--top x dir",
                                 "--top ' -3' dir",
                                 "--top -1 dir",
                                 "--job ' -3' dir",
                                 "--job -3 dir",
                                 "--job 12345678123456781 dir",
                                 "--by collective, dir"};
    for (const char *arguments : wrong) {
        run = report(folder, arguments);
        EXPECT_EQ(run.status, 64) << arguments;
        EXPECT_NE(run.err.find("Try `collx-report --help'"), std::string::npos) << run.err;
    }
    run = report(folder, "/dev/null");
    EXPECT_EQ(run.status, 1);
    record_pair(folder);
    EXPECT_EQ(report(folder, folder.file(0)).status, 0); // one file will do
}

// The largest number that fits says how many ranks there were, and one process has none.
TEST(Report, LargestWorld)
{
    TraceFolder folder;
    record(folder, 0, INT32_MAX, [] {});
    std::filesystem::copy_file(folder.file(0), folder.path + "/pid-x-1.collx");
    const int32_t none = -1;
    int fd = open((folder.path + "/pid-x-1.collx").c_str(), O_RDWR);
    ASSERT_EQ(pwrite(fd, &none, sizeof none, offsetof(collx_trace_header, world_rank)), 4);
    close(fd);
    Result run = report(folder, folder.path);
    EXPECT_EQ(run.status, 0);
    EXPECT_NE(run.out.find("no trace of ranks 1–2147483646: "), std::string::npos) << run.out;
}

// A file a rank is open at a time; where that is not allowed, what to do is said, and once.
TEST(Report, MoreRanksThanFilesMayBeOpen)
{
    TraceFolder folder;
    const int ranks = 40;
    record_ranks(folder, ranks, ranks, [](int) {});
    ASSERT_EQ(in_process([&] {
                  struct rlimit few = {20, 20};
                  setrlimit(RLIMIT_NOFILE, &few);
                  Result run = report(folder, "-f csv " + folder.path);
                  EXPECT_EQ(run.status, 2);
                  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
                  EXPECT_NE(run.err.find("ulimit -n"), std::string::npos) << run.err;
              }),
              0);
}

// When all ranks' files may be open, but none besides, there is one for the program by then.
TEST(Report, CallSitesGetNamesWithFewFiles)
{
    TraceFolder folder;
    const int ranks = 20;
    record_ranks(folder, ranks, ranks, [](int rank) {
        trace_event(
            COLLX_BARRIER, trace_comm(1, rank, ranks, ""), 0, start_ns, start_ns + 10, 0,
            collx_recorder.site(__builtin_extract_return_addr(__builtin_return_address(0))));
    });
    int status;
    rlim_t files = ranks;
    do
        status = in_process([&] {
            struct rlimit few = {files, files};
            setrlimit(RLIMIT_NOFILE, &few);
            _exit(report(folder, "-f csv " + folder.path).status);
        });
    while (status && ++files < 3 * ranks);
    ASSERT_EQ(status, 0) << slurp(folder.root + "/err");
    EXPECT_NE(csv(slurp(folder.root + "/out"))[0]["function"], "");
}

// Whatever is in the files, there is a report or an error, and never a crash.
TEST(Report, AnyBytes)
{
    TraceFolder folder;
    record_pair(folder);
    const std::string good = slurp(folder.file(0));
    std::mt19937 random(7);
    for (int round = 0; round < 60; round++) {
        std::string bytes = good;
        for (int i = 0; i < 6; i++) {
            size_t at = COLLX_TRACE_HEADER + random() % (bytes.size() - COLLX_TRACE_HEADER);
            bytes[at] = (char)random();
        }
        unlink(folder.file(0).c_str());
        std::ofstream(folder.file(0), std::ios::binary) << bytes;
        Result run = report(folder, (round % 2 ? "-f json " : "") + folder.path);
        ASSERT_TRUE(run.status >= 0 && run.status <= 2) << run.status << run.err;
    }
}

} // namespace
