/* How an Allreduce of small vectors goes about machines made up: who relays what, that everybody
 * finds everybody's share, what crosses between packages, and what the model makes of it. */
#include "tests/plans.h"
#include "tests/shares_view.h"

#include <cstdlib>
#include <map>
#include <set>

namespace
{

collx_groups_plan plan_of(const Places &places, collx_groups_wanted wanted = COLLX_GROUPS_ALWAYS)
{
    return plan_by(collx_allreduce_plan_choose, places, wanted);
}

/* What all ranks of a team make of one piece of memory. */
class Team
{
  public:
    Team(const Places &places, const collx_groups_plan &plan)
    {
        const int size = static_cast<int>(places.size());
        const size_t space =
            shares_view_space(&plan, size, collx_places_numa_nodes(places.data(), size));
        /* As it may lie behind what other algorithms have: on a line, and on no page. */
        EXPECT_EQ(0, posix_memalign(&memory_, 4096, 128 + space));
        char *const memory = static_cast<char *>(memory_) + 128;
        for (int rank = 0; rank < size; rank++) {
            collx_team team = {};
            team.rank = rank;
            team.size = size;
            team.places = places.data();
            views_.push_back(shares_view_create(&plan, &team, memory));
            for (int other = 0; other < size; other++)
                for (uint64_t round : {0, 1}) {
                    EXPECT_GE(shares_view_of(views_[rank], other, round), memory);
                    EXPECT_LE(shares_view_end(views_[rank], other, round), memory + space);
                }
        }
    }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;
    ~Team()
    {
        for (shares_view *view : views_)
            shares_view_destroy(view);
        free(memory_);
    }

    /* Every share that anybody reads has one writer, who is its owner or has read that one's.
     * Returns how often somebody reads what was written in another package. */
    int check(const Places &places) const
    {
        const int size = static_cast<int>(views_.size());
        std::map<const void *, int> writer, owner;
        int far = 0;
        auto reads = [&](int rank, const void *share) {
            far += collx_place_distance(&places[rank], &places[writer.at(share)]) == COLLX_FAR;
        };

        for (int rank = 0; rank < size; rank++) {
            const void *own = shares_view_of(views_[rank], rank, 0);
            EXPECT_TRUE(writer.emplace(own, rank).second) << "two ranks write " << rank << "'s";
            owner[own] = rank;
        }
        for (int rank = 0; rank < size; rank++) {
            const void *from, *to;
            int whose;
            for (int i = 0; shares_view_relayed(views_[rank], i, &whose, &from, &to); i++) {
                EXPECT_EQ(owner.at(from), whose);
                EXPECT_EQ(writer.at(from), whose) << "from its owner, not from a relay";
                EXPECT_TRUE(writer.emplace(to, rank).second) << "two relays";
                owner[to] = whose;
                reads(rank, from);
            }
        }
        for (int rank = 0; rank < size; rank++)
            for (int other = 0; other < size; other++) {
                const void *share = shares_view_of(views_[rank], other, 0);
                EXPECT_EQ(owner.at(share), other) << "what rank " << rank << " reads";
                if (writer.at(share) != rank)
                    reads(rank, share);
            }
        return far;
    }

    /* Where everybody finds what `rank` contributes in this round. */
    const void *share(int rank, uint64_t round) const
    {
        const void *share = shares_view_of(views_[0], rank, round);

        for (const shares_view *view : views_)
            EXPECT_EQ(share, shares_view_of(view, rank, round));
        return share;
    }

  private:
    std::vector<shares_view *> views_;
    void *memory_ = nullptr;
};

TEST(AllreducePlan, EveryShareComesToEverybody)
{
    for (const Machine &machine : divided) {
        collx_groups_plan plan = plan_of(machine.places);
        EXPECT_EQ(plan.groups, machine.groups) << machine.name;
        EXPECT_EQ(Team(machine.places, plan).check(machine.places), plan.far) << machine.name;
        plan = plan_of(machine.places, COLLX_GROUPS_NEVER);
        EXPECT_EQ(plan.groups, 1);
        EXPECT_EQ(Team(machine.places, plan).check(machine.places), plan.flat_far) << machine.name;
    }
}

TEST(AllreducePlan, CrossesOnceForEachRankAndOtherPackage)
{
    for (int packages : {2, 3, 4, 8, 16})
        for (int cores : {5, 8, 32})
            for (bool in_turn : {false, true}) {
                Places places = ranks_on(packages * cores, packages, 1, cores, in_turn);
                collx_groups_plan plan = plan_of(places);
                ASSERT_EQ(plan.groups, packages) << packages << " packages of " << cores;
                EXPECT_EQ(plan.far, packages * cores * (packages - 1));
                EXPECT_EQ(plan.flat_far, packages * cores * (packages - 1) * cores);
                EXPECT_EQ(Team(places, plan).check(places), plan.far);
            }
}

TEST(AllreducePlan, IsFlatWhereThereIsNothingToShare)
{
    check_flat(collx_allreduce_plan_choose);
    for (const Places &places : undivided())
        Team(places, plan_of(places)).check(places);
}

/* Whoever has read a share writes there next.  Of more ranks several read it: each has two. */
TEST(AllreducePlan, TwoRanksSwapTheirShares)
{
    for (int size : {2, 3, 8}) {
        const Places places = ranks_on(size, 1, 1, size);
        const Team team(places, plan_of(places));
        std::set<const void *> all;

        for (int rank = 0; rank < size; rank++)
            for (uint64_t round : {1, 2}) {
                const void *share = team.share(rank, round);
                all.insert(share);
                EXPECT_EQ(share, team.share(rank, round + 2));
                EXPECT_EQ(size == 2, share == team.share(!rank, round + 1)) << size;
            }
        EXPECT_EQ(size == 2 ? 2u : 2u * static_cast<unsigned>(size), all.size());
    }
}

/* Each group takes memory. */
TEST(AllreducePlan, HasABoundOfGroups)
{
    check_bound(collx_allreduce_plan_choose);
}

/* 64 ranks on two packages, worked out by hand from the table in docs/algorithms.md. */
TEST(AllreducePlan, CostsWhatTheModelSays)
{
    collx_groups_plan plan = plan_of(ranks_on(64, 2, 1, 32), COLLX_GROUPS_AUTO);

    /* Each reads 31 lines nearby and 32 far away; but all of these share the link. */
    EXPECT_LT(31 * 10 + 32 * 40 + (250 - 40), 64 * 32 * 4);
    EXPECT_EQ(plan.flat_time, 64 * 32 * 4);
    /* One line from far away; all these share the link; then, of the 31 others, two lines each. */
    EXPECT_EQ(plan.time, 64 * 4 + (2 * 31 * 10 + (60 - 10)));
    EXPECT_EQ(plan.groups, 2);
}

TEST(AllreducePlan, GroupsAreChosenOnlyWhereTheyAreCheaper)
{
    check_cheaper(collx_allreduce_plan_choose);
}

} // namespace
