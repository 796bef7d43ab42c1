#include "tests/plans.h"

#include <map>
#include <set>

void check_shape(const collx_shape &shape, int fan)
{
    for (int level = 0; level < shape.levels; level++) {
        std::map<int, int> members;
        for (int rank = 0; rank < shape.ranks; rank++) {
            int leader = shape.leader[level][rank];
            if (!collx_shape_takes_part(&shape, level, rank)) {
                ASSERT_EQ(leader, -1);
                continue;
            }
            ASSERT_GE(leader, 0);
            ASSERT_LE(leader, rank) << "the first leads";
            ASSERT_EQ(shape.leader[level][leader], leader) << "leaders are members";
            members[leader]++;
        }
        ASSERT_GT(members.size(), 1u) << "a level of one group is of no use";
        bool any = false;
        for (auto [leader, count] : members) {
            any |= count > 1;
            if (shape.levels < COLLX_LEVELS) {
                ASSERT_LE(count, fan);
            }
        }
        ASSERT_TRUE(any) << "a level of single ranks is of no use";
    }
}

/* Play several barriers.  Every post carries what its rank has heard of; a wait takes what the post
 * that it asks for carried, not what a later one did. */
void check_plan(const Plan &plan)
{
    const int ranks = plan.plan.shape.ranks, barriers = 2;
    std::vector<std::vector<collx_barrier_step>> steps;
    std::vector<std::set<int>> heard(ranks);
    std::map<std::pair<int, int>, std::map<int64_t, std::set<int>>> posted; /* by flag, value */
    std::vector<size_t> done(ranks);

    for (int rank = 0; rank < ranks; rank++)
        steps.push_back(plan.steps(rank));
    bool moved = true;
    while (moved) {
        moved = false;
        for (int rank = 0; rank < ranks; rank++) {
            for (; done[rank] < barriers * steps[rank].size(); done[rank]++, moved = true) {
                size_t round = done[rank] / steps[rank].size(),
                       at = done[rank] % steps[rank].size();
                const collx_barrier_step &step = steps[rank][at];
                int64_t value = (int64_t)round * plan.plan.phases + step.phase;
                auto &flag = posted[{step.rank, step.what}];
                if (at == 0)
                    heard[rank] = {rank};
                ASSERT_GE(step.phase, 1);
                ASSERT_LE(step.phase, plan.plan.phases);
                if (step.post) {
                    ASSERT_EQ(step.rank, rank) << "a flag has one writer";
                    ASSERT_TRUE(flag.empty() || flag.rbegin()->first < value) << "flags grow";
                    flag[value] = heard[rank];
                } else {
                    ASSERT_NE(step.rank, rank);
                    auto post = flag.lower_bound(value);
                    if (post == flag.end())
                        break;
                    heard[rank].insert(post->second.begin(), post->second.end());
                }
                if (at + 1 == steps[rank].size()) {
                    ASSERT_EQ((int)heard[rank].size(), ranks) << "rank " << rank << " left early";
                }
            }
        }
    }
    for (int rank = 0; rank < ranks; rank++)
        ASSERT_EQ(done[rank], barriers * steps[rank].size()) << "rank " << rank << " is stuck";
}

int64_t far_reads(const Plan &plan, const Places &places)
{
    int64_t far = 0;

    for (int rank = 0; rank < (int)places.size(); rank++)
        for (const collx_barrier_step &step : plan.steps(rank))
            far += !step.post &&
                   (places[rank].package < 0 || places[rank].package != places[step.rank].package);
    return far;
}

int packages_of(const Places &places)
{
    std::set<int> all;

    for (const collx_place &place : places)
        all.insert(place.package);
    return (int)all.size();
}

std::vector<Places> undivided()
{
    return {ranks_on(8, 2, 1, 4), ranks_on(64, 1, 1, 64), Places(40, nowhere),
            ranks_on(16, 16, 1, 1)};
}

void check_flat(Choose *choose)
{
    for (const Places &places : undivided())
        EXPECT_EQ(plan_by(choose, places, COLLX_GROUPS_ALWAYS).groups, 1);
    EXPECT_EQ(choose(nullptr, 40, COLLX_GROUPS_ALWAYS).groups, 1);
    EXPECT_EQ(plan_by(choose, ranks_on(64, 2, 1, 32), COLLX_GROUPS_NEVER).groups, 1);
}

void check_bound(Choose *choose)
{
    EXPECT_EQ(plan_by(choose, ranks_on(128, 2, 16, 4), COLLX_GROUPS_ALWAYS).groups, 2)
        << "not 32 caches";
    EXPECT_EQ(plan_by(choose, ranks_on(128, 1, 32, 4), COLLX_GROUPS_ALWAYS).groups, 1);
}

void check_cheaper(Choose *choose)
{
    int grouped = 0, flat = 0;

    for (const auto &[ranks, one_cache, places] : occupied()) {
        collx_groups_plan chosen = plan_by(choose, places, COLLX_GROUPS_AUTO);
        collx_groups_plan best = plan_by(choose, places, COLLX_GROUPS_ALWAYS);
        (chosen.groups > 1 ? grouped : flat)++;
        if (chosen.groups > 1) {
            EXPECT_LE(chosen.time * 10, chosen.flat_time * 9);
            EXPECT_EQ(chosen.time, best.time);
        } else if (best.groups > 1) {
            EXPECT_GT(best.time * 10, best.flat_time * 9);
        }
        if (packages_of(places) > 1 && ranks >= 48) {
            EXPECT_GT(chosen.groups, 1) << ranks << " ranks on several packages";
        }
    }
    EXPECT_GT(grouped, 0);
    EXPECT_GT(flat, 0);
}
