/* Messages in lines that have a number each: a rank that stops between two of them. */
#include "tests/team.h"

extern "C" {
#include "tests/numbered_view.h"
extern const collx_algorithm collx_bcast_shm;
}

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

namespace
{

class Numbered : public testing::TestWithParam<int>
{
};

TEST_P(Numbered, WaitsForWhoStopsInAMessageAndSaysSo)
{
    const numbered_view &view = numbered_views[GetParam()];
    const size_t bytes = 200, space = view.space();
    void *memory = aligned_alloc(128, (space + 127) / 128 * 128);
    std::atomic<uint32_t> said{0};
    std::atomic<bool> stopped{false};

    ASSERT_NE(memory, nullptr);
    memset(memory, 0, space);
    testing::internal::CaptureStderr();
    EXPECT_EQ("", run_team(&collx_bcast_shm, 2, Ranks::threads, false, [&](Rank &self) {
                  unsigned char buf[bytes];
                  const bool tells = self.team.rank == 0;

                  for (size_t i = 0; i < bytes; i++)
                      buf[i] = tells ? static_cast<unsigned char>(i + 1) : 0;
                  self.team.stall_ms = 20;
                  self.team.stall_said = reinterpret_cast<uint32_t *>(&said);
                  while (!tells && !stopped)
                      usleep(1000);
                  if (view.pass(&self.team, memory, buf, bytes)) {
                      stopped = true;
                      return std::string("it does not go in lines");
                  }
                  if (tells) {
                      view.set_second(&self.team, memory, false);
                      stopped = true;
                      while (!said)
                          usleep(1000);
                      view.set_second(&self.team, memory, true);
                  }
                  for (size_t i = 0; i < bytes; i++)
                      if (buf[i] != static_cast<unsigned char>(i + 1))
                          return "byte " + std::to_string(i) + " is wrong";
                  return std::string();
              }));
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find(std::string("s in ") + view.name + " for rank 0. Have they stopped"),
              std::string::npos)
        << text;
    free(memory);
}

INSTANTIATE_TEST_SUITE_P(All, Numbered, testing::Range(0, static_cast<int>(NUMBERED_VIEWS)),
                         [](const auto &info) { return numbered_views[info.param].name + 4; });

} // namespace
