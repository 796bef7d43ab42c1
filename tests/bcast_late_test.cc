/* Bcast with a rank that does not come: the others say who that is, and not whom it holds up. */
#include "tests/late.h"
#include "tests/machines.h"
#include "tests/team.h"

extern "C" {
#include "algorithms/bcast/bcast_plan.h"
extern const collx_algorithm collx_bcast_shm;
}

#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

namespace
{

enum { ANYBODY = -1, NOBODY = -1 };

/* Values of single_copy and past_caches. */
enum { NEVER = 1, ALWAYS };

struct Late {
    int size;
    int root, late;
    int says; /* whose time runs out first */
    size_t bytes;
    int calls;
    int single_copy = NEVER;
    int more = NOBODY; /* late as well, and of a higher rank */
};

class BcastLate : public testing::TestWithParam<Late>
{
};

TEST_P(BcastLate, IsSaidToBe)
{
    const Late &late = GetParam();
    const std::string who =
        late.more == NOBODY ? " " + std::to_string(late.late)
                            : "s " + std::to_string(late.late) + " " + std::to_string(late.more);
    collx_args args = {};

    args.value[0] = late.single_copy;
    args.value[1] = COLLX_GROUPS_ALWAYS;
    args.value[2] = NEVER;
    expect_said(" s in MPI_Bcast for rank" + who + ". Have they stopped", [&](int stall_ms,
                                                                              LateBoard &board) {
        return run_team(
            &collx_bcast_shm, late.size, Ranks::processes, true,
            [&](Rank &self) {
                std::vector<char> buf(late.bytes);
                /* Until they have found out which of the single copies is faster, all meet. */
                for (int call = 0; call < 40; call++)
                    self.bcast(buf.data(), late.bytes, late.root);
                self.team.stall_ms =
                    late.says == ANYBODY || late.says == self.team.rank ? stall_ms : 0;
                self.team.stall_said = reinterpret_cast<uint32_t *>(&board[0]);
                while ((self.team.rank == late.late || self.team.rank == late.more) && !board[0])
                    usleep(1000);
                for (int call = 0; call < late.calls; call++)
                    self.bcast(buf.data(), late.bytes, late.root);
                return std::string();
            },
            &args, late.size == 12 ? divided[2].places.data() : nullptr);
    });
}

std::string name_of(const testing::TestParamInfo<Late> &info)
{
    const Late &late = info.param;

    return "rank_" + std::to_string(late.late) +
           (late.more == NOBODY ? "" : "_and_" + std::to_string(late.more)) + "_of_root_" +
           std::to_string(late.root) +
           (late.says == ANYBODY ? "" : "_says_" + std::to_string(late.says)) + "_with_" +
           std::to_string(late.bytes) + "_bytes" +
           (late.single_copy == ALWAYS ? "_in_one_copy" : "");
}

/* Three ranks.  Most need nobody but the root, which needs whoever is a whole ring, of 64 short
 * messages, behind. */
INSTANTIATE_TEST_SUITE_P(Flat, BcastLate,
                         testing::Values(Late{3, 0, 0, 1, 32, 1}, Late{3, 0, 2, 0, 32, 100},
                                         Late{3, 0, 2, 1, 32, 100}, Late{3, 1, 0, 2, 32, 100},
                                         Late{3, 0, 2, 1, 20000, 60},
                                         /* Of chunks of several slots. */
                                         Late{3, 2, 1, 0, 1 << 20, 3}),
                         name_of);

/* Who has read is in the next call, which the root comes to when all have.  Where the kernel does
 * not allow it, they go through the ring. */
INSTANTIATE_TEST_SUITE_P(
    Single, BcastLate,
    testing::Values(Late{3, 0, 0, 1, 20000, 30, ALWAYS}, Late{3, 0, 2, 0, 20000, 30, ALWAYS},
                    Late{3, 0, 2, 1, 20000, 30, ALWAYS}, Late{3, 2, 1, 0, 20000, 30, ALWAYS},
                    Late{5, 0, 1, 0, 20000, 30, ALWAYS, 3}, Late{5, 0, 1, 4, 20000, 30, ALWAYS, 3}),
    name_of);

/* 12 ranks on 4 packages; 3 leads 4 and 5. */
INSTANTIATE_TEST_SUITE_P(Groups, BcastLate,
                         testing::Values(Late{12, 0, 0, ANYBODY, 32, 1},
                                         Late{12, 7, 7, ANYBODY, 32, 3},
                                         Late{12, 0, 3, ANYBODY, 32, 1},
                                         /* Nobody waits for it until its slots are wanted. */
                                         Late{12, 0, 4, ANYBODY, 32, 60},
                                         Late{12, 4, 8, ANYBODY, 32, 60}),
                         name_of);

} // namespace
