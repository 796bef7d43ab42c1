/* Every registered algorithm, without MPI: right results for 1 to 9 ranks, with ranks that are
 * late, as processes and as threads, with and without a CPU for each. */
#include "tests/cleared_view.h"
#include "tests/late.h"
#include "tests/machines.h"
#include "tests/team.h"

extern "C" {
#include "algorithms/barrier/barrier_plan.h"
#include "base/options.h"
extern const collx_algorithm collx_barrier_shm;
}

#include <algorithm>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

struct Case {
    const collx_algorithm *algorithm;
    int size;
    Ranks kind;
    bool crowded;
    collx_args args;
    std::string form; /* of the parameters, for the name */
    int packages = 0; /* on which the ranks are said to be; 0: nobody knows */
};

std::string name_of(const testing::TestParamInfo<Case> &info)
{
    const Case &c = info.param;
    return std::string(collx_kind_name(c.algorithm->kind)) + "_" + c.algorithm->name + "_" +
           std::to_string(c.size) + (c.kind == Ranks::threads ? "_threads" : "_processes") +
           (c.crowded ? "_crowded" : "") +
           (c.packages ? "_on_" + std::to_string(c.packages) + "_packages" : "") + c.form;
}

/* The initial parameters, and each value of each that has words; but for what makes a difference
 * between nodes alone, or where it is known who sits with whom: groups_test.cc, relays_test.cc; or
 * for longer messages than there are here. */
bool matters(const collx_param &param, int64_t word)
{
    return word != param.initial && strcmp(param.name, "over") && strcmp(param.name, "groups") &&
           (strcmp(param.name, "past_caches") || !strcmp(param.words[word], "always"));
}

std::vector<std::pair<collx_args, std::string>> forms(const collx_algorithm *algorithm)
{
    const collx_param *param = algorithm->params;
    std::vector<std::pair<collx_args, std::string>> all(1);

    for (int i = 0; param && param[i].name; i++)
        all[0].first.value[i] = param[i].initial;
    for (int i = 0; param && param[i].name; i++)
        for (int64_t word = 0; param[i].words && param[i].words[word]; word++)
            if (matters(param[i], word)) {
                all.push_back(
                    {all[0].first, std::string("_") + param[i].name + "_" + param[i].words[word]});
                all.back().first.value[i] = word;
            }
    return all;
}

/* It is the same code but for how the last copy stores: two ranks, a few, and many. */
bool is_spared(const std::string &form, int size)
{
    return form == "_past_caches_always" && size != 2 && size != 3 && size != 9;
}

/* Ranks spin only where there is a CPU for each. */
std::vector<Case> cases(collx_kind kind)
{
    std::vector<Case> all;

    for (int i = 0; collx_algorithms[i]; i++) {
        /* What needs a board has tests of its own: hwbarrier_test.cc. */
        if (collx_algorithms[i]->kind != kind || !strcmp(collx_algorithms[i]->name, "hwbarrier"))
            continue;
        for (int size = 1; size <= 9; size++)
            for (Ranks ranks : all_kinds)
                for (bool crowded : {false, true})
                    for (const auto &form : forms(collx_algorithms[i]))
                        if ((crowded || size <= sysconf(_SC_NPROCESSORS_ONLN)) &&
                            !is_spared(form.second, size))
                            all.push_back({collx_algorithms[i], size, ranks, crowded, form.first,
                                           form.second});
    }
    return all;
}

/* Ranks that are said to be on several packages, so that they do what they would do there. */
std::vector<Case> placed_cases(collx_kind kind)
{
    std::vector<Case> all;

    for (int i = 0; collx_algorithms[i]; i++) {
        /* What connects is for nodes, and does the same wherever on them its ranks are. */
        if (collx_algorithms[i]->kind != kind || collx_algorithms[i]->connect)
            continue;
        for (int size : {2, 8, 9, 13, 16, 32})
            for (int packages : {2, 4})
                for (Ranks ranks : all_kinds)
                    for (bool crowded : {false, true})
                        all.push_back({collx_algorithms[i], size, ranks, crowded,
                                       forms(collx_algorithms[i])[0].first, "", packages});
    }
    return all;
}

