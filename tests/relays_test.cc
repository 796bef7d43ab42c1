/* Allreduce of small vectors in groups: right results for every size on machines made up, in the
 * order of the ranks, whoever is late, and the truth about who is. */
#include "tests/late.h"
#include "tests/machines.h"
#include "tests/team.h"

extern "C" {
#include "algorithms/within/groups.h"
extern const collx_algorithm collx_allreduce_shm;
}

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

struct Case {
    Machine machine;
    Ranks kind;
};

std::string run(const Case &c, const std::function<std::string(Rank &)> &body)
{
    collx_args args = {};

    args.value[1] = COLLX_GROUPS_ALWAYS;
    return run_team(&collx_allreduce_shm, static_cast<int>(c.machine.places.size()), c.kind, true,
                    body, &args, c.machine.places.data());
}

std::vector<Case> cases()
{
    std::vector<Case> all;

    for (const Machine &machine : divided)
        for (Ranks kind : all_kinds)
            all.push_back({machine, kind});
    return all;
}

std::string name_of(const testing::TestParamInfo<Case> &info)
{
    return std::string(info.param.machine.name) +
           (info.param.kind == Ranks::threads ? "_threads" : "_processes");
}

class Relays : public testing::TestWithParam<Case>
{
};

/* Vectors of all sizes up to the longest that go this way (16 KiB in all), and beyond. */
TEST_P(Relays, EverybodyHasTheSum)
{
    EXPECT_EQ("", run(GetParam(), [](Rank &self) {
                  std::minstd_rand shared(7), own(100 + self.team.rank);
                  const int n = self.team.size;
                  const int64_t most = 16384 / 8 / n;
                  std::vector<int64_t> send(2 * most + 1), receive(2 * most + 1);

                  for (int round = 0; round < 600 / slower; round++) {
                      const int64_t counts[] = {1, 7, 8, most - 1, most, most + 1, 2 * most};
                      int64_t count =
                          shared() % 2 ? 1 + shared() % 20 : counts[shared() % std::size(counts)];
                      bool in_place = shared() % 2;
                      std::vector<int64_t> &source = in_place ? receive : send;
                      for (int64_t i = 0; i <= count; i++) {
                          receive[i] = -1;
                          source[i] = i * 1000 + round + self.team.rank;
                      }
                      if (own() % 32 == 0)
                          usleep(own() % 300);
                      if (self.sum(source.data(), receive.data(), count))
                          return std::string("an error");
                      for (int64_t i = 0; i < count; i++)
                          if (receive[i] != n * (i * 1000 + round) + n * (n - 1) / 2)
                              return "a wrong sum in round " + std::to_string(round) + ", " +
                                     std::to_string(i) + " of " + std::to_string(count);
                      if (!in_place && receive[count] != -1)
                          return std::string("an element behind the buffer was written");
                  }
                  return std::string();
              }));
}

/* Elements are packed and combined by the lender, in an order that shows. */
TEST_P(Relays, CombineInRankOrder)
{
    EXPECT_EQ("", run(GetParam(), [](Rank &self) {
                  std::minstd_rand shared(3), own(300 + self.team.rank);
                  auto of = [](int rank, int round) {
                      return Affine{static_cast<uint64_t>(2 * rank + 3),
                                    static_cast<uint64_t>(round + 17 * rank)};
                  };
                  for (int round = 0; round < 200 / slower; round++) {
                      const int64_t count = 1 + static_cast<int64_t>(shared() % 20);
                      std::vector<Affine> send(count, of(self.team.rank, round)), receive(count);
                      if (own() % 32 == 0)
                          usleep(own() % 300);
                      if (self.compose(send.data(), receive.data(), count))
                          return std::string("an error");
                      Affine right = of(0, round);
                      for (int rank = 1; rank < self.team.size; rank++)
                          right = after(right, of(rank, round));
                      for (const Affine &result : receive)
                          if (result.a != right.a || result.b != right.b)
                              return "a wrong composition in round " + std::to_string(round);
                  }
                  return std::string();
              }));
}

INSTANTIATE_TEST_SUITE_P(All, Relays, testing::ValuesIn(cases()), name_of);

/* Of 12 ranks on 4 packages: the outsiders of the first are 3 to 11, which 0, 1 and 2 relay. */
class RelaysLate : public testing::TestWithParam<std::vector<int>>
{
};

TEST_P(RelaysLate, IsSaidToBe)
{
    const std::vector<int> &late = GetParam();
    const Case c = {divided[2], Ranks::processes};
    std::string who = late.size() == 1 ? "rank" : "ranks";

    for (int rank : late)
        who += " " + std::to_string(rank);
    expect_said(" s in MPI_Allreduce for " + who + ". Have they stopped",
                [&](int stall_ms, LateBoard &board) {
                    return run(c, [&](Rank &self) {
                        int64_t one = 1, sum = 0;
                        self.sum(&one, &sum, 1);
                        self.team.stall_ms = stall_ms;
                        self.team.stall_said = reinterpret_cast<uint32_t *>(&board[0]);
                        while (std::count(late.begin(), late.end(), self.team.rank) && !board[0])
                            usleep(1000);
                        self.sum(&one, &sum, 1);
                        return sum == self.team.size ? std::string() : "a wrong sum";
                    });
                });
}

/* Also of two: a relay and one that it relays, and two that are relayed. */
INSTANTIATE_TEST_SUITE_P(All, RelaysLate,
                         testing::ValuesIn(std::vector<std::vector<int>>{
                             {0}, {1}, {7}, {11}, {1, 7}, {7, 11}}));

} // namespace
