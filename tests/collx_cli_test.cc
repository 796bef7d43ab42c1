/* What the collx command says to what people type. */
#include "tests/cli.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace
{

const std::string policies = COLLX_TEST_SOURCE "/policies/";

class TemporaryFile
{
  public:
    explicit TemporaryFile(const std::string &text)
    {
        int file = mkstemp(path.data());
        if (file < 0 || write(file, text.data(), text.size()) != (ssize_t)text.size())
            abort();
        close(file);
    }
    ~TemporaryFile()
    {
        unlink(path.c_str());
    }
    std::string path = "/tmp/collx-cli-test-XXXXXX";
};

TEST(Collx, SaysWhatItIs)
{
    EXPECT_EQ(run_collx("--version").out, "collx " COLLX_RELEASE "\n");
    for (const char *arguments :
         {"--help", "info --help", "policy --help", "policy check --help", "policy explain --help",
          "hw --help", "hw free --help", "hw probe --help", "hw test --help"}) {
        Outcome help = run_collx(arguments);
        EXPECT_EQ(help.code, 0) << arguments;
        EXPECT_TRUE(help.has("Usage: collx")) << help.out;
    }
    EXPECT_TRUE(run_collx("--help").has("policy explain"));
}

TEST(Collx, HelpsWithSlips)
{
    struct {
        const char *arguments, *answer;
    } const cases[] = {
        {"", "collx: which command?"},
        {"inof", "collx: 'inof' is not a command; did you mean 'info'?"},
        {"start", "collx: 'start' is not a command; there are hw, info, policy"},
        {"hw", "collx hw: probe, test or free?"},
        {"hw prob", "collx hw: 'prob' is not a command; did you mean 'probe'?"},
        {"hw test", "collx hw test: which SPEC?"},
        {"hw test --all 61 x", "--all: '61' is too large"},
        {"hw test a b", "one SPEC at a time; 'b' is one more"},
        {"hw free", "collx hw free: which SPEC?"},
        {"policy", "collx policy: check or explain?"},
        {"policy chekc", "collx policy: 'chekc' is not a command; did you mean 'check'?"},
        {"policy check", "collx policy check: which FILE?"},
        {"info --format xml", "--format: there is no 'xml'; there are text and markdown"},
        {"info x", "collx info: 'x' is one word too many"},
        {"policy explain --collective alreduce",
         "there is no 'alreduce'; did you mean 'allreduce'?"},
        {"policy explain --collective gather",
         "there is no 'gather'; there are barrier, bcast, allreduce"},
        {"policy explain --bytes 1k", "--bytes: '1k' is not right; it has to be a size"},
        {"policy explain --ranks 0", "--ranks: '0' is too small"},
        {"policy explain --op sun", "--op: there is no 'sun'; did you mean 'sum'?"},
        {"policy explain --collective barrier --bytes 8", "--bytes: a barrier has none"},
        {"policy explain --collective bcast --bytes 8 --op max",
         "--op: allreduce alone has an operation"},
        {"policy explain --op max", "--op needs --bytes"},
        {"policy explain --ranks 2 --nodes 4", "2 ranks cannot be on 4 nodes; give more --ranks"},
        {"policy explain a b", "one FILE at a time; 'b' is one more"},
    };

    for (const auto &c : cases) {
        Outcome slip = run_collx(c.arguments);
        EXPECT_EQ(slip.code, 64) << c.arguments;
        EXPECT_TRUE(slip.has(c.answer)) << c.arguments << "\n" << slip.out;
    }
}

TEST(Collx, SaysWhenItsOutputIsLost)
{
    Outcome full = run_collx("info >/dev/full");

    EXPECT_EQ(full.code, 1);
}

TEST(CollxInfo, ShowsOptionsAndWhereTheyWereSet)
{
    TemporaryFile policy("version: 1\noptions: { stall: 2min, spin: 7 }\nrules: [ use: shm ]\n");
    Outcome info = run_collx("info", "COLLX_TRACE=/tmp/t COLLX_SPIN=9 COLLX_POLICY=" + policy.path);

    EXPECT_EQ(info.code, 0);
    EXPECT_TRUE(info.has("COLLX_TRACE = /tmp/t  (environment)")) << info.out;
    EXPECT_TRUE(info.has("COLLX_SPIN = 9  (environment)")) << info.out;
    EXPECT_TRUE(info.has("COLLX_STALL = 2min  (" + policy.path + ")")) << info.out;
    EXPECT_TRUE(info.has("COLLX_TRACE_LIMIT = 256MiB  (default)")) << info.out;

    Outcome wrong = run_collx("info", "COLLX_STAL=1s COLLX_VERBOSE=yes COLLX_POLICY=/nowhere");
    EXPECT_EQ(wrong.code, 0);
    EXPECT_TRUE(wrong.has("collx: COLLX_STAL is not an option; did you mean COLLX_STALL?"));
    EXPECT_TRUE(wrong.has("collx: COLLX_VERBOSE: 'yes' is not right"));
    EXPECT_TRUE(wrong.has("/nowhere: cannot be read: No such file or directory"));
    EXPECT_TRUE(wrong.has("policy built-in")) << wrong.out;
}

/* The copy reads as root, for a user who may not. */
TEST(CollxInfo, TakesNoPathsWithRightsThatItsUserHasNot)
{
    char folder[] = "/tmp/collx-cli-test-XXXXXX";
    struct statvfs mounted;

    if (geteuid() != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) || statvfs("/tmp", &mounted) ||
        mounted.f_flag & ST_NOSUID)
        GTEST_SKIP() << "no program can be given root's rights here";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string copy = std::string(folder) + "/collx";
    ASSERT_EQ(chmod(folder, 0755), 0);
    ASSERT_EQ(system(("cp '" COLLX_TEST_COMMAND "' " + copy + " && chmod 4755 " + copy).c_str()),
              0);
    TemporaryFile policy("version: 1\noptions: { spin: 7 }\nrules: [ use: shm ]\n");
    const std::string variables = "COLLX_SPIN=9 COLLX_TRACE=/tmp/t COLLX_POLICY=" + policy.path;
    Outcome own = run_collx("info", variables, copy);
    Outcome other = run_collx("info", variables, "setpriv --reuid=65534 --clear-groups " + copy);
    unlink(copy.c_str());
    rmdir(folder);

    EXPECT_TRUE(own.has("COLLX_TRACE = /tmp/t  (environment)")) << own.out;
    EXPECT_TRUE(own.has("policy " + policy.path)) << own.out;
    EXPECT_TRUE(other.has("collx: COLLX_TRACE counts as not set")) << other.out;
    EXPECT_TRUE(other.has("collx: COLLX_POLICY counts as not set")) << other.out;
    EXPECT_TRUE(other.has("COLLX_TRACE = not set  (default)")) << other.out;
    EXPECT_TRUE(other.has("policy built-in")) << other.out;
    EXPECT_FALSE(other.has(policy.path)) << other.out;
    EXPECT_TRUE(other.has("COLLX_SPIN = 9  (environment)")) << "it is no path\n" << other.out;
}

