/* Which CPU time and memory the kernel lets processes have, and when ranks are a crowd.  The
 * machines are folders here, with the files of /proc and of the cgroups in them. */
extern "C" {
#include "base/algorithm.h"
#include "hw/budget.h"
#include "hw/cpus.h"
#include "hw/shm.h"

/* algorithms/crowd.h, which is C alone for its atomics.  A segment is bytes here. */
void collx_crowd_join(void *segment, int rank);
void collx_crowd_limit(void *segment, const struct collx_cpu_limit *limit);
void collx_crowd_decide(void *segment, int ranks, struct collx_team *team);
char *collx_crowd_explain(void *segment, int ranks, const struct collx_team *team, char *text,
                          size_t size);
}

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace
{

namespace fs = std::filesystem;

class Machine
{
  public:
    Machine()
    {
        char name[] = "/tmp/collx-test-XXXXXX";
        root = mkdtemp(name);
    }
    ~Machine()
    {
        fs::remove_all(root);
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    Machine &file(const std::string &path, const std::string &text)
    {
        fs::create_directories(fs::path(root + path).parent_path());
        std::ofstream(root + path) << text;
        return *this;
    }
    Machine &in(const std::string &cgroups, const std::string &process = "self")
    {
        return file("/proc/" + process + "/cgroup", cgroups);
    }
    Machine &mounts(const std::string &lines)
    {
        return file("/proc/self/mountinfo",
                    "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw\n" + lines);
    }
    Machine &v1(const std::string &folder, const std::string &quota, const std::string &period)
    {
        return file(folder + "/cpu.cfs_quota_us", quota + "\n")
            .file(folder + "/cpu.cfs_period_us", period + "\n");
    }
    std::vector<collx_cpu_limit> limits(int pid = 0, int room = 8) const
    {
        std::vector<collx_cpu_limit> all(room);
        errno = EXDEV;
        all.resize(collx_cpus_limits(root.c_str(), pid, all.data(), room));
        EXPECT_EQ(errno, EXDEV);
        return all;
    }
    /* Their values: "1500 4000", from the innermost cgroup on. */
    std::string text() const
    {
        std::string values;
        for (const collx_cpu_limit &each : limits()) {
            EXPECT_NE(each.group, 0u);
            values += (values.empty() ? "" : " ") + std::to_string(each.millicpus);
        }
        return values;
    }

    /* Of 1,000,000 bytes, how many a job may share. */
    int64_t memory() const
    {
        errno = EXDEV;
        int64_t bytes = collx_budget_allowed(root.c_str(), 1000000);
        EXPECT_EQ(errno, EXDEV);
        return bytes;
    }

  private:
    std::string root;
};

const char *const UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
const char *const CPU = "33 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup "
                        "rw,cpu,cpuacct\n";

TEST(CpuLimits, NothingThere)
{
    EXPECT_EQ(Machine().text(), "");
    EXPECT_EQ(Machine().in("0::/a\n").text(), "");
    EXPECT_EQ(Machine().mounts(UNIFIED).text(), "");
    EXPECT_EQ(Machine().in("0::/a\n").mounts(UNIFIED).text(), "");
}

TEST(CpuLimits, Version2)
{
    Machine m;

    m.in("0::/job/rank\n").mounts(UNIFIED);
    m.file("/sys/fs/cgroup/job/rank/cpu.max", "150000 100000\n");
    EXPECT_EQ(m.text(), "1500");
    m.file("/sys/fs/cgroup/job/rank/cpu.max", "max 100000\n");
    EXPECT_EQ(m.text(), "");
}

TEST(CpuLimits, EveryCgroupAboveCounts)
{
    Machine m;

    m.in("0::/a/b/c/d\n").mounts(UNIFIED);
    m.file("/sys/fs/cgroup/cpu.max", "800000 100000\n"); /* what a container's own root has */
    m.file("/sys/fs/cgroup/a/cpu.max", "100000 50000\n");
    m.file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    m.file("/sys/fs/cgroup/a/b/c/cgroup.procs", "\n"); /* without the controller */
    m.file("/sys/fs/cgroup/a/b/c/d/cpu.max", "400000 100000\n");
    m.file("/sys/fs/cgroup/a/x/cpu.max", "1000 100000\n"); /* not ours */
    EXPECT_EQ(m.text(), "4000 2000 8000");
    EXPECT_EQ(m.limits(0, 2).size(), 2u);
    EXPECT_EQ(m.limits(0, 0).size(), 0u);
}

TEST(CpuLimits, Version1)
{
    Machine m;

    m.in("4:cpuacct,cpu:/slurm/job 7\n12:cpuset:/elsewhere\n1:name=systemd:/s\n0::/s\n");
    m.mounts(std::string("32 23 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n") +
             CPU + "34 23 0:30 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,name=systemd\n");
    m.v1("/sys/fs/cgroup/cpu,cpuacct/slurm/job 7", "50000", "100000");
    m.v1("/sys/fs/cgroup/cpu,cpuacct/slurm", "-1", "100000");
    m.v1("/sys/fs/cgroup/cpu,cpuacct", "300000", "100000");
    m.v1("/sys/fs/cgroup/cpuset/elsewhere", "1", "100000");
    m.v1("/sys/fs/cgroup/systemd/s", "1", "100000");
    EXPECT_EQ(m.text(), "500 3000");
}

TEST(CpuLimits, BothVersionsMounted)
{
    Machine m;

    m.in("4:cpu,cpuacct:/one\n0::/two\n");
    m.mounts(std::string(CPU) +
             "31 23 0:27 / /sys/fs/cgroup/unified rw shared:7 - cgroup2 cgroup2 rw\n");
    m.file("/sys/fs/cgroup/unified/two/cgroup.procs", "\n");
    EXPECT_EQ(m.text(), "");
    m.v1("/sys/fs/cgroup/cpu,cpuacct/one", "250000", "100000");
    EXPECT_EQ(m.text(), "2500");
}

/* Each as it looks from inside. */
TEST(CpuLimits, Containers)
{
    struct {
        const char *what, *cgroup, *mounts, *quota_in, *limits;
    } cases[] = {
        {"a namespace", "0::/\n", UNIFIED, "/sys/fs/cgroup", "1500"},
        {"without a namespace, its own cgroup mounted", "0::/docker/1eb\n",
         "30 23 0:26 /docker/1eb /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "/sys/fs/cgroup",
         "1500"},
        {"a cgroup within it", "0::/docker/1eb/job\n",
         "30 23 0:26 /docker/1eb /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "/sys/fs/cgroup/job",
         "1500"},
        {"a name that begins like it", "0::/docker/1ebb\n",
         "30 23 0:26 /docker/1eb /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "/sys/fs/cgroupb", ""},
        {"moved out of it", "0::/../other\n", UNIFIED, "/sys/fs/cgroup", ""},
        {"moved out of it, without a namespace", "0::/other\n",
         "30 23 0:26 /docker/1eb /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "/sys/fs/cgroup", ""},
        {"mounted from above the namespace", "0::/\n",
         "30 23 0:26 /../../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup", "1500"},
        {"the folders hidden", "0::/docker/1eb\n", UNIFIED, "/sys/fs/cgroup", "1500"},
        {"mounted twice", "0::/\n",
         "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
         "31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
         "/sys/fs/cgroup", "1500"},
        {"dashes and optional fields", "0::/a-b\n",
         "30 23 0:26 /a-b /sys/fs/cg-roup rw,a - cgroup2 none rw\n"
         "30 23 0:26 /a-b /sys/fs/cgroup rw shared:1 master:2 unbindable - cgroup2 none rw\n",
         "/sys/fs/cgroup", "1500"},
        {"a mount point with a blank", "0::/\n",
         "30 23 0:26 / /sys/c\\040\\134g rw - cgroup2  rw\n", "/sys/c \\g", "1500"},
    };

    for (const auto &c : cases) {
        Machine m;
        m.in(c.cgroup).mounts(c.mounts);
        m.file(c.quota_in + std::string("/cpu.max"), "150000 100000\n");
        EXPECT_EQ(m.text(), c.limits) << c.what;
    }
}

TEST(CpuLimits, NonsenseIsNoLimit)
{
    for (const char *text :
         {"", "\n", "max\n", "max max\n", "50000\n", "50000 0\n", "0 100000\n", "-1 100000\n",
          "50000 -100000\n", "50000 100000 1\n", "x 100000\n", "99999999999999999999 100000\n",
          "9223372036854775807 100000\n", "50000x 100000\n"}) {
        Machine m;
        m.in("0::/\n").mounts(UNIFIED).file("/sys/fs/cgroup/cpu.max", text);
        EXPECT_EQ(m.text(), "") << text;
    }
    for (const char *text :
         {"", "\n", ":", "::", "0", "0:\n", "0::", "cpu\n", "1:cpu\n", "\n\n:::\n"}) {
        Machine m;
        m.in(text).mounts(std::string(UNIFIED) + CPU);
        EXPECT_EQ(m.text(), "") << text;
    }
    const std::string longer(5000, 'x');
    for (const std::string &text :
         {std::string("30\n"), std::string("30 23 0:26 / /sys/fs/cgroup rw\n"),
          std::string("30 23 0:26 / /sys/fs/cgroup rw -\n"),
          std::string("30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n"),
          std::string(" - cgroup2 cgroup2 rw\n"),
          "30 23 0:26 / /" + longer + " rw - cgroup2 x rw\n",
          "30 23 0:26 / /" + longer + longer + longer + " rw - cgroup2 x rw\n",
          "30 23 0:26 /" + longer + " /sys rw - cgroup2 x rw\n"}) {
        Machine m;
        m.in("0::/\n").mounts(text).file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
        EXPECT_EQ(m.text(), "") << text;
        m.mounts(text + UNIFIED); /* and does not hide what makes sense */
        EXPECT_EQ(m.text(), "500") << text;
    }
    Machine m;
    m.in("0::/" + longer + "\n").mounts(UNIFIED).file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    EXPECT_EQ(m.text(), "");
}

TEST(CpuLimits, SmallOnesAreNotZero)
{
    Machine m;

    m.in("0::/\n").mounts(UNIFIED).file("/sys/fs/cgroup/cpu.max", "1000 9000000\n");
    EXPECT_EQ(m.text(), "1");
}

TEST(CpuLimits, TellWhoSharesThem)
{
    Machine m;

    m.mounts(UNIFIED).in("0::/job/one\n").in("0::/job/two\n", "17");
    m.file("/sys/fs/cgroup/job/cpu.max", "400000 100000\n");
    m.file("/sys/fs/cgroup/job/one/cpu.max", "100000 100000\n");
    m.file("/sys/fs/cgroup/job/two/cpu.max", "100000 100000\n");
    auto one = m.limits(), two = m.limits(17);
    ASSERT_EQ(one.size(), 2u);
    ASSERT_EQ(two.size(), 2u);
    EXPECT_NE(one[0].group, two[0].group);
    EXPECT_EQ(one[1].group, two[1].group);
    EXPECT_NE(one[0].group, one[1].group);
    EXPECT_EQ(m.limits(18).size(), 0u);
}

TEST(CpuLimits, Format)
{
    char text[24];

    EXPECT_STREQ(collx_cpus_format(2000, text, sizeof text), "2");
    EXPECT_STREQ(collx_cpus_format(500, text, sizeof text), "0.5");
    EXPECT_STREQ(collx_cpus_format(10001, text, sizeof text), "10.001");
    EXPECT_STREQ(collx_cpus_format(INT64_MAX, text, sizeof text), "9223372036854775.807");
}

TEST(MemoryLimits, AnEighthOfTheLeastIsForUs)
{
    const char *const mounted = "36 23 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    Machine none, v1, v2;

    EXPECT_EQ(none.memory(), 1000000);
    v2.in("0::/job/rank\n").mounts(UNIFIED);
    v2.file("/sys/fs/cgroup/job/rank/memory.max", "max\n");
    EXPECT_EQ(v2.memory(), 1000000);
    v2.file("/sys/fs/cgroup/job/memory.max", "4000000\n");
    EXPECT_EQ(v2.memory(), 500000);
    v2.file("/sys/fs/cgroup/job/rank/memory.max", "8000000\n");
    EXPECT_EQ(v2.memory(), 500000);
    v2.file("/sys/fs/cgroup/job/rank/memory.max", "0\n");
    EXPECT_EQ(v2.memory(), 0);

    v1.in("4:cpu:/\n3:memory:/job\n0::/\n").mounts(std::string(UNIFIED) + mounted);
    v1.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(v1.memory(), 1000000);
    v1.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "-1\n");
    EXPECT_EQ(v1.memory(), 1000000);
    v1.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "800\n");
    EXPECT_EQ(v1.memory(), 100);
}

/* The ranks of a communicator, which join from this process. */
class Crowd : public testing::Test
{
  protected:
    void SetUp() override
    {
        for (const char *name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
                                 "SLURM_STEP_TASKS_PER_NODE"})
            unsetenv(name);
        ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    }
    void TearDown() override
    {
        sched_setaffinity(0, sizeof before, &before);
    }
    /* Run on `count` of the CPUs. */
    void bind(int count)
    {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&set) < count; cpu++)
            if (CPU_ISSET(cpu, &before))
                CPU_SET(cpu, &set);
        ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    }
    bool crowded(int ranks)
    {
        collx_team team = {};
        collx_crowd_decide(segment, ranks, &team);
        EXPECT_EQ(team.spins == 0, team.crowded);
        char text[256];
        said = collx_crowd_explain(segment, ranks, &team, text, sizeof text);
        rationed = team.rationed;
        return team.crowded;
    }
    void limits(std::vector<collx_cpu_limit> all)
    {
        for (const collx_cpu_limit &each : all)
            collx_crowd_limit(segment, &each);
    }

    alignas(128) char segment[65536] = {};
    std::string said;
    bool rationed;

    cpu_set_t before;
};

