/* Barriers between nodes, without MPI: over shared memory, over Dolphin's library (through the one
 * that stands in for it, with checks that fail), and over messages; ranks that are late, in any
 * layout, as processes and as threads; and what is said, or returned, if somebody does not come. */
#include "tests/ways.h"

extern "C" {
#include "algorithms/between/crossroads.h"
#include "base/options.h"
extern const collx_algorithm collx_barrier_nx, collx_barrier_hsb;
}

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

#ifdef __SANITIZE_THREAD__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
constexpr int rounds = 400 / slower;

const std::vector<Form> forms =
    forms_of(COLLX_BARRIER, {{"nx_2", &collx_barrier_nx, {2}},
                             {"nx_2_exchange", &collx_barrier_nx, {2, 1}},
                             {"nx_3_exchange", &collx_barrier_nx, {3, 1}},
                             {"hsb_2_3", &collx_barrier_hsb, {2, 3}}});

/* The node of each rank. */
const std::vector<int> layouts[] = {
    {0, 1},
    {0, 0, 1},
    {0, 1, 2},
    {0, 1, 0, 1},
    {0, 0, 0, 1, 2},
    {0, 1, 2, 3, 4, 5},
    {0, 1, 2, 0, 1, 2, 0},
    {0, 1, 2, 3, 4, 5, 6, 7},
    {0, 1, 1, 2, 2, 2, 3, 3, 4},
    {0, 1, 2, 3, 4, 5, 6, 7, 8},
};

class Between : public OnWays
{
  protected:
    ~Between() override
    {
        munmap(shared, 4096);
    }

    void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
};

TEST_P(Between, NobodyLeavesBeforeTheLastHasEntered)
{
    auto *entered = static_cast<std::atomic<int> *>(shared);

    EXPECT_EQ("", run([&](Rank &self) {
                  std::minstd_rand dice(static_cast<unsigned>(self.team.rank + 1));
                  for (int round = 1; round <= rounds; round++) {
                      if (dice() % 16 == 0)
                          usleep(static_cast<useconds_t>(dice() % 200));
                      entered[self.team.rank].store(round, std::memory_order_relaxed);
                      if (self.barrier())
                          return "an error in round " + std::to_string(round);
                      for (int rank = 0; rank < self.team.size; rank++)
                          if (int at = entered[rank].load(std::memory_order_relaxed);
                              at < round || at > round + 1)
                              return "left round " + std::to_string(round) + " with rank " +
                                     std::to_string(rank) + " in " + std::to_string(at);
                  }
                  return std::string();
              }));
}

/* Plain memory, written before and read after.  ThreadSanitizer does not know that a segment's
 * two mappings are the same memory. */
TEST_P(Between, OrdersMemory)
{
    if (sanitized && GetParam().way.over != COLLX_OVER_P2P)
        GTEST_SKIP() << "the sanitizer cannot follow flags from mapping to mapping";
    auto *data = static_cast<int *>(shared);

    EXPECT_EQ("", run([&](Rank &self) {
                  for (int round = 1; round <= rounds / 4; round++) {
                      data[self.team.rank] = round;
                      self.barrier();
                      for (int rank = 0; rank < self.team.size; rank++)
                          if (data[rank] != round)
                              return "old data in round " + std::to_string(round);
                      self.barrier();
                  }
                  return std::string();
              }));
}

INSTANTIATE_TEST_SUITE_P(All, Between, testing::ValuesIn(cases(layouts, forms, 7)), name_of);

/* An algorithm that is the crossroads alone, with epochs that are about to wrap around. */
constexpr uint32_t before_wrap = 20;

int wrap_attach(collx_team *team, const collx_args *args, void *, collx_slot *slot)
{
    auto *crossroads = new collx_crossroads;
    collx_pattern pattern;

    collx_nx_dissemination(&pattern, team->size, 2);
    slot->state = crossroads;
    slot->run = [](collx_slot *self, collx_call *) {
        return collx_crossroads_cross(static_cast<collx_crossroads *>(self->state));
    };
    return collx_crossroads_init(crossroads, team, &pattern, args->value[0]);
}

