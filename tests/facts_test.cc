/* Which rank is on which node, and who leads there. */
extern "C" {
#include "algorithms/facts.h"
}

#include <gtest/gtest.h>
#include <vector>

namespace
{

struct Found {
    collx_facts facts;
    std::vector<int> node;
};

/* From an identity of each rank's node. */
Found find(const std::vector<uint64_t> &identity)
{
    Found found = {{}, std::vector<int>(identity.size(), -1)};
    std::vector<collx_member> members;

    for (uint64_t id : identity)
        members.push_back({id, static_cast<int>(members.size())});
    collx_facts_init(&found.facts, members.data(), static_cast<int>(identity.size()),
                     found.node.data());
    return found;
}

TEST(Facts, NodesAreCountedAsTheRanksMentionThem)
{
    Found found = find({900, 900, 7, 900, UINT64_MAX, 7, 7, 900});

    EXPECT_EQ(found.node, (std::vector<int>{0, 0, 1, 0, 2, 1, 1, 0}));
    EXPECT_EQ(found.facts.node, found.node.data());
    EXPECT_EQ(found.facts.ranks, 8);
    EXPECT_EQ(found.facts.nodes, 3);
    EXPECT_EQ(found.facts.node_ranks_min, 1);
    EXPECT_EQ(found.facts.node_ranks_max, 4);
}

TEST(Facts, OneRank)
{
    Found found = find({5});

    EXPECT_EQ(found.node, std::vector<int>{0});
    EXPECT_EQ(found.facts.nodes, 1);
    EXPECT_EQ(found.facts.node_ranks_min, 1);
    EXPECT_EQ(found.facts.node_ranks_max, 1);
}

TEST(Facts, EachRankOnANodeOfItsOwn)
{
    Found found = find({9, 8, 7, 6, 5, 4});

    EXPECT_EQ(found.node, (std::vector<int>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(found.facts.nodes, 6);
    EXPECT_EQ(found.facts.node_ranks_max, 1);
}

/* As launchers do that give ranks to the nodes in turn. */
TEST(Facts, RanksInTurn)
{
    std::vector<uint64_t> identity;
    std::vector<int> expected;

    for (int rank = 0; rank < 1000; rank++) {
        identity.push_back(UINT64_MAX - static_cast<uint64_t>(rank % 7));
        expected.push_back(rank % 7);
    }
    Found found = find(identity);
    EXPECT_EQ(found.node, expected);
    EXPECT_EQ(found.facts.nodes, 7);
    EXPECT_EQ(found.facts.node_ranks_min, 142);
    EXPECT_EQ(found.facts.node_ranks_max, 143);
}

} // namespace
