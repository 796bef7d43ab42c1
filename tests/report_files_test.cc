// What collx-report makes of whatever it is given.
#include "tests/report_session.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/resource.h>

namespace
{

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

// As if no more had fitted into rank 1's trace.
void leave_out(const TraceFolder &folder, uint64_t dropped)
{
    collx_trace_header header;
    int fd = open(folder.file(1).c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(pread(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
    header.dropped = dropped;
    header.stop = COLLX_TRACE_LIMIT;
    ASSERT_EQ(pwrite(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
    close(fd);
}

// A script sees by the exit status that figures are not of all that there was.
TEST(Report, DamageShowsInTheStatus)
{
    for (bool cut : {true, false}) {
        TraceFolder folder;
        record_pair(folder);
        ASSERT_EQ(report(folder, "-f json " + folder.path).status, 0);
        const std::string path = folder.file(1);
        const auto size = std::filesystem::file_size(path);
        if (cut) {
            std::filesystem::resize_file(path, size - COLLX_TRACE_RECORD);
        } else {
            std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
            file.seekp((std::streamoff)(size - COLLX_TRACE_RECORD));
            file << std::string(COLLX_TRACE_RECORD, '\xff');
        }
        Result run = report(folder, "-f json " + folder.path);
        EXPECT_EQ(run.status, 2) << cut << run.err;
        EXPECT_EQ(run.out.find("\"complete\": false") != std::string::npos, cut) << run.out;
    }
}

// What happened when nothing was recorded any more is no part of a whole.
TEST(Report, SharesAreOfWhatTheTraceHas)
{
    TraceFolder folder;
    // 10 ms of 20 in calls, of a run of 1 s.
    record_ranks(folder, 2, 2, [](int rank) {
        uint32_t world = trace_comm(1, rank, 2, "MPI_COMM_WORLD");
        for (unsigned i = 0; i < 10; i++)
            trace_event(COLLX_ALLREDUCE, world, i, start_ns + i * 2000000 + 1000000,
                        start_ns + i * 2000000 + 2000000);
    });
    Result whole = report(folder, "summary " + folder.path);
    EXPECT_NE(whole.out.find("; 1.0% of the run time"), std::string::npos) << whole.out;
    EXPECT_NE(whole.out.find("there is little to win"), std::string::npos) << whole.out;
    EXPECT_EQ(whole.out.find("events are missing"), std::string::npos) << whole.out;

    leave_out(folder, 5000);
    Result part = report(folder, "summary " + folder.path);
    EXPECT_EQ(part.status, 0) << part.err;
    EXPECT_NE(part.out.find("most on rank 1: 50.0%\n  events are missing, on rank 1 after 20.0ms "
                            "of 1.00s (see the notes): all shares are of the time before that\n"),
              std::string::npos)
        << part.out;
    EXPECT_EQ(part.out.find("little to win"), std::string::npos) << part.out;
    // Rank 0 has 10 ms of 1 s, rank 1 10 ms of 20 ms.
    auto lines = csv(report(folder, "summary --format csv " + folder.path).out);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NEAR(std::stod(lines[0]["run_share"]), 20.0 / 1020, 1e-6);
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

// A process that was traced before MPI_Init has no rank in its file.
TEST(Report, NoTwoRanksHaveOneNumber)
{
    TraceFolder folder;
    for (int rank : {1, 2, 3})
        record(folder, rank, 4, [] {});
    EXPECT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, -1, 0);
                  char why[512] = "";
                  ASSERT_EQ(collx_recorder.open(&setup, why, sizeof why), 0) << why;
              }),
              0);
    std::string out = report(folder, "-f json " + folder.path).out;
    for (const char *number : {"1", "2", "3", "4"}) {
        const std::string wanted = std::string("\"rank\": ") + number + ",";
        size_t at = out.find(wanted);
        ASSERT_NE(at, std::string::npos) << number << " in:\n" << out;
        EXPECT_EQ(out.find(wanted, at + 1), std::string::npos) << number << " in:\n" << out;
    }
}

// Where the boot id cannot be read, nodes are told apart by their names.
TEST(Report, NodesWithoutABootId)
{
    TraceFolder folder;
    for (int rank : {0, 1, 2}) {
        record(folder, rank, 3, [] {});
        std::string bytes = slurp(folder.file(rank));
        collx_trace_header header;
        memcpy(&header, bytes.data(), sizeof header);
        memset(header.boot_id, 0, sizeof header.boot_id);
        snprintf(header.host, sizeof header.host, "node%d", rank / 2);
        memcpy(bytes.data(), &header, sizeof header);
        std::ofstream(folder.file(rank), std::ios::binary) << bytes;
    }
    Result run = report(folder, folder.path);
    EXPECT_NE(run.out.find("3 ranks on 2 nodes"), std::string::npos) << run.out << run.err;
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

// The largest number that fits says how many ranks there were, and two processes have none.
TEST(Report, LargestWorld)
{
    TraceFolder folder;
    record(folder, 0, INT32_MAX, [] {});
    for (const char *name : {"/pid-x-1.collx", "/pid-x-2.collx"}) {
        std::filesystem::copy_file(folder.file(0), folder.path + name);
        const int32_t none = -1;
        int fd = open((folder.path + name).c_str(), O_RDWR);
        ASSERT_EQ(pwrite(fd, &none, sizeof none, offsetof(collx_trace_header, world_rank)), 4);
        close(fd);
    }
    Result run = report(folder, folder.path);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.out.find("no trace of ranks 1–2147483646: "), std::string::npos) << run.out;
    const std::string json = report(folder, "-f json " + folder.path).out;
    for (const char *number : {"0", "2147483647", "2147483648"})
        EXPECT_NE(json.find(std::string("\"rank\": ") + number + ","), std::string::npos) << json;
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