int wrap_connect(collx_team *team, collx_slot *slot, char *why, size_t size)
{
    auto *crossroads = static_cast<collx_crossroads *>(slot->state);
    collx_seg_runner &runner = crossroads->segments;
    std::vector<int> all(static_cast<size_t>(team->size));

    if (int error = collx_crossroads_connect(crossroads, why, size))
        return error;
    runner.epoch = 0u - before_wrap;
    const collx_seg_links &links = crossroads->links;
    for (size_t slots = links.bytes / links.caps.line, i = 0; i < slots; i++)
        memcpy(static_cast<char *>(links.local) + collx_seg_flag(i, links.caps.line), &runner.epoch,
               sizeof runner.epoch);
    return team->ops->gather(team->ctx, &team->rank, all.data(), sizeof(int));
}

void wrap_detach(void *state)
{
    collx_crossroads_finish(static_cast<collx_crossroads *>(state));
    delete static_cast<collx_crossroads *>(state);
}

const collx_param wrap_params[] = {COLLX_OVER_PARAM, {}};

TEST(Crossroads, EpochsWrapAround)
{
    collx_algorithm wrap = {};
    wrap.params = wrap_params;
    wrap.attach = wrap_attach;
    wrap.connect = wrap_connect;
    wrap.detach = wrap_detach;
    for (const Way &way : {Way{"shm", COLLX_OVER_SHM, {}}, sisci("sisci", 30)}) {
        Folder folder;
        auto variables = way.environment;
        variables.emplace_back("COLLX_TEST_SISCI_FOLDER", folder.path);
        Environment environment(variables);
        collx_args args = {{way.over}};
        auto *entered = static_cast<std::atomic<uint32_t> *>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        EXPECT_EQ("", run_team(&wrap, 4, Ranks::processes, true,
                               [&](Rank &self) {
                                   for (uint32_t round = 1; round <= 3 * before_wrap; round++) {
                                       entered[self.team.rank] = round;
                                       self.barrier();
                                       for (int rank = 0; rank < self.team.size; rank++)
                                           if (uint32_t at = entered[rank]; at - round > 1)
                                               return "left round " + std::to_string(round) +
                                                      " early";
                                   }
                                   return std::string();
                               },
                               &args, nullptr, {0, 1, 2, 3}))
            << way.name;
        munmap(entered, 4096);
        EXPECT_EQ(folder.files(), std::vector<std::string>());
    }
}

/* What a leader chooses by itself: what all can use, and why not something better. */
TEST(Crossroads, TakesWhatWorksForAll)
{
    struct {
        std::string library, says;
    } cases[] = {
        {"", "flags of 2 nodes cross by shm"},
        {COLLX_TEST_SISCI, "flags of 2 nodes cross by sisci"},
        {"/nonexistent/libsisci.so", "flags of 2 nodes cross by shm, not by sisci on rank 0: "},
    };
    for (const auto &c : cases) {
        Folder folder;
        Environment environment(
            {{"COLLX_SISCI_LIBRARY", c.library}, {"COLLX_TEST_SISCI_FOLDER", folder.path}});
        EXPECT_EQ("", run_team(&collx_barrier_nx, 3, Ranks::processes, true,
                               [&](Rank &self) {
                                   char text[512] = "";
                                   self.algorithm->describe(self.slot.state, text, sizeof text);
                                   if (self.barrier() || self.barrier())
                                       return std::string("an error");
                                   return self.team.rank || std::string(text).find(c.says) !=
                                                                std::string::npos
                                              ? std::string()
                                              : "it said: " + std::string(text);
                               },
                               nullptr, nullptr, {0, 0, 1}));
    }
}

/* Nor need all leaders name Dolphin's library to try it: what one of them wishes, all do. */
TEST(Crossroads, TakeTheLibraryThatOneLeaderNames)
{
    Folder folder;
    Environment environment(
        {{"COLLX_SISCI_LIBRARY", ""}, {"COLLX_TEST_SISCI_FOLDER", folder.path}});
    collx_algorithm nx = collx_barrier_nx;

    /* There it is none, so all go on to what is next, and tell that they have tried. */
    nx.attach = [](collx_team *team, const collx_args *args, void *memory, collx_slot *slot) {
        if (team->rank == 2) {
            setenv("COLLX_SISCI_LIBRARY", "/nonexistent/libsisci.so", 1);
            collx_options_load(environ, nullptr);
        }
        return collx_barrier_nx.attach(team, args, memory, slot);
    };
    EXPECT_EQ("", run_team(&nx, 3, Ranks::processes, true,
                           [](Rank &self) {
                               char text[512] = "";
                               self.algorithm->describe(self.slot.state, text, sizeof text);
                               if (self.barrier() || self.barrier())
                                   return std::string("an error");
                               return self.team.rank || std::string(text).find(
                                                            "cross by shm, not by sisci "
                                                            "on rank ") != std::string::npos
                                          ? std::string()
                                          : "it said: " + std::string(text);
                           },
                           nullptr, nullptr, {0, 1, 2}));
}