/* Sixteen cores in all; or two caches each, which is worth another level only for more ranks. */
std::vector<collx_place> places_of(const Case &c)
{
    return c.size > 16 ? ranks_on(c.size, c.packages, 8 / c.packages, 4)
                       : ranks_on(c.size, c.packages, 1, 16 / c.packages);
}

std::string run_case(const Case &c, const std::function<std::string(Rank &)> &body)
{
    char why[100];

    /* Whatever CPU this is, one kind returns lines, where it is cheap, and two ranks swing; of one
     * kind alone, that one. */
    if (collx_option_set("return", c.kind == all_kinds[0] ? "on" : "off", why, sizeof why))
        return why;
    if (!c.packages)
        return run_team(c.algorithm, c.size, c.kind, c.crowded, body, &c.args);
    return run_team(c.algorithm, c.size, c.kind, c.crowded, body, &c.args, places_of(c).data());
}

/* The same numbers on all ranks, other ones for each seed. */
class Dice
{
    std::minstd_rand engine;

  public:
    explicit Dice(unsigned seed) : engine(seed * 2654435761u + 1)
    {
    }
    uint64_t below(uint64_t n)
    {
        return engine() % n;
    }
};

/* Now and then a rank is late. */
void dawdle(Dice &own)
{
    if (own.below(16) == 0)
        usleep(static_cast<useconds_t>(own.below(200)));
}

/* Many ranks on few CPUs take long for each, and meet in more ways in each. */
int rounds_of(int most, int ranks)
{
    return most * 4 / std::max(ranks, 4) / slower;
}

class Barrier : public testing::TestWithParam<Case>
{
};

TEST_P(Barrier, NobodyLeavesBeforeTheLastHasEntered)
{
    const Case &c = GetParam();
    auto *arrived = static_cast<std::atomic<int> *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

    EXPECT_EQ("", run_case(c, [&](Rank &self) {
                  Dice own(self.team.rank);
                  for (int round = 1; round <= rounds_of(1000, c.size); round++) {
                      dawdle(own);
                      arrived[self.team.rank].store(round, std::memory_order_relaxed);
                      if (self.barrier())
                          return at("an error", round);
                      for (int rank = 0; rank < self.team.size; rank++)
                          if (arrived[rank].load(std::memory_order_relaxed) < round)
                              return at("left early", round);
                  }
                  return std::string();
              }));
    munmap(arrived, 4096);
}

#ifndef __SANITIZE_ADDRESS__
/* Plain memory, written before and read after: ThreadSanitizer sees whether a barrier orders them.
 */
TEST_P(Barrier, OrdersMemory)
{
    const Case &c = GetParam();
    auto *data = static_cast<int *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

    EXPECT_EQ("", run_case(c, [&](Rank &self) {
                  for (int round = 1; round <= rounds_of(200, c.size); round++) {
                      data[self.team.rank] = round;
                      self.barrier();
                      for (int rank = 0; rank < self.team.size; rank++)
                          if (data[rank] != round)
                              return at("old data", round);
                      self.barrier();
                  }
                  return std::string();
              }));
    munmap(data, 4096);
}
#endif

INSTANTIATE_TEST_SUITE_P(All, Barrier, testing::ValuesIn(cases(COLLX_BARRIER)), name_of);
/* Else the cases below would prove nothing about trees. */
TEST(PlacedBarrier, IsATree)
{
    for (const Case &c : placed_cases(COLLX_BARRIER)) {
        collx_barrier_plan plan;
        ASSERT_EQ(0, collx_barrier_plan_choose(&plan, places_of(c).data(), c.size));
        int levels = c.size > 16 && c.packages == 4 ? 2 : c.size > COLLX_RADIX_MAX && c.size <= 16;
        EXPECT_EQ(plan.shape.levels, levels) << c.size << " ranks on " << c.packages << " packages";
        collx_barrier_plan_finish(&plan);
    }
}

