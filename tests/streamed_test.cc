/* What a program has stored past the caches right before a call, and not waited for: its own CPU
 * sees it at once, others, which copy straight from and to its buffers, might not. */
#include "tests/team.h"

#include <gtest/gtest.h>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace
{

constexpr int64_t count = 1024;

void store_past_caches(int64_t *to, int64_t value)
{
#if defined(__x86_64__)
    _mm_stream_si64(reinterpret_cast<long long *>(to), value);
#else
    *to = value;
#endif
}

/* Two ranks that copy straight; the last number of both buffers of each is stored like that, the
 * round into `send`.  `call` makes the call and returns what the last number should be now, and
 * where. */
using Call = std::pair<int64_t, const int64_t *>(Rank &, int64_t *send, int64_t *receive, int round,
                                                 int *error);

std::string run(collx_kind kind, Call *call)
{
    collx_args args = {};

    args.value[0] = 2; /* single_copy=always */
    return run_team(
        collx_algorithm_find(kind, "shm"), 2, Ranks::processes, false,
        [&](Rank &self) {
            std::vector<int64_t> send(count), receive(count);
            std::string wrong;
            for (int round = 1; round <= 10000; round++) {
                int error = 0;
                store_past_caches(&receive[count - 1], -round);
                store_past_caches(&send[count - 1], round);
                auto [right, found] = call(self, send.data(), receive.data(), round, &error);
                if (wrong.empty() && (error || *found != right))
                    wrong = std::to_string(*found) + " in round " + std::to_string(round);
            }
            return wrong;
        },
        &args);
}

TEST(Streamed, Bcast)
{
    EXPECT_EQ("", run(COLLX_BCAST,
                      [](Rank &self, int64_t *send, int64_t *receive, int round, int *error) {
                          const int root = round % 2;
                          int64_t *buf = self.team.rank == root ? send : receive;
                          *error = self.bcast(buf, count * sizeof *buf, root);
                          return std::pair<int64_t, const int64_t *>(round, buf + count - 1);
                      }));
}

TEST(Streamed, Allreduce)
{
    EXPECT_EQ("", run(COLLX_ALLREDUCE, [](Rank &self, int64_t *send, int64_t *receive, int round,
                                          int *error) {
                  *error = self.sum(send, receive, count);
                  return std::pair<int64_t, const int64_t *>(2 * round, receive + count - 1);
              }));
}

} // namespace
