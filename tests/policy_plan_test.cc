/* What a policy makes of a communicator: choices, and their explanation. */
#include "tests/policy_test.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>

extern "C" {
#include "base/options.h"
#include "policies/match.h"
}

namespace
{

const collx_facts four_nodes = {64, 4, 16, 16, 1, nullptr, nullptr},
                  one_node = {8, 1, 8, 8, 1, nullptr, nullptr},
                  uneven = {10, 2, 3, 7, 1, nullptr, nullptr};

std::shared_ptr<collx_policy> policy_of(const std::string &rules)
{
    Reading reading = read_text("version: 1\nrules:\n" + rules);

    EXPECT_EQ(reading.messages, Lines()) << rules;
    return reading.policy;
}

collx_refused algorithms(uint64_t bits)
{
    collx_refused refused = {};
    refused.algorithms = bits;
    return refused;
}

/* A plan as text: "first..last ops rule algorithm; …" */
std::string plan(const collx_policy &policy, const collx_facts &facts, const char *comm,
                 collx_kind kind, const collx_refused &refused = {})
{
    collx_choice choice[64];
    int count = collx_policy_plan(&policy, &facts, comm, kind, &refused, choice, 64);
    std::string text;

    for (int i = 0; i < count; i++) {
        char range[COLLX_VALUE_MAX * 2], line[256];
        snprintf(line, sizeof line, "%s%s %x %d %s", i ? "; " : "",
                 collx_range_format(COLLX_NUMBER, &choice[i].bytes, 0, range, sizeof range),
                 choice[i].ops, (int)choice[i].rule,
                 choice[i].candidates ? choice[i].candidate[0].algorithm->name : "pmpi");
        text += line;
        for (int c = 1; c < choice[i].candidates; c++)
            text += std::string(" else ") + choice[i].candidate[c].algorithm->name;
        if (choice[i].rank_order)
            text += " in rank order";
    }
    return text;
}

TEST(PolicyPlan, TakesTheFirstRuleThatMatches)
{
    auto policy = policy_of(" - match: { bytes: 1KiB..8KiB }\n   use: nx\n"
                            " - match: { bytes: ..1MiB }\n   use: [shm, pmpi]\n");

    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE),
              "..1023 ffffffff 1 shm; 1024..8192 ffffffff 0 nx; 8193..1048576 ffffffff 1 shm; "
              "1048577.. ffffffff -1 pmpi");
    EXPECT_EQ(plan(*policy, four_nodes, "x", COLLX_ALLREDUCE),
              "..1023 ffffffff 1 pmpi; 1024..8192 ffffffff 0 nx; 8193..1048576 ffffffff 1 pmpi; "
              "1048577.. ffffffff -1 pmpi");
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_BARRIER), "any ffffffff 1 shm");
}

TEST(PolicyPlan, TellsOpsApart)
{
    auto policy = policy_of(" - match: { op: [sum, max], bytes: ..8 }\n   use: nx\n"
                            " - use: shm\n");

    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE),
              "..8 12 0 nx; ..8 ffffffed 1 shm; 9.. ffffffff 1 shm");
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_BCAST), "any ffffffff 1 shm")
        << "what has no op is matched by no op, and does not fall apart at sizes of other rules";
}

TEST(PolicyPlan, MatchesCommunicators)
{
    auto policy = policy_of(" - match: { comm: \"io-?*\" }\n   use: pmpi\n"
                            " - match: { nodes: 2.., ranks_per_node: 4.. }\n   use: nx\n"
                            " - match: { nodes: 2.., ranks: ..10 }\n   use: tree\n"
                            " - use: shm\n");

    EXPECT_EQ(plan(*policy, one_node, "io-7", COLLX_BCAST), "any ffffffff 0 pmpi");
    EXPECT_EQ(plan(*policy, one_node, "io-", COLLX_BCAST), "any ffffffff 3 shm");
    EXPECT_EQ(plan(*policy, one_node, "", COLLX_BCAST), "any ffffffff 3 shm");
    EXPECT_EQ(plan(*policy, four_nodes, "x", COLLX_ALLREDUCE), "any ffffffff 1 nx");
    EXPECT_EQ(plan(*policy, four_nodes, "x", COLLX_BCAST), "any ffffffff 1 pmpi");
    EXPECT_EQ(plan(*policy, uneven, "x", COLLX_BCAST), "any ffffffff 2 tree")
        << "all nodes have to be in ranks_per_node";
    EXPECT_EQ(plan(*policy_of(" - match: { ranks_per_node: ..5 }\n   use: tree\n"), uneven, "x",
                   COLLX_BCAST),
              "any ffffffff -1 pmpi")
        << "also the one with most ranks";
}