/* Most ranks wait for a leader, or for one that waits itself: neither is late. */
TEST(PlacedBarrier, SaysWhoIsLateAndNotWhomItWaitsFor)
{
    for (unsigned size : {13, 32})
        for (bool placed : {false, true}) {
            Case c = {&collx_barrier_shm, static_cast<int>(size), Ranks::processes, true, {}, "",
                      placed ? 4 : 0};
            const int late = 11;

            expect_said(
                " s in MPI_Barrier for rank 11. Have they stopped",
                [&](int stall_ms, LateBoard &board) {
                    std::atomic<uint32_t> &said = board[0], &ready = board[1];
                    return run_case(c, [&](Rank &self) {
                        self.barrier();
                        self.team.stall_ms = stall_ms;
                        self.team.stall_said = reinterpret_cast<uint32_t *>(&said);
                        if (self.team.rank != late)
                            ready++;
                        while (self.team.rank == late ? !said : ready < size - 1)
                            usleep(1000);
                        self.barrier();
                        return std::string();
                    });
                },
                8000);
        }
}

INSTANTIATE_TEST_SUITE_P(Placed, Barrier, testing::ValuesIn(placed_cases(COLLX_BARRIER)), name_of);

const size_t sizes[] = {0,    1,     2,     7,     8,     9,     15,     16,     17,
                        51,   52,    53,    64,    104,   105,   312,    313,    1000,
                        4095, 4096,  4097,  32767, 32768, 32769, 65536,  65537,  8192,
                        8191, 99999, 16384, 32776, 40000, 98304, 131072, 262147, 300001};

/* One after the other; with a sanitizer, which has fewer rounds, some with each number of ranks. */
size_t nth_size(int n, const Case &c)
{
    return sizes[static_cast<size_t>(n + 4 * c.size) % std::size(sizes)];
}

const Pattern pattern(300001);

/* Of elements in a Bcast, in bytes: what all have whole numbers of, and what a rank may have. */
const size_t wholes[] = {1, 1, 4, 24}, parts[] = {1, 4, 8, 24};

/* Between how elements that are not contiguous lie and how they travel. */
void turn(unsigned char *data, size_t bytes, size_t each)
{
    for (size_t i = 0; each > 1 && i < bytes; i += each)
        std::reverse(data + i, data + i + each);
}

class Bcast : public testing::TestWithParam<Case>
{
};

TEST_P(Bcast, EverybodyHasTheRootsBytes)
{
    const Case &c = GetParam();

    EXPECT_EQ("", run_case(c, [&](Rank &self) {
                  Dice shared(1), own(100 + self.team.rank);
                  std::vector<unsigned char> buf(300064);
                  for (int round = 0; round < 300 / slower; round++) {
                      size_t bytes = nth_size(round / 3, c);
                      if (round % 3)
                          bytes = shared.below(round % 2 ? 200 : 400);
                      int root = static_cast<int>(shared.below(self.team.size));
                      size_t unit = wholes[shared.below(std::size(wholes))];
                      bytes = bytes / unit * unit;
                      /* Each rank has its own type for these bytes. */
                      size_t each = parts[own.below(std::size(parts))];
                      while (unit % each)
                          each /= 2;
                      bool contiguous = each == 1 || own.below(2);
                      unsigned char *at_offset = &buf[round % 13];
                      memset(at_offset, 0xee, bytes + 8);
                      if (self.team.rank == root) {
                          memcpy(at_offset, pattern.of(round), bytes);
                          turn(at_offset, bytes, contiguous ? 1 : each);
                      }
                      dawdle(own);
                      if (self.bcast(at_offset, bytes, root, contiguous, each))
                          return at("an error", round);
                      turn(at_offset, bytes, contiguous ? 1 : each);
                      if (std::string wrong = pattern.compare(at_offset, bytes, round);
                          !wrong.empty())
                          return wrong;
                      for (size_t i = bytes; i < bytes + 8; i++)
                          if (at_offset[i] != 0xee)
                              return at("a byte behind the buffer was written", round);
                  }
                  return std::string();
              }));
}

