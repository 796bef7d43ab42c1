/* Bcast's ring: a root that stops between the lines of a message. */
#include "tests/team.h"

extern "C" {
#include "tests/ring_view.h"
extern const collx_algorithm collx_bcast_shm;
}

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

namespace
{

TEST(Ring, WaitsForARootThatStopsInAMessageAndSaysSo)
{
    const size_t bytes = 200, space = ring_view_space();
    void *memory = aligned_alloc(128, (space + 127) / 128 * 128);
    std::atomic<uint32_t> said{0};

    ASSERT_NE(memory, nullptr);
    memset(memory, 0, space);
    testing::internal::CaptureStderr();
    EXPECT_EQ("", run_team(&collx_bcast_shm, 2, Ranks::threads, false, [&](Rank &self) {
                  unsigned char buf[bytes];
                  const bool root = self.team.rank == 0;

                  for (size_t i = 0; i < bytes; i++)
                      buf[i] = root ? static_cast<unsigned char>(i + 1) : 0;
                  self.team.stall_ms = 20;
                  self.team.stall_said = reinterpret_cast<uint32_t *>(&said);
                  if (root) {
                      ring_view_begin(&self.team, memory, buf);
                      while (!said)
                          usleep(1000);
                  }
                  if (ring_view_pass(&self.team, memory, 0, buf, bytes))
                      return std::string("it does not go in lines");
                  for (size_t i = 0; i < bytes; i++)
                      if (buf[i] != static_cast<unsigned char>(i + 1))
                          return "byte " + std::to_string(i) + " is wrong";
                  return std::string();
              }));
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("s in MPI_Bcast for rank 0. Have they stopped"), std::string::npos) << text;
    free(memory);
}

} // namespace