TEST_F(Crowd, NobodyJoined)
{
    EXPECT_FALSE(crowded(1000));
    EXPECT_NE(said.find("1000 ranks on an unknown number of CPUs: who waits yields after "),
              std::string::npos)
        << said;
}

TEST_F(Crowd, NoSegment)
{
    collx_team team = {};

    collx_crowd_decide(nullptr, 1000, &team);
    EXPECT_FALSE(team.crowded);
    EXPECT_GT(team.spins, 0);
}

TEST_F(Crowd, AQuotaIsForTheRanksThatShareIt)
{
    limits({{7, 2000}, {7, 2000}});
    EXPECT_FALSE(crowded(2));
    EXPECT_FALSE(rationed);
    limits({{7, 2000}});
    EXPECT_TRUE(crowded(3));
    EXPECT_TRUE(rationed);
    EXPECT_EQ(said, "3 ranks on an unknown number of CPUs, and a cgroup gives 3 of them the time "
                    "of 2: who waits yields at once");
}

TEST_F(Crowd, AQuotaOfItsOwnForEachRank)
{
    for (uint64_t rank = 1; rank <= 8; rank++)
        limits({{rank, 1000}});
    EXPECT_FALSE(crowded(8));
    limits({{100, 500}});
    EXPECT_TRUE(crowded(9));
}