TEST(PolicyPlan, PassesOverWhatWasRefused)
{
    auto policy = policy_of(" - use: [shm, nx(n=4)]\n");
    const collx_refused allreduce_shm = algorithms(1 << 2), barrier_shm = algorithms(1 << 0);
    collx_choice choice[4];

    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE), "any ffffffff 0 shm else nx");
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE, algorithms(1 << 2)),
              "any ffffffff 0 nx");
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE, algorithms(1 << 2 | 1 << 4)),
              "any ffffffff 0 pmpi");
    ASSERT_EQ(
        collx_policy_plan(policy.get(), &one_node, "x", COLLX_ALLREDUCE, &allreduce_shm, choice, 4),
        1);
    EXPECT_EQ(choice[0].candidate[0].args->value[0], 4);
    ASSERT_EQ(
        collx_policy_plan(policy.get(), &one_node, "x", COLLX_BARRIER, &barrier_shm, choice, 4), 1);
    EXPECT_EQ(choice[0].candidate[0].args->value[0], 1)
        << "the barrier's first parameter is another one";
    EXPECT_EQ(choice[0].candidate[0].args->value[1], 4);
}

/* Only what guarantees it; `ordered` where nothing of that runs, or does not take a call. */
TEST(PolicyPlan, KeepsRankOrder)
{
    const collx_refused no_ordered = algorithms(1 << 6);
    auto policy = policy_of(" - order: rank\n   use: [nx, shm, pmpi]\n");

    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE),
              "any ffffffff 0 shm else ordered in rank order");
    EXPECT_EQ(plan(*policy, four_nodes, "x", COLLX_ALLREDUCE),
              "any ffffffff 0 ordered in rank order");
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE, no_ordered),
              "any ffffffff 0 shm in rank order");
    EXPECT_EQ(plan(*policy, four_nodes, "x", COLLX_ALLREDUCE, no_ordered),
              "any ffffffff 0 pmpi in rank order")
        << "nothing has it, which the plan tells";
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_BARRIER), "any ffffffff 0 nx")
        << "what does not reduce has no order";

    EXPECT_EQ(plan(*policy_of(" - order: rank\n   use: [ordered, shm]\n"), one_node, "x",
                   COLLX_ALLREDUCE),
              "any ffffffff 0 ordered in rank order")
        << "what is named comes in the order in which it is named";
    EXPECT_EQ(plan(*policy_of(" - order: rank\n   use: [shm, shm(copies=1)]\n"), one_node, "x",
                   COLLX_ALLREDUCE),
              "any ffffffff 0 shm else ordered in rank order")
        << "with other parameters it takes no more";
    EXPECT_EQ(plan(*policy_of(" - order: rank\n   use: [shm, nx, tree, ordered]\n"), one_node, "x",
                   COLLX_ALLREDUCE),
              "any ffffffff 0 shm else tree else ordered in rank order")
        << "what neither of the first takes";
    EXPECT_EQ(plan(*policy_of(" - order: rank\n   use: [shm, tree, hsb, ring]\n"), one_node, "x",
                   COLLX_ALLREDUCE),
              "any ffffffff 0 shm else tree else hsb else ordered in rank order")
        << "of more than there is room for, the last one";
    EXPECT_EQ(plan(*policy_of(" - order: rank\n   use: pmpi\n"), one_node, "x", COLLX_ALLREDUCE),
              "any ffffffff 0 ordered in rank order");
    EXPECT_EQ(plan(*policy_of(" - order: any\n   use: nx\n"), one_node, "x", COLLX_ALLREDUCE),
              "any ffffffff 0 nx");
}

