/* What hwloc says of machines, real and described, and what becomes of ranks that are bound there
 * in all the ways that launchers have. */
#include "tests/plans.h"

extern "C" {
#include "base/error.h"
#include "hw/shm.h"
#include "hw/topology.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

struct Topology {
    collx_topology *topology = nullptr;
    char why[512] = "";

    explicit Topology(const char *description)
    {
        EXPECT_EQ(0, collx_topology_create(description, &topology, why, sizeof why)) << why;
    }
    Topology(const Topology &) = delete;
    Topology &operator=(const Topology &) = delete;
    ~Topology()
    {
        collx_topology_destroy(topology);
    }
    collx_machine count() const
    {
        return collx_topology_count(topology);
    }
    /* Of who is bound to these CPUs. */
    collx_place bound_to(int first, int last) const
    {
        std::vector<unsigned long> mask(64);
        for (int cpu = first; cpu <= last; cpu++)
            mask[cpu / 64] |= 1ul << cpu % 64;
        return collx_topology_place(topology, mask.data(), 64);
    }
};

std::string text(const collx_place &place)
{
    return std::to_string(place.package) + " " + std::to_string(place.numa) + " " +
           std::to_string(place.cache);
}

TEST(Topology, CountsWhatAMachineHas)
{
    Topology epyc("package:2 numa:4 l3:2 core:8 pu:2"), plain("package:1 core:4 pu:1");
    Topology tiles("package:1 l2:8 core:2 pu:1"), own_l2("package:1 l2:8 core:1 pu:1");
    collx_machine big = epyc.count();

    EXPECT_EQ(big.packages, 2);
    EXPECT_EQ(big.numa_nodes, 8);
    EXPECT_EQ(big.caches, 16);
    EXPECT_EQ(big.cores, 128);
    EXPECT_EQ(big.cpus, 256);
    EXPECT_EQ(plain.count().caches, 0);
    EXPECT_EQ(tiles.count().caches, 8) << "without L3 the last cache is a shared L2";
    EXPECT_EQ(own_l2.count().caches, 0) << "nobody shares those";
}

TEST(Topology, PlacesByWhatSomebodyIsBoundTo)
{
    Topology machine("package:2 numa:2 l3:2 core:4 pu:2"); /* 8 CPUs a cache, 16 a NUMA node */

    EXPECT_EQ(text(machine.bound_to(0, 0)), "0 0 0");
    EXPECT_EQ(text(machine.bound_to(10, 11)), "0 0 8") << "a core";
    EXPECT_EQ(text(machine.bound_to(63, 63)), "32 3 56");
    EXPECT_EQ(text(machine.bound_to(8, 15)), "0 0 8") << "a cache";
    EXPECT_EQ(text(machine.bound_to(0, 15)), "0 0 -1") << "a NUMA node: two caches";
    EXPECT_EQ(text(machine.bound_to(32, 63)), "32 -1 -1") << "a package";
    EXPECT_EQ(text(machine.bound_to(6, 9)), "0 0 -1") << "a bit of two caches";
    EXPECT_EQ(text(machine.bound_to(31, 32)), "-1 -1 -1") << "a bit of two packages";
    EXPECT_EQ(text(machine.bound_to(0, 63)), "-1 -1 -1") << "not bound";
    EXPECT_EQ(text(machine.bound_to(56, 2000)), "32 3 56") << "CPUs that are not there";
    EXPECT_EQ(text(machine.bound_to(100, 99)), "-1 -1 -1") << "nothing";
    EXPECT_EQ(text(collx_topology_core(machine.topology, 5)), "0 0 8");
    EXPECT_EQ(text(collx_topology_core(machine.topology, 32)), "-1 -1 -1") << "no such core";
}

TEST(Topology, OneNumaNodeIsEverybodys)
{
    Topology machine("package:2 l3:1 core:4 pu:1");

    EXPECT_EQ(text(machine.bound_to(0, 7)), "-1 0 -1");
    EXPECT_EQ(text(machine.bound_to(4, 4)), "4 0 4");
}

TEST(Topology, ReadsWhatLstopoWrites)
{
    std::string path = "/tmp/collx-topology-test-" + std::to_string(getpid()) + ".xml";
    std::string command = "lstopo-no-graphics --input 'package:2 l3:2 core:2 pu:1' " + path;

    if (system((command + " >/dev/null 2>&1").c_str()))
        GTEST_SKIP() << "no lstopo-no-graphics; Debian's hwloc-nox has it";
    Topology machine(path.c_str());
    unlink(path.c_str());
    EXPECT_EQ(machine.count().packages, 2);
    EXPECT_EQ(text(machine.bound_to(7, 7)), "4 0 6");
}

TEST(Topology, SaysWhatIsWrong)
{
    char why[512] = "";
    collx_topology *topology;

    for (const char *wrong : {"pakage:2", "/etc/hostname", "/nowhere.xml"}) {
        EXPECT_EQ(COLLX_EUNFIT, collx_topology_create(wrong, &topology, why, sizeof why));
        EXPECT_EQ(topology, nullptr);
        EXPECT_NE(std::string(why).find(std::string("'") + wrong + "' is no machine"),
                  std::string::npos)
            << why;
    }
}

/* This machine, whatever it is. */
TEST(Topology, KnowsWhereThisProcessIs)
{
    collx_machine machine;
    collx_place place;
    char why[512] = "";
    cpu_set_t before, one;

    ASSERT_EQ(0, sched_getaffinity(0, sizeof before, &before));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
    EXPECT_EQ(0, collx_topology_find("", 0, &machine, &place, why, sizeof why)) << why;
    cpu_set_t after;
    ASSERT_EQ(0, sched_getaffinity(0, sizeof after, &after));
    EXPECT_TRUE(CPU_EQUAL(&one, &after)) << "looking moved the thread";
    sched_setaffinity(0, sizeof before, &before);

    EXPECT_GE(machine.cpus, 1);
    EXPECT_LE(place.package, cpu);
    EXPECT_LE(place.cache, cpu);
    Topology here("");
    EXPECT_EQ(text(place), text(here.bound_to(cpu, cpu)));
}

TEST(Topology, PretendsOneRankACore)
{
    collx_machine machine;
    collx_place place;
    char why[512] = "";

    ASSERT_EQ(0, collx_topology_find("package:2 l3:1 core:4 pu:2", 13, &machine, &place, why,
                                     sizeof why));
    EXPECT_EQ(machine.cores, 8);
    EXPECT_EQ(text(place), "8 0 8") << "rank 13 is on core 5";
}

/* Ranks as launchers bind them. */
enum class Bound { core, core_in_turn, package_in_turn, nowhere, mixed };

Places bind(const Topology &machine, int ranks, Bound how)
{
    const collx_machine has = machine.count();
    const int per_core = has.cpus / has.cores, per_package = has.cpus / has.packages;
    Places places;

    for (int rank = 0; rank < ranks; rank++) {
        int cpu = rank % has.cores * per_core;
        int package = rank % has.packages;
        int turn = package * per_package + rank / has.packages * per_core % per_package;
        bool bound = how != Bound::nowhere && (how != Bound::mixed || rank % 3);
        if (!bound)
            places.push_back(machine.bound_to(0, has.cpus - 1));
        else if (how == Bound::core_in_turn)
            places.push_back(machine.bound_to(turn, turn + per_core - 1));
        else if (how == Bound::package_in_turn)
            places.push_back(
                machine.bound_to(package * per_package, (package + 1) * per_package - 1));
        else
            places.push_back(machine.bound_to(cpu, cpu + per_core - 1));
    }
    return places;
}

TEST(Topology, EveryBarrierOnItIsRightAndNotDearerThanFlat)
{
    const char *const machines[] = {
        "package:2 numa:1 l3:4 core:8 pu:1", "package:4 [numa] l3:2 core:6 pu:2",
        "package:1 l3:1 core:32 pu:1",       "package:1 l3:16 core:1 pu:2",
        "package:2 numa:4 l3:2 core:8 pu:2", "package:2 l3:1 core:24 pu:1",
        "package:1 l2:34 core:2 pu:4",       "package:8 l3:1 core:8 pu:1",
    };
    int trees = 0;

    for (const char *description : machines) {
        Topology machine(description);
        const collx_machine has = machine.count();
        for (int ranks : {2, 9, 16, 37, has.cores, has.cpus + 5})
            for (Bound how : {Bound::core, Bound::core_in_turn, Bound::package_in_turn,
                              Bound::nowhere, Bound::mixed}) {
                Places places = bind(machine, ranks, how);
                Plan plan(places), flat(places, 0, COLLX_RADIX_MAX);
                const bool tree = plan.plan.shape.levels > 0;

                trees += tree;
                check_shape(plan.plan.shape, ranks);
                check_plan(plan);
                EXPECT_EQ(plan.plan.far, far_reads(plan, places));
                EXPECT_LE(plan.plan.far, flat.plan.far);
                EXPECT_LE(plan.plan.time * 10, flat.plan.time * (tree ? 9 : 10));
                if (how == Bound::nowhere || (has.packages == 1 && has.caches == 1)) {
                    EXPECT_FALSE(tree) << "nothing is known that could divide them";
                }
                if (tree && how != Bound::mixed) {
                    EXPECT_LE(plan.plan.far, has.packages * (has.packages - 1));
                }
                if (testing::Test::HasFailure())
                    FAIL() << ranks << " ranks on " << description << ", bound as "
                           << static_cast<int>(how);
            }
    }
    EXPECT_GT(trees, 20);
}

/* The policy of a page of shared memory: {mode, node}. */
std::pair<int, int> policy_at(void *page)
{
    unsigned long nodes[16] = {};
    int mode = -1, node = 0;

    EXPECT_EQ(0, syscall(SYS_get_mempolicy, &mode, nodes, 1024ul, page, MPOL_F_ADDR));
    while (node < 1024 && !(nodes[node / 64] >> node % 64 & 1))
        node++;
    return {mode, node};
}

/* There may be one NUMA node only: then what can be seen is that its pages are told so. */
TEST(Placement, WholePagesAreToldWhereToLie)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), pages = 8;
    void *base = nullptr;
    int fd = -1, mode = 0;

    if (syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0))
        GTEST_SKIP() << "the kernel has no memory policies, or does not let us";
    ASSERT_EQ(0, collx_shm_create(pages * page, &base, &fd));
    char *at = static_cast<char *>(base);
    errno = 77;
    collx_shm_place(at + page + 1, 3 * page, 0); /* pages 2 and 3 are all its own */
    collx_shm_place(at + 5 * page, page, 999);   /* no such node */
    collx_shm_place(at + 6 * page, page, -1);
    EXPECT_EQ(errno, 77);
    struct stat status;
    ASSERT_EQ(0, fstat(fd, &status));
    EXPECT_EQ(status.st_blocks, 0) << "it has memory before it was told where";
    ASSERT_EQ(0, collx_shm_allocate(fd, pages * page));
    ASSERT_EQ(0, fstat(fd, &status));
    EXPECT_GE(static_cast<size_t>(status.st_blocks) * 512, pages * page);
    for (size_t i = 0; i < pages; i++) {
        at[i * page] = 1;
        auto [how, node] = policy_at(at + i * page);
        if (i == 2 || i == 3) {
            EXPECT_EQ(how, MPOL_PREFERRED) << i;
            EXPECT_EQ(node, 0) << i;
        } else {
            EXPECT_EQ(how, MPOL_DEFAULT) << i;
        }
    }
    collx_shm_close(base, pages * page);
    close(fd);
}

/* What is not used takes neither time nor, until it is, a page that is filled with zeros. */
TEST(Placement, PagesAreFilledWhenTheyAreTouched)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), pages = 8;
    void *base = nullptr;
    int fd = -1;

    ASSERT_EQ(0, collx_shm_create(pages * page, &base, &fd));
    ASSERT_EQ(0, collx_shm_allocate(fd, pages * page));
    char *at = static_cast<char *>(base);
    auto filled = [&] {
        unsigned char resident[pages];
        EXPECT_EQ(0, mincore(base, pages * page, resident));
        return std::count_if(resident, resident + pages, [](auto each) { return each & 1; });
    };
    EXPECT_EQ(filled(), 0);
    errno = 77;
    collx_shm_touch(at + page + 1, 2 * page); /* of pages 1 to 3 */
    EXPECT_EQ(errno, 77);
    if (madvise(base, 0, 23 /* MADV_POPULATE_WRITE */))
        EXPECT_EQ(filled(), 0) << "a kernel before 5.14";
    else
        EXPECT_EQ(filled(), 3);
    EXPECT_EQ(std::count(at, at + pages * page, 0), static_cast<long>(pages * page));
    collx_shm_close(base, pages * page);
    close(fd);
}

} // namespace