TEST(CollxInfo, ShowsTheKernelsInUse)
{
    TemporaryFile policy("version: 1\noptions: { kernels: c }\nrules: [ use: shm ]\n");

    EXPECT_TRUE(run_collx("info", "COLLX_KERNELS=c").has("reductions: c\n"));
    EXPECT_TRUE(run_collx("info", "COLLX_POLICY=" + policy.path).has("reductions: c\n"));
    EXPECT_TRUE(run_collx("info").has("COLLX_KERNELS = auto  (default)"));
}

TEST(CollxInfo, ShowsAlgorithmsAndAdapters)
{
    Outcome info = run_collx("info");

    for (const char *line : {"  shm of barrier\n", "  shm of bcast\n", "  shm of allreduce\n",
                             "      needs: all ranks on one node", "      here: yes\n",
                             "      memory: 1 KiB for 2 ranks, 2 KiB for 8, 24 KiB for 64\n"})
        EXPECT_TRUE(info.has(line)) << line << info.out;
    for (const char *adapter : COLLX_TEST_ADAPTERS)
        EXPECT_TRUE(info.has(std::string("  libcollx-") + adapter + ".so: needs libmp"))
            << adapter << info.out;
    EXPECT_FALSE(info.has("libcollx-policy.so")) << "no adapter";
    EXPECT_FALSE(info.has("  libcollx-topology.so")) << "no adapter";
    EXPECT_FALSE(info.has("  libcollx-group.so")) << "no adapter";
}

TEST(CollxInfo, ShowsPackagesAndCaches)
{
    Outcome here = run_collx("info");
    if (here.has("  not known: there is no "))
        GTEST_SKIP() << "built without hwloc";
    EXPECT_TRUE(here.has("Topology\n  packages: ")) << here.out;

    Outcome other = run_collx("info", "COLLX_TOPOLOGY='package:2 l3:4 core:8 pu:2'");
    EXPECT_TRUE(other.has("Topology of package:2 l3:4 core:8 pu:2\n"
                          "  packages: 2, NUMA nodes: 1, last caches: 8, cores: 64, CPUs: 128\n"))
        << other.out;

    Outcome wrong = run_collx("info", "COLLX_TOPOLOGY=pakage:2");
    EXPECT_EQ(wrong.code, 0);
    EXPECT_TRUE(wrong.has("  not known: 'pakage:2' is no machine: ")) << wrong.out;
}

