// collx-report on traces with known numbers.
#include "tests/report_session.h"

#include <jansson.h>
#include <sstream>
#include <vector>

namespace
{

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

// What programs read is the same, whichever way.
TEST(Report, JsonSaysWhatCsvSays)
{
    TraceFolder folder;
    record_pair(folder);
    std::vector<Line> lines = csv(report(folder, "-f csv " + folder.path).out);
    json_t *all = json_loads(report(folder, "-f json " + folder.path).out.c_str(), 0, nullptr);
    ASSERT_TRUE(all);
    json_t *rows = json_object_get(all, "rows");
    ASSERT_EQ(json_array_size(rows), lines.size());
    for (size_t i = 0; i < lines.size(); i++)
        for (const auto &[title, text] : lines[i]) {
            json_t *value = json_object_get(json_array_get(rows, i), title.c_str());
            if (title == "offset" || (text.empty() && !json_is_string(value)))
                continue;
            if (json_is_number(value))
                EXPECT_NEAR(json_number_value(value), std::stod(text),
                            1e-5 * std::abs(std::stod(text)))
                    << title;
            else
                EXPECT_EQ(json_is_string(value) ? json_string_value(value) : "", text) << title;
        }
    json_decref(all);
}

// The class that has no end, and collectives of any form in one row where these are not asked for.
TEST(Report, HugeCallsOfAnyForm)
{
    TraceFolder folder;
    record_ranks(folder, 2, 2, [](int rank) {
        uint32_t world = trace_comm(1, rank, 2, "a \"name\", in quotes", rank ? 1000 : 2000);
        for (collx_form form : {COLLX_BLOCKING, COLLX_NONBLOCKING})
            trace_event(COLLX_BCAST, world, form, start_ns, start_ns + 10, 1ull << 40, 0, form);
    });
    Result run = report(folder, "-f csv --by comm,size " + folder.path);
    std::vector<Line> rows = csv(run.out);
    ASSERT_EQ(rows.size(), 1u) << run.out;
    EXPECT_EQ(rows[0]["calls"], "4");
    EXPECT_EQ(rows[0]["bytes_min"], "16777217");
    EXPECT_EQ(rows[0]["bytes_max"], "");
    EXPECT_EQ(rows[0]["comm_shared_bytes"], "2000");
    EXPECT_NE(run.out.find("\"a \"\"name\"\", in quotes\","), std::string::npos) << run.out;
    EXPECT_EQ(WEXITSTATUS(system((std::string(getenv("COLLX_REPORT")) + " " + folder.path +
                                  " >/dev/full 2>/dev/null")
                                     .c_str())),
              1);
}

// A call of nothing, or of nothing on some ranks, keeps nobody.
TEST(Report, CallsOfNothingMakeNobodyWait)
{
    TraceFolder folder;
    record_ranks(folder, 2, 2, [](int rank) {
        uint32_t world = trace_comm(1, rank, 2, "MPI_COMM_WORLD");
        uint64_t t = start_ns + (rank ? 900000 : 0);
        trace_event(COLLX_ALLREDUCE, world, 0, t, t + 1000, 0);
        trace_event(COLLX_ALLGATHER, world, 1, t + 2000, t + 3000, rank ? 8 : 0);
    });
    Result run = report(folder, "-f csv " + folder.path);
    EXPECT_EQ(run.err, "");
    for (Line &row : csv(run.out))
        EXPECT_EQ(row["matched_calls"], row["collective"] == "MPI_Allreduce" ? "2" : "1");
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

TEST(Report, TextHasAsManyColumnsAsItIsGiven)
{
    TraceFolder folder;
    record_pair(folder);
    const std::string by = folder.path + " --by collective,comm,size,route,site";
    EXPECT_NE(report(folder, by).out.find("…"), std::string::npos);
    setenv("COLUMNS", "500", 1);
    Result run = report(folder, by);
    unsetenv("COLUMNS");
    EXPECT_EQ(run.out.find("…"), std::string::npos) << run.out;
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

// Of few calls somebody is always last twice as often as the others.
TEST(Report, NobodyIsBlamedForBadLuck)
{
    TraceFolder folder;
    record_ranks(folder, 8, 8, [](int rank) {
        uint64_t t = start_ns;
        uint32_t world = trace_comm(1, rank, 8, "MPI_COMM_WORLD");
        record_meetings(world, rank, 16, t, [](int i) { return i < 4 ? 3 : i % 8; });
    });
    EXPECT_EQ(csv(report(folder, "-f csv --by collective " + folder.path).out)[0]["last_rank"],
              "3");
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

// Clocks that are further apart than calls take say nothing of who waited in them.
TEST(Report, ClocksThatCannotBeAreNotBelieved)
{
    TraceFolder folder;
    record_pair(folder);
    const int64_t hour = 3600000000000;
    set_times(folder.file(1), start_ns + run_ns, "another boot", hour);
    Result run = report(folder, "-f csv --by collective " + folder.path);
    EXPECT_EQ(run.status, 0);
    EXPECT_NE(run.err.find("in 22 calls a rank arrived when another had left already, by up to "
                           "3599.999900 s: the clocks of the nodes"),
              std::string::npos)
        << run.err;
    for (Line &row : csv(run.out)) {
        EXPECT_EQ(row["matched_calls"], "0") << row["collective"];
        EXPECT_EQ(row["last_rank"], "") << row["collective"];
    }
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

} // namespace