TEST_F(Crowd, TheQuotaAroundThem)
{
    for (uint64_t rank = 1; rank <= 4; rank++)
        limits({{rank, 1000}, {100, 4500}});
    EXPECT_FALSE(crowded(4));
    limits({{5, 1000}, {100, 4500}});
    EXPECT_TRUE(crowded(5));
}

TEST_F(Crowd, MoreCgroupsThanCanBeCounted)
{
    for (uint64_t rank = 1; rank <= 2000; rank++)
        limits({{rank, 1000}});
    EXPECT_FALSE(crowded(2000));
    limits({{1, 1000}});
    EXPECT_TRUE(crowded(2001));
}

TEST_F(Crowd, MoreRanksThanCpus)
{
    collx_cpu_limit limit;
    if (collx_cpus_limits("", 0, &limit, 1))
        GTEST_SKIP() << "this process has a quota of its own, and would count it";

    /* In a process of its own, which has not been in a crowd yet. */
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            bind(1);
            collx_crowd_join(segment, 0);
            std::cerr << crowded(1) << rationed << " " << said << "\n";
            collx_crowd_join(segment, 0);
            std::cerr << crowded(2) << rationed << " " << said << "\n";
            memset(segment, 0, sizeof segment);
            collx_crowd_join(segment, 0);
            std::cerr << crowded(1) << rationed << " " << said << "\n";
            _exit(0);
        },
        testing::ExitedWithCode(0),
        "^00 1 rank on 1 CPU: who waits yields after [0-9]+ polls\n"
        "10 2 ranks on 1 CPU: who waits yields at once\n"
        /* Some of these ranks alone have the others beside them all the same. */
        "10 1 rank on 1 CPU, with others beside them: who waits yields at once\n$");
}