/* As long as there is anything that the one before does not take. */
TEST(PolicyPlan, NamesWhoHasWhatTheFirstDoesNotTake)
{
    auto policy = policy_of(" - use: [shm, hsb, nx, ring, pmpi]\n");

    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE), "any ffffffff 0 shm else hsb else nx");
    EXPECT_EQ(plan(*policy, four_nodes, "x", COLLX_ALLREDUCE), "any ffffffff 0 hsb else nx");
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_BARRIER), "any ffffffff 0 shm");
}

TEST(PolicyPlan, SaysWhenThereIsNoRoom)
{
    auto policy = policy_of(" - match: { bytes: 1KiB..8KiB }\n   use: nx\n - use: shm\n");
    collx_choice choice[3];

    EXPECT_EQ(collx_policy_plan(policy.get(), &one_node, "x", COLLX_BCAST, 0, choice, 2), -E2BIG);
    EXPECT_EQ(collx_policy_plan(policy.get(), &one_node, "x", COLLX_BCAST, 0, choice, 3), 3);
}

/* Against the definition: for any size and op, exactly one choice, which is that of the first rule
 * that matches. */
TEST(PolicyPlan, AgreesWithItsDefinition)
{
    std::mt19937 random(2);

    for (int round = 0; round < 300; round++) {
        collx_policy policy = {};
        collx_choice choice[512];

        policy.rules = 1 + random() % 8;
        for (uint32_t r = 0; r < policy.rules; r++) {
            collx_rule &rule = policy.rule[r];
            rule.kinds = 1 + random() % 7;
            rule.ops = random() % 2 ? UINT32_MAX : (uint32_t)random() % (1 << COLLX_OP_COUNT) & ~1u;
            strcpy(rule.comm, random() % 4 ? "*" : "y*");
            rule.ranks = rule.nodes = rule.node_ranks = {1, random() % 8 ? INT64_MAX : 2};
            rule.bytes.first = random() % 20;
            rule.bytes.last = random() % 3 ? rule.bytes.first + random() % 20 : INT64_MAX;
            rule.uses = 1;
            strcpy(rule.use[0].name, "pmpi");
        }
        for (collx_kind kind : {COLLX_BARRIER, COLLX_BCAST, COLLX_ALLREDUCE}) {
            int count = collx_policy_plan(&policy, &one_node, "x", kind, 0, choice, 512);
            ASSERT_GT(count, 0);
            for (int i = 1; i < count; i++)
                ASSERT_LE(choice[i - 1].bytes.first, choice[i].bytes.first);
            for (int64_t bytes = 0; bytes < (kind == COLLX_BARRIER ? 1 : 50); bytes++) {
                for (int op = kind == COLLX_ALLREDUCE ? 1 : 0;
                     op < (kind == COLLX_ALLREDUCE ? COLLX_OP_COUNT : 1); op++) {
                    uint32_t expected = UINT32_MAX, found = 0;
                    char why[COLLX_WHY_MAX];
                    for (uint32_t r = policy.rules; r-- > 0;)
                        if (!collx_rule_fits(&policy.rule[r], &one_node, "x", kind, why,
                                             sizeof why) &&
                            collx_range_has(&policy.rule[r].bytes, bytes) &&
                            policy.rule[r].ops >> op & 1)
                            expected = r;
                    for (int i = 0; i < count; i++)
                        if (collx_range_has(&choice[i].bytes, bytes) && choice[i].ops >> op & 1) {
                            ASSERT_EQ(choice[i].rule, expected) << bytes << " bytes, op " << op;
                            found++;
                        }
                    ASSERT_EQ(found, 1u) << bytes << " bytes, op " << op;
                }
            }
        }
    }
}