INSTANTIATE_TEST_SUITE_P(All, Bcast, testing::ValuesIn(cases(COLLX_BCAST)), name_of);

class Allreduce : public testing::TestWithParam<Case>
{
};

TEST_P(Allreduce, SumsUp)
{
    const Case &c = GetParam();

    EXPECT_EQ("", run_case(c, [&](Rank &self) {
                  Dice shared(2), own(200 + self.team.rank);
                  const int n = self.team.size;
                  std::vector<int64_t> send(40000), receive(40000);
                  for (int round = 0; round < 200 / slower; round++) {
                      int64_t count = static_cast<int64_t>(nth_size(round / 3, c) / 8);
                      if (round % 3)
                          count = static_cast<int64_t>(shared.below(20));
                      bool in_place = shared.below(2);
                      std::vector<int64_t> &source = in_place ? receive : send;
                      for (int64_t i = 0; i <= count; i++) {
                          receive[i] = -1;
                          source[i] = i * 1000 + round + self.team.rank;
                      }
                      dawdle(own);
                      if (self.sum(source.data(), receive.data(), count))
                          return at("an error", round);
                      for (int64_t i = 0; i < count; i++)
                          if (receive[i] != n * (i * 1000 + round) + n * (n - 1) / 2)
                              return at("a wrong sum", round) + ", element " + std::to_string(i) +
                                     " of " + std::to_string(count);
                      if (!in_place && receive[count] != -1)
                          return at("an element behind the buffer was written", round);
                  }
                  return std::string();
              }));
}

/* Elements are packed (their bytes reversed) and combined by the lender, in an order that shows. */
TEST_P(Allreduce, CombinesInRankOrder)
{
    const Case &c = GetParam();

    EXPECT_EQ("", run_case(c, [&](Rank &self) {
                  Dice shared(3), own(300 + self.team.rank);
                  auto of = [](int rank, int64_t i) {
                      return Affine{static_cast<uint64_t>(2 * rank + 3),
                                    static_cast<uint64_t>(i + 17 * rank)};
                  };
                  std::vector<Affine> send(10000), receive(10000);
                  for (int round = 0; round < 60 / slower; round++) {
                      int64_t count =
                          static_cast<int64_t>(shared.below(round % 4 ? 20 : send.size()));
                      for (int64_t i = 0; i < count; i++)
                          send[i] = of(self.team.rank, i);
                      dawdle(own);
                      if (self.compose(send.data(), receive.data(), count))
                          return at("an error", round);
                      for (int64_t i = 0; i < count; i++) {
                          Affine right = of(0, i);
                          for (int rank = 1; rank < self.team.size; rank++)
                              right = after(right, of(rank, i));
                          if (receive[i].a != right.a || receive[i].b != right.b)
                              return at("a wrong composition", round) + ", element " +
                                     std::to_string(i) + " of " + std::to_string(count);
                      }
                  }
                  return std::string();
              }));
}

INSTANTIATE_TEST_SUITE_P(All, Allreduce, testing::ValuesIn(cases(COLLX_ALLREDUCE)), name_of);

/* As if each had a CPU, whatever there is: of three ranks and more short vectors go in numbered
 * lines then. */
INSTANTIATE_TEST_SUITE_P(
    Numbered, Allreduce, testing::ValuesIn([] {
        std::vector<Case> all;
        for (int size : {3, 4})
            for (Ranks ranks : all_kinds)
                all.push_back(
                    {collx_algorithm_find(COLLX_ALLREDUCE, "shm"), size, ranks, false, {}, ""});
        return all;
    }()),
    name_of);

/* What counts calls in 8 or 16 bits, or has room for so many, begins again somewhere. */
class ManyCalls : public testing::TestWithParam<Case>
{
};

