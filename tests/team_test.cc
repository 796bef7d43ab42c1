/* What a team of a test does with algorithms and ranks that do not do as they should. */
#include "tests/team.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

namespace
{

const Pattern pattern(9);

/* What a new algorithm does not take goes another way, and the calls that follow are tried. */
TEST(Team, CarriesOutWhatAnAlgorithmDoesNotTake)
{
    collx_algorithm limited = *collx_algorithm_find(COLLX_BCAST, "shm");

    limited.takes = [](const void *, const collx_call *call) { return call->bytes <= 8; };
    for (Ranks kind : all_kinds)
        EXPECT_EQ("", run_team(&limited, 3, kind, false, [](Rank &self) -> std::string {
                      for (int round = 0; round < 20; round++) {
                          unsigned char buf[9] = {};
                          const size_t bytes = round % 2 ? 8 : 9;
                          if (self.team.rank == round % 3)
                              memcpy(buf, pattern.of(round), bytes);
                          if (self.bcast(buf, bytes, round % 3))
                              return "an error";
                          if (std::string wrong = pattern.compare(buf, bytes, round);
                              !wrong.empty())
                              return wrong;
                      }
                      return self.calls == 20 && self.taken == 10 ? "" : "it was not called";
                  }));
}

/* Who waits for a rank that has failed, or will never come, does not keep the tests. */
TEST(Team, SaysWhoFailedAndEndsTheOthers)
{
    const collx_algorithm *shm = collx_algorithm_find(COLLX_BARRIER, "shm");

    EXPECT_EQ("rank 1 ended with exit code 1\nso the others were ended\n",
              run_team(shm, 3, Ranks::processes, true, [](Rank &self) -> std::string {
                  if (self.team.stall_ms == 0)
                      raise(SIGUSR1); /* nobody would say for whom it waits */
                  return self.team.rank == 1 || self.barrier() ? "as it should" : "";
              }));
    EXPECT_EQ("rank 1 died by signal 11 (Segmentation fault): it may have touched memory beyond a "
              "buffer or its piece of the segment\nso the others were ended\n",
              run_team(shm, 3, Ranks::processes, true, [](Rank &self) -> std::string {
                  if (self.team.rank == 1) {
                      signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own way to end */
                      raise(SIGSEGV);
                  }
                  self.barrier();
                  return "";
              }));
}

#ifdef __SANITIZE_ADDRESS__
/* Also of whom has freed as much that was its parent's. */
TEST(Team, SaysWhoHasLostMemory)
{
    const collx_algorithm *shm = collx_algorithm_find(COLLX_BARRIER, "shm");

    for (bool frees : {false, true}) {
        void *inherited = malloc(100);
        testing::internal::CaptureStderr();
        const std::string wrong =
            run_team(shm, 2, Ranks::processes, false, [&](Rank &self) -> std::string {
                if (self.team.rank == 1) {
                    void *volatile block = malloc(100);
                    if (!block)
                        return "no memory";
                    block = nullptr;
                    if (frees)
                        free(inherited);
                }
                return "";
            });
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_EQ(0u, wrong.find("rank 1 ended with exit code 1\n")) << wrong;
        EXPECT_NE(std::string::npos, said.find("rank 1: it has leaked memory\n")) << said;
        free(inherited);
    }
}
#endif

TEST(Team, TellsAnAlgorithmThatTakesNextToNothing)
{
    collx_algorithm limited = *collx_algorithm_find(COLLX_ALLREDUCE, "shm");

    limited.takes = [](const void *, const collx_call *call) { return call->bytes <= 8; };
    EXPECT_NE("", run_team(&limited, 2, Ranks::processes, false, [](Rank &self) -> std::string {
                  int64_t own[2] = {1, 2}, sum[2];
                  for (int round = 0; round < 20; round++)
                      if (self.sum(own, sum, round % 10 ? 2 : 1) || sum[0] != 2)
                          return "wrong";
                  return "";
              }));
}

} // namespace
