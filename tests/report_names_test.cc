// How collx-report names places in programs and communicators, whatever these are called.
#include "tests/report_session.h"

#include <cstring>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <vector>

// Defined below, in assembly.  Not in the namespace without a name, whose own the compiler may call
// anything.
extern "C" const char lies_behind[];

namespace
{

// As if the program had been called so.
void set_module(std::string &bytes, const std::string &name)
{
    uint32_t path = 0;
    bool named = false;
    for (size_t at = COLLX_TRACE_HEADER; at < bytes.size(); at += COLLX_TRACE_RECORD)
        if (bytes[at + 47] == COLLX_TRACE_MODULE)
            memcpy(&path, &bytes[at + 36], sizeof path);
    for (size_t at = COLLX_TRACE_HEADER; at < bytes.size(); at += COLLX_TRACE_RECORD)
        if (bytes[at + 47] == COLLX_TRACE_STRING && !memcmp(&bytes[at + 40], &path, sizeof path)) {
            bytes.replace(at, name.size(), name);
            bytes[at + 44] = (char)(named ? 0 : name.size());
            named = true;
        }
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
    set_module(bytes, pipe);
    std::ofstream(folder.file(0), std::ios::binary) << bytes;
    rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["module"], pipe);
    EXPECT_EQ(rows[0]["function"], "");
}

// Clang leaves it out.
TEST(Report, SourcesWithoutATableOfTheUnitsAddresses)
{
    TraceFolder folder;
    record(folder, 0, 1, [] {
        trace_event(
            COLLX_BARRIER, trace_comm(1, 0, 1, ""), 0, start_ns, start_ns + 10, 0,
            collx_recorder.site(__builtin_extract_return_addr(__builtin_return_address(0))));
    });
    Line with = csv(report(folder, "-f csv --by site " + folder.path).out).at(0);

    const std::string bare = folder.root + "/bare",
                      command = "objcopy -R .debug_aranges " + with["module"] + " " + bare;
    ASSERT_EQ(system(command.c_str()), 0);
    std::string bytes = slurp(folder.file(0));
    set_module(bytes, bare);
    std::ofstream(folder.file(0), std::ios::binary) << bytes;
    Line without = csv(report(folder, "-f csv --by site " + folder.path).out).at(0);
    EXPECT_EQ(without["module"], bare);
    for (const char *what : {"function", "file", "line"}) {
        EXPECT_NE(with[what], "");
        EXPECT_EQ(without[what], with[what]);
    }
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

__attribute__((noinline)) static void *here()
{
    return __builtin_extract_return_addr(__builtin_return_address(0));
}

/* What follows the call keeps it from being the function's last act. */
#define BODY                                                                                       \
    void *at = here();                                                                             \
    __asm__ volatile("" : "+r"(at));                                                               \
    return at

struct Key {
};

__attribute__((noinline)) static void *operator<(Key, Key)
{
    BODY;
}

__attribute__((noinline)) static void *operator<<(Key, int)
{
    BODY;
}

template <class T> __attribute__((noinline)) static void *of_type(T)
{
    BODY;
}

__attribute__((noinline)) static void *in_lambda(int)
{
    auto lambda = [](long) __attribute__((noinline))
    {
        BODY;
    };
    void *at = lambda(1);
    __asm__ volatile("" : "+r"(at));
    return at;
}

static void *in_a_strange_file(); // the last here

TEST(Report, NamesOfCxx)
{
    TraceFolder folder;
    record(folder, 0, 1, [] {
        uint32_t world = trace_comm(1, 0, 1, "MPI_COMM_WORLD"), call = 0;
        for (void *at : {Key() < Key(), Key() << 1, of_type(1), in_lambda(1), in_a_strange_file()})
            trace_event(COLLX_BARRIER, world, call++, start_ns, start_ns + 10, 0,
                        collx_recorder.site(at));
    });
    std::string out = report(folder, "-f csv --by site " + folder.path).out;
    for (const char *name : {"::operator<,", "::operator<<,", "of_type<int>,",
#ifdef __clang__ // which numbers lambdas that nobody else sees
                             "in_lambda(int)::$_",
#else
                             "in_lambda(int)::{lambda(long)#1}::operator(),",
#endif
                             "as? file.cc"})
        EXPECT_NE(out.find(name), std::string::npos) << name << " in:\n" << out;
}

// One global number for several communicators: threads have used these in another order on each
// rank, or there is no MPI_COMM_WORLD that tells who is in them.
TEST(Report, CommunicatorsOfOtherNamesAreOthers)
{
    TraceFolder folder;
    record_ranks(folder, 2, 2, [](int rank) {
        for (uint64_t i = 0; i < 2; i++) {
            const bool fast = i == (uint64_t)rank;
            uint32_t comm = trace_comm(2 + i, rank, 2, "");
            trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + (fast ? 10 : 1000));
            comm = trace_comm(2 + i, rank, 2, fast ? "fast" : "slow"); /* it has been set up */
            trace_event(COLLX_BARRIER, comm, 1, start_ns, start_ns + (fast ? 10 : 1000));
        }
    });
    std::vector<Line> rows = csv(report(folder, "-f csv --by comm " + folder.path).out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["comm"], "slow");
    EXPECT_EQ(rows[0]["calls"], "4");
    EXPECT_EQ(rows[0]["time_ns"], "4000");
    EXPECT_EQ(rows[0]["matched_calls"], "0");
    EXPECT_EQ(rows[1]["comm"], "fast");
    EXPECT_EQ(rows[1]["time_ns"], "40");
}