TEST_P(ManyCalls, AreAllRight)
{
    enum { CALLS = 70000 };
    const Case &c = GetParam();
    auto *arrived = static_cast<std::atomic<int> *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

    EXPECT_EQ("", run_case(c, [&](Rank &self) {
                  const int me = self.team.rank, n = self.team.size;
                  for (int round = 1; round <= CALLS / slower; round++) {
                      int64_t value = 3 * round + me, sum = 0;
                      int error = 0;
                      switch (c.algorithm->kind) {
                      case COLLX_BARRIER:
                          arrived[me].store(round, std::memory_order_relaxed);
                          error = self.barrier();
                          for (int rank = 0; rank < n; rank++)
                              if (arrived[rank].load(std::memory_order_relaxed) < round)
                                  return at("left early", round);
                          break;
                      case COLLX_BCAST:
                          error = self.bcast(&value, sizeof value, round % 7 % n);
                          if (value != 3 * round + round % 7 % n)
                              return at("wrong bytes", round);
                          break;
                      default:
                          error = self.sum(&value, &sum, 1);
                          if (sum != 3 * round * n + n * (n - 1) / 2)
                              return at("a wrong sum", round);
                      }
                      if (error)
                          return at("an error", round);
                  }
                  return std::string();
              }));
    munmap(arrived, 4096);
}

INSTANTIATE_TEST_SUITE_P(All, ManyCalls, testing::ValuesIn([] {
                             std::vector<Case> all;
                             for (collx_kind kind : {COLLX_BARRIER, COLLX_BCAST, COLLX_ALLREDUCE})
                                 for (const Case &c : cases(kind))
                                     if (c.kind == all_kinds[0] && c.form.empty() &&
                                         (c.size == 3 || (c.size == 2 && !c.crowded)))
                                         all.push_back(c);
                             return all;
                         }()),
                         name_of);

/* Ranks that disagreed about which of these calls is tried, or goes which way, would wait for each
 * other for ever.  Of single copies alone help wins the look nearly always, and so there is a duel.
 */
TEST(Team, GoesOnWhileItFindsOutWhatIsFastest)
{
    const collx_algorithm *bcast = collx_algorithm_find(COLLX_BCAST, "shm");
    collx_args single = {};

    single.value[0] = 2; /* single_copy=always */
    /* Threads would leave memory behind, without which GroupsOf.ALeaderWithoutMemory has to be. */
    const Ranks kind = all_kinds[0];
    for (int size : {2, 3, 4})
        for (const collx_args &args : {collx_args{}, single})
            EXPECT_EQ("", run_team(
                              bcast, size, kind, false,
                              [](Rank &self) {
                                  const size_t count = 65536 / sizeof(int64_t);
                                  std::vector<int64_t> buf(count);
                                  Dice own(100 + self.team.rank);
                                  /* The memory gets warm, a look, a duel, and what it took. */
                                  for (int round = 0; round < 4 + 24 + 48 + 4; round++) {
                                      const int root = round / 5 % self.team.size;
                                      for (size_t i = 0; i < count; i++)
                                          buf[i] = self.team.rank == root
                                                       ? static_cast<int64_t>(i) * 31 + round
                                                       : -1;
                                      dawdle(own);
                                      if (self.bcast(buf.data(), 65536, root))
                                          return at("an error", round);
                                      for (size_t i = 0; i < count; i++)
                                          if (buf[i] != static_cast<int64_t>(i) * 31 + round)
                                              return at("a wrong number", round);
                                  }
                                  return std::string();
                              },
                              &args))
                << size << " ranks";
}

/* What one that has been freed left there would be taken for what ranks say of themselves.  That
 * shows in nothing but in what is chosen. */
TEST(UsedMemory, TellsNothingOfOtherCommunicators)
{
    for (collx_kind kind : {COLLX_BCAST, COLLX_ALLREDUCE})
        for (int ranks : {2, 3, 4, 9})
            EXPECT_EQ(0, cleared_view_left(kind, ranks)) << collx_kind_name(kind) << ", " << ranks;
}

} // namespace