/* What only one leader cannot do is done by nobody, and all know why. */
TEST(Crossroads, IsRefusedByAllIfOneCannot)
{
    static constexpr char missing[] = "/nonexistent/libsisci.so";
    Folder folder;
    Environment environment(
        {{"COLLX_SISCI_LIBRARY", COLLX_TEST_SISCI}, {"COLLX_TEST_SISCI_FOLDER", folder.path}});
    collx_algorithm nx = collx_barrier_nx;

    nx.attach = [](collx_team *team, const collx_args *args, void *memory, collx_slot *slot) {
        if (team->rank == 1) {
            setenv("COLLX_SISCI_LIBRARY", missing, 1);
            collx_options_load(environ, nullptr);
        }
        return collx_barrier_nx.attach(team, args, memory, slot);
    };
    nx.connect = [](collx_team *team, collx_slot *slot, char *why, size_t size) {
        if (!collx_barrier_nx.connect(team, slot, why, size))
            return 1;
        std::string reason = why;
        return reason.find("sisci on rank 1: ") == 0 && reason.find(missing) != std::string::npos
                   ? 0
                   : 1;
    };
    collx_args args = {{0, 0, COLLX_OVER_SISCI}};
    EXPECT_EQ("", run_team(&nx, 4, Ranks::processes, true, [](Rank &) { return std::string(); },
                           &args, nullptr, {0, 1, 1, 2}));
    EXPECT_EQ(folder.files(), std::vector<std::string>());
}

/* Ranks 0 and 1 are on one node, 2 and 3 on another. */
struct Late {
    int late;
    std::vector<std::string> said;
};

class BetweenLate : public testing::TestWithParam<Late>
{
};

TEST_P(BetweenLate, IsSaidToBe)
{
    const Late &late = GetParam();
    /* Who has said it. */
    auto *said = static_cast<std::atomic<uint32_t> *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

    testing::internal::CaptureStderr();
    std::string wrong =
        run_team(&collx_barrier_nx, 4, Ranks::processes, true,
                 [&](Rank &self) {
                     self.barrier();
                     self.team.stall_ms = 250;
                     self.team.stall_said = reinterpret_cast<uint32_t *>(&said[self.team.rank]);
                     auto all_said = [&] { return said[0] + said[1] + said[2] + said[3]; };
                     while (self.team.rank == late.late && all_said() < late.said.size())
                         usleep(1000);
                     self.barrier();
                     return std::string();
                 },
                 nullptr, nullptr, {0, 0, 1, 1});
    std::string text = testing::internal::GetCapturedStderr();
    munmap(said, 4096);
    EXPECT_EQ(wrong, "");
    for (const std::string &words : late.said)
        EXPECT_TRUE(testing::internal::RE::PartialMatch(text, words)) << words << "\nis not in\n"
                                                                      << text;
}

const char hearsay[] = ", or others that these wait for. Have they";

INSTANTIATE_TEST_SUITE_P(
    All, BetweenLate,
    testing::Values(
        Late{1,
             {"rank 0 of a test has waited [1-9][0-9]* m?s in MPI_Barrier for rank 1. Have they",
              std::string("rank 2 of a test has waited [1-9][0-9]* m?s in MPI_Barrier for rank "
                          "0") +
                  hearsay}},
        Late{2,
             {"rank 3 of a test has waited [1-9][0-9]* m?s in MPI_Barrier for rank 2. Have they",
              std::string("rank 0 of a test has waited [1-9][0-9]* m?s in MPI_Barrier for rank "
                          "2") +
                  hearsay}}),
    [](const auto &info) { return "rank_" + std::to_string(info.param.late); });

TEST(Crossroads, ADeadNodeIsAnError)
{
    expect_dead_node_is_error({"nx", &collx_barrier_nx, {}},
                              [](Rank &self) { return self.barrier(); });
}

} // namespace