TEST_F(Crowd, UpToFourRanksForEachCpuTellWhereTheyRun)
{
    collx_team team = {};
    if (CPU_COUNT(&before) < 2)
        GTEST_SKIP() << "there is one CPU alone";
    auto tell = [&](int ranks, int size) {
        team.size = size;
        collx_crowd_decide(segment, ranks, &team);
        return team.seen != nullptr;
    };

    bind(2);
    collx_crowd_join(segment, 0);
    EXPECT_TRUE(tell(3, 3));
    EXPECT_TRUE(tell(4, 4));
    char text[256];
    EXPECT_STREQ(collx_crowd_explain(segment, 4, &team, text, sizeof text),
                 "4 ranks on 2 CPUs: who waits yields at once to ranks on its CPU");
    EXPECT_TRUE(tell(8, 8));
    EXPECT_FALSE(tell(9, 9));
    EXPECT_FALSE(tell(4, 8)); /* the others are on another node */
    /* Many, on as many CPUs as fit: those are in the segment's second line. */
    const uint64_t cpus = (uint64_t{1} << 33) - 1;
    memcpy(segment + COLLX_LINE, &cpus, sizeof cpus);
    EXPECT_TRUE(tell(64, 64));
    EXPECT_FALSE(tell(65, 65));
    memset(segment, 0, COLLX_LINE * 2);
    collx_crowd_join(segment, 0);
    /* Of some that nobody sees, there may be up to two for each CPU in all. */
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
    EXPECT_TRUE(tell(3, 3));
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5", 1);
    EXPECT_FALSE(tell(4, 4));
    EXPECT_TRUE(tell(5, 5));
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "8", 1);
    EXPECT_FALSE(tell(4, 4));
}

} // namespace
