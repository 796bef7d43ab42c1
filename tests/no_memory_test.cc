/* Every algorithm, where one of the pieces of memory that it asks for is not there: it says so, and
 * leaves nothing behind. */
#include "tests/machines.h"
#include "tests/team.h"

extern "C" {
#include "algorithms/facts.h"
#include "base/algorithm.h"
#include "hw/cma.h"
#include "hw/shm.h"

/* The linker has all calls of these come here (--wrap). */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
}

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

int left = INT_MAX; /* pieces until there is one that is not there */
unsigned one_in;    /* but for that, so many; 0: all are there */

bool is_there()
{
    static unsigned seed = static_cast<unsigned>(getpid());

    if (one_in)
        return rand_r(&seed) % one_in != 0;
    return left-- != 0;
}

} // namespace

void *__wrap_malloc(size_t bytes)
{
    return is_there() ? __real_malloc(bytes) : nullptr;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_there() ? __real_calloc(count, bytes) : nullptr;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_there() ? __real_realloc(memory, bytes) : nullptr;
}

namespace
{

struct Free {
    void operator()(void *memory) const
    {
        free(memory);
    }
};

/* Attaches one rank again and again, with one more piece of memory each time, until all are there.
 * Returns what went wrong. */
std::string attach_with_less(const collx_algorithm *algorithm, const collx_args &args,
                             const collx_facts &facts, collx_team team)
{
    const size_t bytes = algorithm->space ? algorithm->space(&facts, &args) : 0;
    const size_t rounded = (bytes / COLLX_LINE + 1) * COLLX_LINE;

    for (int pieces = 0;; pieces++) {
        std::unique_ptr<void, Free> memory(aligned_alloc(COLLX_LINE, rounded));
        collx_slot slot = {};

        memset(memory.get(), 0, rounded);
        left = pieces;
        int error = algorithm->attach(&team, &args, bytes ? memory.get() : nullptr, &slot);
        const bool missed = left < 0;
        left = INT_MAX;
        if (error && (error != -ENOMEM || !missed))
            return "error " + std::to_string(error) + " with " + std::to_string(pieces);
        if (!error)
            algorithm->detach(slot.state);
        if (!missed)
            return error ? "an error with all" : "";
    }
}

class NoMemory : public testing::TestWithParam<const collx_algorithm *>
{
};

TEST_P(NoMemory, IsSaid)
{
    const collx_algorithm *algorithm = GetParam();

    for (int size : {1, 2, 8, 9, 32})
        for (int nodes = 1; nodes <= 2 && nodes <= size; nodes++) {
            std::vector<collx_member> members;
            std::vector<int> node(static_cast<size_t>(size));
            std::vector<collx_place> places = ranks_on(size, 2, 1, (size + 1) / 2);
            for (int rank = 0; rank < size; rank++)
                members.push_back({static_cast<uint64_t>(1 + rank % nodes), rank});
            collx_facts facts = {};
            collx_facts_init(&facts, members.data(), size, node.data());
            facts.numa_nodes = nodes > 1 ? 1 : collx_places_numa_nodes(places.data(), size);
            facts.places = nodes > 1 ? nullptr : places.data();

            collx_args args = {};
            char why[512];
            for (int i = 0; algorithm->params && algorithm->params[i].name; i++)
                args.value[i] = algorithm->params[i].initial;
            if (algorithm->query && algorithm->query(&facts, &args, why, sizeof why))
                continue;
            for (int rank : {0, size - 1}) {
                collx_team team = {};
                team.rank = rank;
                team.size = size;
                team.places = facts.places;
                team.node = node.data();
                team.name = "a test";
                EXPECT_EQ("", attach_with_less(algorithm, args, facts, team))
                    << size << " ranks on " << nodes << " nodes, rank " << rank;
            }
        }
}

std::vector<const collx_algorithm *> all()
{
    std::vector<const collx_algorithm *> found;

    for (int i = 0; collx_algorithms[i]; i++)
        found.push_back(collx_algorithms[i]);
    return found;
}

INSTANTIATE_TEST_SUITE_P(All, NoMemory, testing::ValuesIn(all()), [](const auto &info) {
    return std::string(collx_kind_name(info.param->kind)) + "_" + info.param->name;
});

/* A rank that has no memory for a call takes part in it all the same, and the next ones are right.
 */
class NoMemoryInCalls : public testing::TestWithParam<std::tuple<int, int>>
{
};

std::string run(collx_kind kind, int size, int single_copy,
                const std::function<std::string(Rank &, int round)> &call)
{
    std::vector<collx_place> places = ranks_on(size, 3, 1, (size + 2) / 3);
    collx_args args = {};

    args.value[0] = single_copy;
    args.value[1] = 2; /* groups=always */
    return run_team(
        collx_algorithm_find(kind, "shm"), size, Ranks::processes, true,
        [&](Rank &self) {
            std::string wrong;
            alarm(20);
            for (int round = 0; round < 60 / slower && wrong.empty(); round++) {
                one_in = 1 + round % 3;
                call(self, round);
                one_in = 0;
                wrong = call(self, round);
            }
            return wrong;
        },
        &args, places.data());
}

TEST_P(NoMemoryInCalls, Bcast)
{
    const auto &[size, single_copy] = GetParam();

    EXPECT_EQ("", run(COLLX_BCAST, size, single_copy, [](Rank &self, int round) {
                  const int root = round % self.team.size;
                  static int32_t buf[70000];
                  const size_t count = static_cast<size_t>(round * 7919 % 70000);
                  for (size_t i = 0; i < count; i++)
                      buf[i] = self.team.rank == root ? round + static_cast<int>(i) : -1;
                  int error = self.bcast(buf, count * sizeof *buf, root, false);
                  for (size_t i = 0; i < count; i++)
                      if (error || buf[i] != round + static_cast<int>(i))
                          return "wrong in round " + std::to_string(round);
                  return std::string();
              }));
}

TEST_P(NoMemoryInCalls, Allreduce)
{
    const auto &[size, single_copy] = GetParam();

    EXPECT_EQ("", run(COLLX_ALLREDUCE, size, single_copy, [](Rank &self, int round) {
                  static Affine send[9000], receive[9000];
                  const int64_t count = round * 7919 % 9000;
                  for (int64_t i = 0; i < count; i++)
                      send[i] = {1, static_cast<uint64_t>(round + self.team.rank)};
                  int error = self.compose(send, receive, count);
                  const int n = self.team.size;
                  for (int64_t i = 0; i < count; i++)
                      if (error ||
                          receive[i].b != static_cast<uint64_t>(n * round + n * (n - 1) / 2))
                          return "wrong in round " + std::to_string(round);
                  return std::string();
              }));
}

/* As the kernel has it, for ranks that are not each other's children. */
bool may_read_others()
{
    const int here = 1;
    const pid_t child = fork();
    int status = -1;

    if (child == 0) {
        int there = 0;
        _exit(collx_cma_read(getppid(), &there, reinterpret_cast<uintptr_t>(&here), sizeof there) ||
              there != here);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

/* Of fewer elements than ranks some combine nothing: they have an error all the same, and so has
 * everybody who gets what another one could not combine. */
TEST(NoMemoryOfOne, IsAnErrorOnAll)
{
    if (!may_read_others())
        GTEST_SKIP() << "processes may not read each other's memory here";
    EXPECT_EQ("", run(COLLX_ALLREDUCE, 9, 2, [](Rank &self, int round) {
                  static Affine send[3 * 256], receive[3 * 256];
                  const bool lacks = round % 9 == self.team.rank;
                  if (one_in == 0) {
                      left = lacks ? 0 : INT_MAX;
                      int error = self.compose(send, receive, 3 * 256, 256);
                      left = INT_MAX;
                      if (error != self.team.ops->no_memory)
                          return "error " + std::to_string(error) + " in round " +
                                 std::to_string(round);
                  }
                  return std::string();
              }));
}

INSTANTIATE_TEST_SUITE_P(All, NoMemoryInCalls,
                         testing::Combine(testing::Values(2, 5, 9), testing::Values(1, 2)));

} // namespace