TEST(PolicyPlan, HandsOverOnlyWhatIsInUse)
{
    auto policy = policy_of(" - match: { ranks: 2 }\n   use: nx\n - use: shm\n");
    collx_policy copy;

    memset((void *)&copy, 0xff, sizeof copy);
    memcpy((void *)&copy, policy.get(), collx_policy_size(policy.get()));
    EXPECT_LT(collx_policy_size(policy.get()), 8192u);
    EXPECT_EQ(plan(copy, one_node, "x", COLLX_BCAST), plan(*policy, one_node, "x", COLLX_BCAST));
}

TEST(PolicyPlan, MatchesNames)
{
    EXPECT_TRUE(collx_glob("*", ""));
    EXPECT_TRUE(collx_glob("a*c*e", "abcde"));
    EXPECT_TRUE(collx_glob("a*", "a"));
    EXPECT_TRUE(collx_glob("*ab", "aab"));
    EXPECT_TRUE(collx_glob("", ""));
    EXPECT_FALSE(collx_glob("", "a"));
    EXPECT_FALSE(collx_glob("a", ""));
    EXPECT_FALSE(collx_glob("a?", "a"));
    EXPECT_FALSE(collx_glob("*ab", "aba"));
    EXPECT_TRUE(collx_glob("a?c", "a*c")) << "a name may have a star";
    EXPECT_FALSE(collx_glob_holds("a?c", "a*c"));
    EXPECT_TRUE(collx_glob_holds("a*c", "a?c"));
    EXPECT_TRUE(collx_glob_holds("a??c", "a??c"));
}

TEST(PolicyPlan, MatchesCharactersNotBytes)
{
    EXPECT_TRUE(collx_glob("j?b", "jäb"));
    EXPECT_FALSE(collx_glob("j??b", "jäb"));
    EXPECT_TRUE(collx_glob("?", "\xf0\x9f\x9a\x80"));
    EXPECT_TRUE(collx_glob("*?b", "€b"));
    EXPECT_FALSE(collx_glob("*??", "€")) << "no star ends within a character";
    EXPECT_TRUE(collx_glob("*ä*", "Präfix"));
    EXPECT_FALSE(collx_glob("*ä", "Ã¤"));
    /* In Latin-1, and cut off. */
    EXPECT_TRUE(collx_glob("j?b", "j\xe4"
                                  "b"));
    EXPECT_TRUE(collx_glob("a??", "a\xe2\x82"));
    EXPECT_EQ(complaint(" - match: { comm: \"j?b\" }\n   use: shm\n"
                        " - match: { comm: \"jäb\" }\n   use: pmpi\n"),
              "5:4: this rule can never decide: the one in line 3 takes all that it matches; move "
              "it before that one, or take it out");
}

TEST(PolicyShipped, DefaultIsWhatIsBuiltIn)
{
    Reading reading = read_file(COLLX_TEST_POLICIES "/default.yaml");
    collx_policy &read = *reading.policy;

    ASSERT_EQ(reading.messages, Lines());
    memcpy(read.source, collx_policy_builtin()->source, sizeof read.source);
    for (uint32_t r = 0; r < read.rules; r++)
        read.rule[r].line = 0;
    EXPECT_EQ(memcmp(&read, collx_policy_builtin(), sizeof read), 0);
}

TEST(PolicyOptions, AreAppliedButDoNotOverrideTheEnvironment)
{
    char spin[] = "COLLX_SPIN=5";
    char *const environment[] = {spin, nullptr};
    Reading reading =
        read_text("version: 1\noptions: { spin: 7, stall: 1min }\nrules: [ use: shm ]\n");

    ASSERT_EQ(reading.messages, Lines());
    collx_options_load(environment, nullptr);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 30000) << "reading alone sets nothing";
    collx_policy_apply_options(reading.policy.get());
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 60000);
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_STALL), COLLX_FROM_POLICY);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_SPIN), 5);
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_SPIN), COLLX_FROM_ENVIRONMENT);

    Reading next = read_text("version: 1\noptions: { verbose: 2 }\nrules: [ use: shm ]\n");
    collx_policy_apply_options(next.policy.get());
    EXPECT_EQ(collx_option_number(COLLX_OPTION_VERBOSE), 2);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 30000) << "it is of another policy";
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_STALL), COLLX_FROM_DEFAULT);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_SPIN), 5);
}

