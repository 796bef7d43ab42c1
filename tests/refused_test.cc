/* Single copies where the kernel does not let ranks read of each other. */
#include "tests/team.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vector>

namespace
{

/* Memory that its owner can use and nobody else can read: the kernel looks at the rights of the
 * mapping, the processor of most machines lets whoever may write read, too. */
class Unreadable
{
    size_t bytes;

  public:
    int64_t *data;

    explicit Unreadable(size_t count) : bytes(count * sizeof(int64_t))
    {
        data = static_cast<int64_t *>(
            mmap(nullptr, bytes, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }
    ~Unreadable()
    {
        munmap(data, bytes);
    }
};

struct Refusal {
    const char *name;
    bool memory;        /* the buffers of `ranks` cannot be read */
    int when;           /* the round before which the kernel starts to refuse; < 0: never */
    bool (*ranks)(int); /* whom */
};

const Refusal refusals[] = {
    {"always", false, 0, [](int) { return true; }},
    {"to_rank_1_from_the_beginning", false, 0, [](int rank) { return rank == 1; }},
    {"to_rank_1_later", false, 5, [](int rank) { return rank == 1; }},
    {"to_all_later", false, 5, [](int) { return true; }},
    {"memory_of_rank_0", true, -1, [](int rank) { return rank == 0; }},
    {"memory_of_all", true, -1, [](int) { return true; }},
};

class Refused : public testing::TestWithParam<std::tuple<Refusal, int>>
{
};

/* A team whose ranks copy straight from each other as long as they can. */
std::string run_refused(const collx_algorithm *algorithm, const Refusal &refusal, int size,
                        const std::function<std::string(Rank &, int64_t *, int64_t *, int)> &call)
{
    collx_args args = {};
    const size_t count = 40000;

    args.value[0] = 2; /* single_copy=always */
    return run_team(
        algorithm, size, Ranks::processes, size > 2,
        [&](Rank &self) {
            bool mine = refusal.ranks(self.team.rank);
            std::vector<int64_t> memory(2 * count);
            Unreadable unreadable(2 * count);
            int64_t *buf = refusal.memory && mine ? unreadable.data : memory.data();
            for (int round = 0; round < 20; round++) {
                if (!refusal.memory && mine && refusal.when == round)
                    forbid_cma();
                std::string wrong = call(self, buf, buf + count, round);
                if (!wrong.empty())
                    return wrong;
            }
            return std::string();
        },
        &args);
}

TEST_P(Refused, Bcast)
{
    const auto &[refusal, size] = GetParam();

    EXPECT_EQ("", run_refused(collx_algorithm_find(COLLX_BCAST, "shm"), refusal, size,
                              [](Rank &self, int64_t *buf, int64_t *, int round) {
                                  int root = round % self.team.size;
                                  const int64_t count = 1000 + 1789 * round;
                                  for (int64_t i = 0; i < count; i++)
                                      buf[i] = self.team.rank == root ? i * 31 + round : -1;
                                  if (self.bcast(buf, count * sizeof *buf, root))
                                      return at("an error", round);
                                  for (int64_t i = 0; i < count; i++)
                                      if (buf[i] != i * 31 + round)
                                          return at("a wrong number", round) + " at " +
                                                 std::to_string(i);
                                  return std::string();
                              }));
}

TEST_P(Refused, Allreduce)
{
    const auto &[refusal, size] = GetParam();

    EXPECT_EQ("", run_refused(collx_algorithm_find(COLLX_ALLREDUCE, "shm"), refusal, size,
                              [](Rank &self, int64_t *send, int64_t *receive, int round) {
                                  const int n = self.team.size;
                                  const int64_t count = 1000 + 1789 * round;
                                  int64_t *from = round % 2 ? receive : send;
                                  for (int64_t i = 0; i < count; i++) {
                                      receive[i] = -1;
                                      from[i] = i * 1000 + round + self.team.rank;
                                  }
                                  if (self.sum(from, receive, count))
                                      return at("an error", round);
                                  for (int64_t i = 0; i < count; i++)
                                      if (receive[i] != n * (i * 1000 + round) + n * (n - 1) / 2)
                                          return at("a wrong sum", round) + " at " +
                                                 std::to_string(i);
                                  return std::string();
                              }));
}

INSTANTIATE_TEST_SUITE_P(All, Refused,
                         testing::Combine(testing::ValuesIn(refusals), testing::Values(2, 3, 5)),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param).name) + "_of_" +
                                    std::to_string(std::get<1>(info.param));
                         });

} // namespace