// Without MPI_COMM_WORLD, and without names.  Two of four ranks left a trace: as many as the
// communicator has, and yet not of all its ranks.
TEST(Report, CommunicatorsThatCannotBeToldApart)
{
    TraceFolder folder;
    for (int rank : {0, 2})
        record(folder, rank, 4, [] {
            for (uint64_t global : {2, 3}) {
                uint32_t comm = trace_comm(global, 0, 2, global == 2 ? "" : "named");
                trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + 10);
            }
        });
    Result run = report(folder, "-f csv --by comm " + folder.path);
    EXPECT_EQ(run.status, 0);
    std::vector<Line> rows = csv(run.out);
    ASSERT_EQ(rows.size(), 2u);
    for (Line &row : rows)
        EXPECT_EQ(row["matched_calls"], "0") << row["comm"];
    for (const char *part : {"\ncollx-report: some communicators of 2 ranks cannot be told apart",
                             "\ncollx-report: named: some communicators of 2 ranks cannot"})
        EXPECT_NE(("\n" + run.err).find(part), std::string::npos) << run.err;
}

// Of three ranks two say that they are the same one; the third does not make that good.
TEST(Report, RanksThatAreTwiceAreNotForgotten)
{
    TraceFolder folder;
    for (int rank = 0; rank < 3; rank++)
        record(folder, rank, 3, [rank] {
            uint32_t comm = trace_comm(2, rank < 2 ? 0 : 1, 3, "");
            trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + 10);
        });
    Result run = report(folder, "-f csv --by comm " + folder.path);
    EXPECT_NE(run.err.find("cannot be told apart"), std::string::npos) << run.err;
    EXPECT_EQ(csv(run.out)[0]["matched_calls"], "0");
}

// One that has got its name late, and on some ranks alone, is still one.
TEST(Report, CommunicatorsWithoutANameMayHaveOneElsewhere)
{
    TraceFolder folder;
    record_ranks(folder, 3, 3, [](int rank) {
        uint32_t comm = trace_comm(2, rank, 3, "");
        trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + 10);
        comm = trace_comm(2, rank, 3, rank == 1 ? "late" : "");
        trace_event(COLLX_BARRIER, comm, 1, start_ns, start_ns + 10);
    });
    std::vector<Line> rows = csv(report(folder, "-f csv --by comm " + folder.path).out);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]["comm"], "late");
    EXPECT_EQ(rows[0]["comm_instances"], "1");
    EXPECT_EQ(rows[0]["matched_calls"], "6");
}

// What is not has each byte that is none replaced.
TEST(Report, NamesThatAreNoUtf8)
{
    const std::pair<const char *, const char *> names[] = {
        {"a\x80\xff\xc3\xa9", "a??é"},
        {"\xc3z\xe2\x82", "?z??"},
        {"\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "?????????"},
        {"\xed\x9f\xbf\xed\xa0\x80", "\xed\x9f\xbf???"},
        {"\xf4\x8f\xbf\xbf\xf4\x90\x80\x80\xf5\x80\x80\x80", "\xf4\x8f\xbf\xbf????????"}};
    for (const auto &[name, shown] : names) {
        TraceFolder folder;
        record(folder, 0, 1, [name = name] {
            uint32_t comm = trace_comm(1, 0, 1, name);
            trace_event(COLLX_BARRIER, comm, 0, start_ns, start_ns + 10);
        });
        for (const char *format : {"json", "csv", "text"}) {
            Result run = report(folder, std::string("-f ") + format + " " + folder.path);
            EXPECT_EQ(run.status, 0) << run.err;
            EXPECT_NE(run.out.find(shown), std::string::npos) << shown << " in:\n" << run.out;
            EXPECT_EQ(
                system(("iconv -f UTF-8 -t UTF-16 >/dev/null " + folder.root + "/out").c_str()), 0)
                << run.out;
        }
    }
}

// A program with such a name is found all the same.
TEST(Report, ProgramsThatAreNoUtf8)
{
    TraceFolder folder;
    record(folder, 0, 1, [] {
        trace_event(COLLX_BARRIER, trace_comm(1, 0, 1, ""), 0, start_ns, start_ns + 10, 0,
                    collx_recorder.site(lies_behind));
    });
    const std::string program = folder.root + "/\xff";
    std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"), program);
    std::string bytes = slurp(folder.file(0));
    set_module(bytes, program);
    std::ofstream(folder.file(0), std::ios::binary) << bytes;
    std::vector<Line> rows = csv(report(folder, "-f csv --by site " + folder.path).out);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]["module"], folder.root + "/?");
    EXPECT_EQ(rows[0]["function"], "ends_in_a_call");
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

#line 7 "as\033 file.cc"
__attribute__((noinline)) static void *in_a_strange_file()
{
    BODY;
}

} // namespace