Lines explain(collx_policy &policy, const collx_facts &facts, collx_kind kind, int64_t bytes,
              const collx_refused &refused = {})
{
    Lines lines;

    strcpy(policy.source, "site.yaml");
    collx_policy_explain(&policy, &facts, "MPI_COMM_WORLD", kind, &refused, bytes, COLLX_OP_SUM,
                         keep_line, &lines);
    return lines;
}

const char *const example = " - match: { ranks: ..32 }\n   use: nx\n"
                            " - match: { bytes: ..8KiB, op: [sum, max] }\n"
                            "   use: [shm, \"nx(n=6, mode=exchange)\", pmpi]\n"
                            " - match: { bytes: ..1MiB }\n   use: [shm]\n";

/* With some parameters alone: the next use of the same algorithm is taken. */
TEST(PolicyExplain, WhatWasRefusedWithItsParameters)
{
    auto policy = policy_of(" - use: [nx(n=6), nx(n=4), pmpi]\n");
    collx_refused refused = {};
    refused.uses = 1;
    refused.use[0].algorithm = collx_algorithm_find(COLLX_BARRIER, "nx");
    refused.use[0].args = policy->rule[0].use[0].args[COLLX_BARRIER];
    strcpy(refused.use[0].why, "rank 3 has no adapter");

    EXPECT_EQ(
        explain(*policy, one_node, COLLX_BARRIER, 0, refused),
        Lines({"barrier on MPI_COMM_WORLD: 8 ranks on 1 node; policy site.yaml", "  rule    line 3",
               "  runs    nx(n=4)", "          not nx(n=6): rank 3 has no adapter",
               "          not pmpi: nx(n=4) comes first"}));
    refused.use[0].args.value[1]++;
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_BARRIER, refused),
              plan(*policy, one_node, "x", COLLX_BARRIER));
    EXPECT_EQ(plan(*policy, one_node, "x", COLLX_ALLREDUCE, refused),
              plan(*policy, one_node, "x", COLLX_ALLREDUCE));
}

TEST(PolicyExplain, OneCall)
{
    auto policy = policy_of(example);

    EXPECT_EQ(explain(*policy, four_nodes, COLLX_ALLREDUCE, 1024),
              Lines({"allreduce of 1KiB, op sum, on MPI_COMM_WORLD: 64 ranks on 4 nodes, 16 on "
                     "each; policy site.yaml",
                     "  passed  line 3: ranks: 64 is not in ..32", "  rule    line 5",
                     "  runs    nx(n=6, mode=exchange)",
                     "          not shm: spans 4 nodes; shm needs all ranks on one",
                     "          not pmpi: nx(n=6, mode=exchange) comes first"}));
    EXPECT_EQ(explain(*policy, four_nodes, COLLX_BCAST, 2 << 20),
              Lines({"bcast of 2MiB on MPI_COMM_WORLD: 64 ranks on 4 nodes, 16 on each; policy "
                     "site.yaml",
                     "  passed  line 3: ranks: 64 is not in ..32",
                     "  passed  line 5: bytes: 2MiB is not in ..8KiB",
                     "  passed  line 7: bytes: 2MiB is not in ..1MiB", "  rule    none matches",
                     "  runs    pmpi"}));
    EXPECT_EQ(
        explain(*policy, {64, 1, 64, 64, 1, nullptr, nullptr}, COLLX_BARRIER, 2 << 20),
        Lines({"barrier on MPI_COMM_WORLD: 64 ranks on 1 node; policy site.yaml",
               "  passed  line 3: ranks: 64 is not in ..32",
               "  passed  line 5: op: barrier has none", "  rule    line 7", "  runs    shm"}))
        << "it has no bytes, whatever is asked";
    EXPECT_EQ(explain(*policy, uneven, COLLX_BARRIER, 0),
              Lines({"barrier on MPI_COMM_WORLD: 10 ranks on 2 nodes, 3 to 7 on each; policy "
                     "site.yaml",
                     "  rule    line 3", "  runs    nx"}));
}