TEST(CollxInfo, ShowsCpus)
{
    Outcome info = run_collx("info");
    cpu_set_t usable;
    int first = 0;

    ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
    while (!CPU_ISSET(first, &usable))
        first++;
    EXPECT_TRUE(info.has("CPUs\n  online: ")) << info.out;
    EXPECT_TRUE(info.has("\n  CPU time, by the quotas of cgroups: ")) << info.out;
    EXPECT_TRUE(run_collx("info", "taskset -c " + std::to_string(first))
                    .has("\n  usable, by the affinity mask: 1\n"));
}

TEST(CollxInfo, IsTheReferencePage)
{
    std::ifstream page(COLLX_TEST_SOURCE "/docs/options.md");
    std::stringstream text;

    text << page.rdbuf();
    EXPECT_EQ(run_collx("info --format markdown", "COLLX_STALL=1s").out, text.str())
        << "docs/options.md is out of date; renew it with\n"
           "  build/collx info --format markdown > docs/options.md";
}

TEST(CollxPolicyCheck, TellsRightFromWrong)
{
    TemporaryFile wrong("version: 1\nrules:\n  - use: shmm\n  - usw: shm\n");
    Outcome right =
        run_collx("policy check " + policies + "default.yaml " + policies + "template.yaml " +
                  policies + "pmpi-only.yaml " + policies + "small-messages.yaml");
    Outcome mixed =
        run_collx("policy check " + policies + "default.yaml " + wrong.path + " /nowhere");

    EXPECT_EQ(right.code, 0);
    EXPECT_TRUE(right.has("template.yaml: right, 4 rules\n")) << right.out;
    EXPECT_EQ(mixed.code, 1);
    EXPECT_TRUE(mixed.has("default.yaml: right, 1 rule\n")) << mixed.out;
    EXPECT_TRUE(mixed.has(wrong.path + ":3:10: 'shmm' is not an algorithm; did you mean 'shm'?\n"));
    EXPECT_TRUE(mixed.has(wrong.path + ":4:5: unknown key 'usw' in a rule; did you mean 'use'?\n"));
    EXPECT_TRUE(mixed.has("/nowhere: cannot be read: No such file or directory\n"));
    EXPECT_EQ(run_collx("policy check " + policies + "default.yaml >/dev/full").code, 1);
}

TEST(CollxPolicyExplain, OneCall)
{
    TemporaryFile policy("version: 1\nrules:\n"
                         "  - match: { bytes: ..512 }\n    use: pmpi\n"
                         "  - match: { comm: \"s*\", op: max }\n    use: [shm, pmpi]\n");
    std::string question = "policy explain " + policy.path + " --collective allreduce --bytes 1KiB";

    Outcome spread = run_collx(question + " --ranks 64 --nodes 4 --op max --comm solver");
    EXPECT_EQ(spread.code, 0);
    EXPECT_EQ(spread.out.find("allreduce of 1KiB, op max, on solver: 64 ranks on 4 nodes, 16 on "
                              "each; policy " +
                              policy.path +
                              "\n"
                              "  passed  line 3: bytes: 1KiB is not in ..512\n"
                              "  rule    line 5\n"
                              "  runs    pmpi\n"
                              "          not shm: "),
              0u)
        << spread.out;
    EXPECT_TRUE(spread.has("spans 4 nodes")) << spread.out;
    Outcome other = run_collx(question);
    EXPECT_TRUE(other.has("op sum, on MPI_COMM_WORLD: 2 ranks on 1 node")) << other.out;
    EXPECT_TRUE(other.has("  passed  line 5: comm: 'MPI_COMM_WORLD' does not match 's*'\n"));
    EXPECT_TRUE(other.has("  rule    none matches\n  runs    pmpi\n"));
    EXPECT_TRUE(run_collx(question + " --ranks 7 --nodes 2").has("3 to 4 on each"));
}

TEST(CollxPolicyExplain, TheTablesOfWhatWouldHoldHere)
{
    Outcome builtin = run_collx("policy explain");
    EXPECT_EQ(builtin.code, 0);
    EXPECT_TRUE(builtin.has("barrier on MPI_COMM_WORLD: 2 ranks on 1 node; policy built-in\n"));
    EXPECT_TRUE(builtin.has("\n  any                  any          built-in   shm\n"))
        << builtin.out;

    Outcome set = run_collx("policy explain --collective bcast",
                            "COLLX_POLICY=" + policies + "pmpi-only.yaml");
    EXPECT_EQ(set.out, "bcast on MPI_COMM_WORLD: 2 ranks on 1 node; policy " + policies +
                           "pmpi-only.yaml\n"
                           "  bytes                op           rule       runs\n"
                           "  any                  -            line 7     pmpi\n");
    EXPECT_EQ(run_collx("policy explain", "COLLX_POLICY=/nowhere").code, 1);
}

} // namespace
