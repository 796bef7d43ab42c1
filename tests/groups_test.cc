/* Bcast in groups: right bytes for every root and size on machines made up, whoever is late. */
#include "tests/machines.h"
#include "tests/team.h"

extern "C" {
#include "algorithms/bcast/bcast_plan.h"
extern const collx_algorithm collx_bcast_shm;
}

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace
{

struct Case {
    Machine machine;
    Ranks kind;
    std::string form; /* how 4 KiB and more go */
};

const std::vector<const char *> forms = {"", "_single_copy", "_past_caches"};

collx_args args_of(const std::string &form)
{
    collx_args args = {};

    args.value[0] = form == "_single_copy" ? 2 : 1; /* always, never */
    args.value[1] = COLLX_GROUPS_ALWAYS;
    args.value[2] = form == "_past_caches" ? 2 : 1;
    return args;
}

int size_of(const Case &c)
{
    return static_cast<int>(c.machine.places.size());
}

std::string run(const Case &c, const std::function<std::string(Rank &)> &body)
{
    collx_args args = args_of(c.form);

    return run_team(&collx_bcast_shm, size_of(c), c.kind, true, body, &args,
                    c.machine.places.data());
}

std::vector<Case> cases(const std::vector<const char *> &of)
{
    std::vector<Case> all;

    for (const Machine &machine : divided)
        for (Ranks kind : all_kinds)
            for (const char *form : of)
                all.push_back({machine, kind, form});
    return all;
}

std::string name_of(const testing::TestParamInfo<Case> &info)
{
    return std::string(info.param.machine.name) +
           (info.param.kind == Ranks::threads ? "_threads" : "_processes") + info.param.form;
}

class Groups : public testing::TestWithParam<Case>
{
};
class SmallOnes : public Groups
{
};

const Pattern pattern(200050);

/* What a rank of the team does: the same roots and sizes on all, each late by itself.  A root stays
 * for some calls, since who may still be reading depends on who was root before. */
std::string play(Rank &self, int rounds, size_t (*size)(std::minstd_rand &))
{
    std::minstd_rand shared(7), own(100 + self.team.rank);
    std::vector<unsigned char> buf(200064);
    int root = 0;

    for (int round = 0; round < rounds / slower; round++) {
        if (shared() % 5 == 0)
            root = static_cast<int>(shared() % self.team.size);
        size_t bytes = size(shared);
        bool contiguous = shared() % 4;
        if (!contiguous)
            bytes = bytes / 4 * 4;
        unsigned char *at = &buf[round % 13];
        memset(at, 0xee, bytes + 1);
        if (self.team.rank == root)
            memcpy(at, pattern.of(round), bytes);
        if (own() % 32 == 0)
            usleep(own() % 300);
        if (self.bcast(at, bytes, root, contiguous))
            return "an error in round " + std::to_string(round);
        if (std::string wrong = pattern.compare(at, bytes, round); !wrong.empty())
            return wrong;
        if (at[bytes] != 0xee)
            return "a byte behind the buffer in round " + std::to_string(round);
        /* A root may be far ahead of the others, so that it comes round its ring. */
        if (self.team.rank == root)
            memset(at, 0x55, bytes);
    }
    return std::string();
}

TEST_P(Groups, EverybodyHasTheRootsBytes)
{
    EXPECT_EQ("", run(GetParam(), [](Rank &self) {
                  return play(self, 300, [](std::minstd_rand &dice) -> size_t {
                      const size_t sizes[] = {0,    1,    8,     51,    52,    53,     64,
                                              1000, 4096, 4097,  8191,  8192,  8193,   16384,
                                              5000, 9999, 65536, 65537, 99999, 131072, 200000};
                      return sizes[dice() % std::size(sizes)];
                  });
              }));
}

/* Small ones, one after the other: all that holds a fast root back are the slots. */
TEST_P(SmallOnes, NoSlotIsOverwrittenThatSomebodyReads)
{
    EXPECT_EQ("", run(GetParam(), [](Rank &self) {
                  return play(self, 2000,
                              [](std::minstd_rand &dice) -> size_t { return dice() % 600; });
              }));
}

INSTANTIATE_TEST_SUITE_P(All, Groups, testing::ValuesIn(cases(forms)), name_of);
INSTANTIATE_TEST_SUITE_P(All, SmallOnes, testing::ValuesIn(cases({""})), name_of);

/* Else the cases above would prove nothing about groups. */
TEST(GroupsOf, TheseMachinesAreWhatIsSaid)
{
    for (const Machine &machine : divided) {
        collx_groups_plan plan = collx_bcast_plan_choose(
            machine.places.data(), static_cast<int>(machine.places.size()), COLLX_GROUPS_ALWAYS);
        EXPECT_EQ(plan.groups, machine.groups) << machine.name;
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* A rank without memory for a packed message passes it on to its group all the same. */
TEST(GroupsOf, ALeaderWithoutMemoryPassesOn)
{
    for (int root : {0, 2}) {
        Case c = {divided[1], Ranks::processes, ""};
        EXPECT_EQ("", run(c, [root](Rank &self) {
                      const size_t bytes = 4 << 20;
                      const bool poor = self.team.rank == 1; /* leads the second package */
                      std::vector<unsigned char> buf(bytes, 1);
                      rlimit usual = {}, none = {};
                      getrlimit(RLIMIT_AS, &usual);
                      none.rlim_max = usual.rlim_max;
                      for (int round = 2; round < 5; round++) {
                          memset(buf.data(), self.team.rank == root ? round : 0xee, bytes);
                          setrlimit(RLIMIT_AS, poor ? &none : &usual);
                          /* Nor from what the heap has left, of threads that have ended, too. */
                          void *volatile left = buf.data();
                          while (poor && left)
                              left = malloc(1024);
                          int error = self.bcast(buf.data(), bytes, root, false);
                          setrlimit(RLIMIT_AS, &usual);
                          if (error != (poor ? 99 : 0))
                              return "error " + std::to_string(error);
                          for (size_t i = 0; i < bytes && !poor; i++)
                              if (buf[i] != round)
                                  return std::string("a wrong byte");
                      }
                      return std::string();
                  }));
    }
}
#endif

} // namespace