TEST(PolicyExplain, Table)
{
    auto policy = policy_of(example);

    EXPECT_EQ(
        explain(*policy, four_nodes, COLLX_ALLREDUCE, -1),
        Lines({"allreduce on MPI_COMM_WORLD: 64 ranks on 4 nodes, 16 on each; policy site.yaml",
               "  bytes                op           rule       runs",
               "  ..8KiB               sum max      line 5     nx(n=6, mode=exchange)",
               "      not shm: spans 4 nodes; shm needs all ranks on one",
               "  ..8KiB               not sum max  line 7     pmpi",
               "      not shm: spans 4 nodes; shm needs all ranks on one",
               "  8193..1MiB           any          line 7     pmpi",
               "      not shm: spans 4 nodes; shm needs all ranks on one",
               "  1048577..            any          no rule    pmpi"}));
    EXPECT_EQ(
        explain(*policy, {64, 1, 64, 64, 1, nullptr, nullptr}, COLLX_BARRIER, -1, algorithms(1)),
        Lines({"barrier on MPI_COMM_WORLD: 64 ranks on 1 node; policy site.yaml",
               "  bytes                op           rule       runs",
               "  -                    -            line 7     pmpi",
               "      not shm: it could not be set up on all ranks"}));
}

TEST(PolicyExplain, WhoHasTheRest)
{
    auto policy = policy_of(" - use: [shm, nx, pmpi]\n");

    EXPECT_EQ(explain(*policy, one_node, COLLX_ALLREDUCE, -1),
              Lines({"allreduce on MPI_COMM_WORLD: 8 ranks on 1 node; policy site.yaml",
                     "  bytes                op           rule       runs",
                     "  any                  any          line 3     shm",
                     "      what shm does not take goes to nx"}));
}

TEST(PolicyExplain, RankOrder)
{
    auto policy = policy_of(" - order: rank\n   use: [nx, shm, pmpi]\n");

    EXPECT_EQ(
        explain(*policy, one_node, COLLX_ALLREDUCE, 8),
        Lines({"allreduce of 8, op sum, on MPI_COMM_WORLD: 8 ranks on 1 node; policy "
               "site.yaml",
               "  rule    line 3", "  runs    shm",
               "          not nx: it does not combine in the order of the ranks",
               "          not pmpi: shm comes first", "          not ordered: shm comes first",
               "          in rank order; what shm does not take goes to ordered"}));
    auto longer = policy_of(" - order: rank\n   use: [tree, shm]\n");
    EXPECT_EQ(explain(*longer, one_node, COLLX_ALLREDUCE, -1),
              Lines({"allreduce on MPI_COMM_WORLD: 8 ranks on 1 node; policy site.yaml",
                     "  bytes                op           rule       runs",
                     "  any                  any          line 3     tree",
                     "      in rank order; what tree does not take goes to shm, and what shm does "
                     "not take to ordered"}));
    EXPECT_EQ(explain(*policy, four_nodes, COLLX_ALLREDUCE, -1, algorithms(1 << 6)),
              Lines({"allreduce on MPI_COMM_WORLD: 64 ranks on 4 nodes, 16 on each; policy "
                     "site.yaml",
                     "  bytes                op           rule       runs",
                     "  any                  any          line 3     pmpi",
                     "      not nx: it does not combine in the order of the ranks",
                     "      not shm: spans 4 nodes; shm needs all ranks on one",
                     "      not pmpi: the MPI library does not promise order: rank",
                     "      not ordered: it could not be set up on all ranks",
                     "      so not in rank order, which the rule demands"}));
}

} // namespace
