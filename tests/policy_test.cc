/* Reading policies: what is right, and what is said about what is not. */
#include "tests/policy_test.h"

#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>

namespace
{

TEST(PolicyRead, TakesEverythingThatARuleCanSay)
{
    Reading reading =
        read_text("version: 1\n"
                  "options: { stall: 2min, spin: 100 }\n"
                  "rules:\n"
                  "  - match: { collective: [barrier, allreduce], comm: \"solver*\",\n"
                  "             ranks: 2..64, nodes: 1, ranks_per_node: 4..,\n"
                  "             bytes: ..8KiB }\n"
                  "    use: [nx(n=6), shm, pmpi]\n"
                  "\n"
                  "  - match:\n"
                  "      op: [sum, user]\n"
                  "    order: rank\n"
                  "    use: shm\n");
    const collx_policy &policy = *reading.policy;

    ASSERT_EQ(reading.messages, Lines());
    ASSERT_EQ(reading.result, 0);
    ASSERT_EQ(policy.options, 2u);
    EXPECT_STREQ(policy.option[0].word, "stall");
    EXPECT_STREQ(policy.option[0].value, "2min");
    EXPECT_STREQ(policy.option[1].word, "spin");
    ASSERT_EQ(policy.rules, 2u);

    const collx_rule &first = policy.rule[0], &second = policy.rule[1];
    EXPECT_EQ(first.line, 4u);
    EXPECT_EQ(first.kinds, 1u << COLLX_BARRIER | 1u << COLLX_ALLREDUCE);
    EXPECT_STREQ(first.comm, "solver*");
    EXPECT_EQ(first.ranks.first, 2);
    EXPECT_EQ(first.ranks.last, 64);
    EXPECT_EQ(first.nodes.first, 1);
    EXPECT_EQ(first.nodes.last, 1);
    EXPECT_EQ(first.node_ranks.first, 4);
    EXPECT_EQ(first.node_ranks.last, INT64_MAX);
    EXPECT_EQ(first.bytes.first, 0);
    EXPECT_EQ(first.bytes.last, 8192);
    EXPECT_EQ(first.ops, UINT32_MAX);
    ASSERT_EQ(first.uses, 3u);
    EXPECT_STREQ(first.use[0].name, "nx");
    EXPECT_STREQ(first.use[1].name, "shm");
    EXPECT_STREQ(first.use[2].name, "pmpi");
    EXPECT_EQ(first.order, COLLX_ORDER_ANY);

    EXPECT_EQ(second.line, 9u);
    EXPECT_EQ(second.kinds, (1u << COLLX_ROUTED) - 1);
    EXPECT_EQ(second.ops, 1u << COLLX_OP_SUM | 1u << COLLX_OP_USER);
    EXPECT_STREQ(second.comm, "*");
    ASSERT_EQ(second.uses, 1u);
    EXPECT_EQ(second.order, COLLX_ORDER_RANK);
}

TEST(PolicyRead, GivesEachCollectiveItsOwnParameters)
{
    for (const char *use : {"\"nx(n=6, mode=exchange)\"", "[\"nx( n=6 , mode=exchange )\"]",
                            "[nx: { n: 6, mode: exchange }]",
                            "\n    - nx:\n        mode: exchange\n"
                            "        n: 6"}) {
        Reading reading = read_text(std::string("version: 1\nrules:\n  - use: ") + use + "\n");
        const collx_use &nx = reading.policy->rule[0].use[0];

        ASSERT_EQ(reading.messages, Lines()) << use;
        EXPECT_EQ(nx.args[COLLX_ALLREDUCE].value[0], 6);
        EXPECT_EQ(nx.args[COLLX_ALLREDUCE].value[1], 1);
        EXPECT_EQ(nx.args[COLLX_BARRIER].value[0], 1) << "the default";
        EXPECT_EQ(nx.args[COLLX_BARRIER].value[1], 6);
        EXPECT_EQ(nx.args[COLLX_BCAST].value[0], 0) << "there is none";
    }
    Reading defaults = read_text("version: 1\nrules: [ use: nx ]\n");
    EXPECT_EQ(defaults.policy->rule[0].use[0].args[COLLX_ALLREDUCE].value[0], 2);
    EXPECT_EQ(defaults.policy->rule[0].use[0].args[COLLX_BARRIER].value[1], 3);
}

/* Rules, the first of them in line 3, and what is said about them. */
struct Case {
    const char *rules, *complaint;
};

class PolicyComplaint : public testing::TestWithParam<Case>
{
};

TEST_P(PolicyComplaint, SaysWhereAndWhat)
{
    EXPECT_EQ(complaint(GetParam().rules), GetParam().complaint) << GetParam().rules;
}

const Case words[] = {
    {" - match: { colective: barrier }\n   use: shm\n",
     "3:13: unknown key 'colective' in match; did you mean 'collective'?"},
    {" - match: { size: 4 }\n   use: shm\n",
     "3:13: unknown key 'size' in match; there are collective, comm, ranks, nodes, "
     "ranks_per_node, bytes, op"},
    {" - mtch: { ranks: 4 }\n   use: shm\n",
     "3:4: unknown key 'mtch' in a rule; did you mean 'match'?"},
    {" - match: { collective: [barier, bcast] }\n   use: shm\n",
     "3:26: 'barier' is not a collective; did you mean 'barrier'?"},
    {" - match: { collective: gather }\n   use: shm\n",
     "3:25: collx has no way of its own for 'gather': it goes to the MPI library without a rule; "
     "there are barrier, bcast and allreduce"},
    {" - match: { collective: reduce }\n   use: shm\n",
     "3:25: collx has no way of its own for 'reduce': it goes to the MPI library without a rule; "
     "there are barrier, bcast and allreduce"},
    {" - match: { collective: [bcast, bcast] }\n   use: shm\n",
     "3:33: 'bcast' stands here twice; once is enough"},
    {" - match: { collective: [] }\n   use: shm\n",
     "3:13: this list is empty; leave the key out to match everything"},
    {" - match: { op: maxlok }\n   use: shm\n",
     "3:17: 'maxlok' is not a reduction operation; did you mean 'maxloc'?"},
    {" - match: { op: none }\n   use: shm\n",
     "3:17: 'none' is not a reduction operation; there are sum, prod, min, max, band, bor, bxor, "
     "land, lor, lxor, minloc, maxloc, replace, no_op, user"},
    {" - match: { op: sum, op: max }\n   use: shm\n",
     "3:22: 'op' stands here twice; once is enough"},
    {" - match: { comm: [a, b] }\n   use: shm\n",
     "3:20: one value has to stand here, not a list or keys"},
    {" - match: { comm: *world }\n   use: shm\n",
     "3:19: *name is an alias in YAML, which a policy cannot use; put quotes around what begins "
     "with *"},
    {" - match: { comm: * }\n   use: shm\n",
     "3:19: *name is an alias in YAML, which a policy cannot use; put quotes around what begins "
     "with *"},
    {" - match:\n     comm: *\n   use: shm\n",
     "4:12: *name is an alias in YAML, which a policy cannot use; put quotes around what begins "
     "with *"},
    {" - &all { use: shm, match: { bytes: 1 } }\n - *all\n",
     "4:4: *name is an alias in YAML, which a policy cannot use; put quotes around what begins "
     "with *"},
    {" - match: *all\n   use: shm\n",
     "3:11: *name is an alias in YAML, which a policy cannot use; put quotes around what begins "
     "with *"},
    {" - use: \"\\e[31mshm\\n\"\n",
     "3:9: '?[31mshm?' is not an algorithm; there are shm, nx, tree, ordered, hsb, ring, pmpi"},
    {" - use: xäääääääääääääääääääää\n", "3:9: 'xäääääääääääääääääää?' is not an algorithm; there "
                                         "are shm, nx, tree, ordered, hsb, ring, pmpi"},
    {" - match: ranks\n   use: shm\n", "3:11: match has to be keys, such as { bytes: ..8KiB }"},
    {" - match:\n   use: shm\n", "3:4: match has to be keys, such as { bytes: ..8KiB }"},
    {" - shm\n", "3:4: a rule has to be keys: match, order and use"},
    {" - order: ranks\n   use: shm\n", "3:11: 'ranks' is not an order; did you mean 'rank'?"},
    {" - order: [any, rank]\n   use: shm\n",
     "3:12: one value has to stand here, not a list or keys"},
    {" - match: { collective: [barrier, bcast] }\n   order: rank\n   use: shm\n",
     "4:4: 'order' is about reductions, and none of the collectives of this rule is one; leave it "
     "out"},
    {"   use: shm\n", "3:4: rules has to be a list, each beginning with '- '"},
};

const Case ranges[] = {
    {" - match: { ranks: 0 }\n   use: shm\n",
     "3:20: '0' goes too low; the lowest there can be is 1"},
    {" - match: { ranks: 8..2 }\n   use: shm\n",
     "3:20: the range '8..2' is empty; the smaller end comes first: 2..8"},
    {" - match: { nodes: two }\n   use: shm\n",
     "3:20: 'two' is not a range; write ..8, 2..64, 17.. or 4"},
    {" - match: { nodes: 1-2 }\n   use: shm\n",
     "3:20: '1-2' is not a range; write ..8, 2..64, 17.. or 4"},
    {" - match: { ranks_per_node: 4KiB }\n   use: shm\n",
     "3:29: '4KiB' is not a range; write ..8, 2..64, 17.. or 4"},
    {" - match: { bytes: ..8kb }\n   use: shm\n",
     "3:20: '..8kb' is not a range; write ..8KiB, 64KiB..1MiB, 1MiB.. or 4096"},
    {" - match: { bytes: 1MiB..64KiB }\n   use: shm\n",
     "3:20: the range '1MiB..64KiB' is empty; the smaller end comes first: 64KiB..1MiB"},
    {" - match: { bytes: 99999999999999999999 }\n   use: shm\n",
     "3:20: '99999999999999999999' is not a range; write ..8KiB, 64KiB..1MiB, 1MiB.. or 4096"},
    {" - match: { bytes: }\n   use: shm\n",
     "3:13: nothing stands here; write a value or leave the key out"},
};

const Case uses[] = {
    {" - match: { ranks: 2 }\n", "3:4: this rule has no 'use'; say what runs, such as use: [shm, "
                                 "pmpi]"},
    {" - use: []\n", "3:4: 'use' names nothing; say what runs, such as [shm, pmpi]"},
    {" - use:\n", "3:4: nothing stands here; write a value or leave the key out"},
    {" - use: [shmm, pmpi]\n", "3:10: 'shmm' is not an algorithm; did you mean 'shm'?"},
    {" - use: [shm, hypercube]\n",
     "3:15: 'hypercube' is not an algorithm; there are shm, nx, tree, ordered, hsb, ring, pmpi"},
    {" - match: { collective: bcast }\n   use: [nx, pmpi]\n",
     "4:10: 'nx' does none of the collectives of this rule; there are shm, tree, pmpi"},
    {" - use: [pmpi, shm]\n",
     "3:16: 'shm' is never reached, for pmpi always runs; put it before pmpi"},
    {" - use: [shm, shm]\n", "3:15: 'shm' stands here twice; once is enough"},
    {" - use: [nx, nx(n=1), nx(n=2), nx(n=3), nx(n=4), nx(n=5), nx(n=6), nx(n=7), nx(n=8)]\n",
     "3:77: too many algorithms; a rule has at most 8"},
    {" - use: nx(m=6)\n", "3:9: nx has no parameter 'm'; there are early, n, mode"},
    {" - use: nx(radix=6)\n", "3:9: nx has no parameter 'radix'; there are early, n, mode"},
    {" - use: shm(n=6)\n", "3:9: shm has no parameter 'n'; there is copies"},
    {" - use: pmpi(n=6)\n", "3:9: pmpi has no parameter 'n'; there is none"},
    {" - use: nx(n=65)\n", "3:9: n of nx: '65' is too large; it has to be from 1 to 32"},
    {" - use: nx(n=six)\n", "3:9: n of nx: 'six' is not right; it has to be a whole number"},
    {" - use: nx(n)\n", "3:9: 'n' is not right; parameters are written like nx(n=6)"},
    {" - use: nx(n=6\n",
     "3:9: 'nx(n=6' is cut off, for in YAML a comma separates entries; put quotes around the "
     "whole, \"nx(n=6, mode=exchange)\", or write nx: { n: 6, mode: exchange }"},
    {" - use: nx)n=6(\n", "3:9: 'nx)n=6(' is not right; parameters are written like nx(n=6)"},
    {" - use: [nx(n=6, mode=exchange), shm]\n",
     "3:10: 'nx(n=6' is cut off, for in YAML a comma separates entries; put quotes around the "
     "whole, \"nx(n=6, mode=exchange)\", or write nx: { n: 6, mode: exchange }"},
    {" - use: \"nx(n=6, n=7)\"\n", "3:9: nx has 'n' twice; once is enough"},
    {" - use: { nx: { mode: exchang } }\n",
     "3:17: mode of nx: 'exchang' is not right; did you mean 'exchange'?"},
    {" - use: { nx: { mode: push } }\n",
     "3:17: mode of nx: 'push' is not right; there are notify, exchange"},
    {" - use: { nx: 6 }\n",
     "3:15: nx has to be a name alone, or its parameters, such as nx: { n: 6 }"},
    {" - use: {}\n", "3:4: an entry has to name an algorithm, such as nx: { n: 6 }"},
    {" - use: { [a]: b }\n", "3:12: one value has to stand here, not a list or keys"},
    {" - use: [shm, {}]\n", "3:4: an entry has to name an algorithm, such as nx: { n: 6 }"},
    {" - use: { nx: { n: 6 }, shm: { n: 3 } }\n",
     "3:25: one algorithm an entry; begin a new one with '- ' or a comma"},
};

const Case orders[] = {
    {" - use: shm\n - match: { ranks: 4 }\n   use: pmpi\n",
     "4:4: this rule can never decide: the one in line 3 takes all that it matches; move it before "
     "that one, or take it out"},
    {" - match: { ranks: 4 }\n   use: shm\n - match: { ranks: 4 }\n   use: pmpi\n",
     "5:4: this rule can never decide: the one in line 3 takes all that it matches; move it before "
     "that one, or take it out"},
    {" - match: { comm: \"solver*\" }\n   use: shm\n - match: { comm: \"solver?x*\" }\n"
     "   use: pmpi\n",
     "5:4: this rule can never decide: the one in line 3 takes all that it matches; move it before "
     "that one, or take it out"},
    {" - match: { bytes: ..4KiB }\n   use: shm\n - match: { bytes: 4097.. }\n   use: pmpi\n"
     " - match: { bytes: 1KiB..1MiB }\n   use: nx\n",
     "7:4: this rule can never decide: those before it together take all that it matches; move it "
     "up, or take it out"},
    {" - match: { collective: [barrier, bcast] }\n   use: shm\n"
     " - match: { collective: allreduce, op: [sum, max] }\n   use: shm\n"
     " - match: { collective: allreduce }\n   use: nx\n"
     " - use: pmpi\n",
     "9:4: this rule can never decide: those before it together take all that it matches; move it "
     "up, or take it out"},
    {" - match: { bytes: ..4KiB, ranks: ..8 }\n   use: shm\n"
     " - match: { bytes: ..4KiB, ranks: 9.. }\n   use: shm\n"
     " - match: { bytes: 4097.., ranks: ..8 }\n   use: shm\n"
     " - match: { bytes: 4097.., ranks: 9.. }\n   use: shm\n"
     " - use: pmpi\n",
     "11:4: this rule can never decide: those before it together take all that it matches; move it "
     "up, or take it out"},
    /* Of 10 ranks on 2 nodes, 8 and 2, the last one decides. */
    {" - match: { ranks_per_node: ..4 }\n   use: shm\n"
     " - match: { ranks_per_node: 5.. }\n   use: shm\n"
     " - use: pmpi\n",
     "right"},
    {" - match: { ranks_per_node: ..4 }\n   use: shm\n"
     " - match: { ranks_per_node: 2..3 }\n   use: pmpi\n",
     "5:4: this rule can never decide: the one in line 3 takes all that it matches; move it before "
     "that one, or take it out"},
    {" - match: { bytes: ..4KiB }\n   use: shm\n - match: { bytes: 1KiB..8KiB }\n   use: pmpi\n",
     "5:4: this rule overlaps the one in line 3: both match bytes 1KiB..4KiB; write bytes: "
     "4097..8KiB here, or change the other"},
    {" - match: { ranks: 8.. }\n   use: shm\n - match: { ranks: 2..9 }\n   use: pmpi\n",
     "5:4: this rule overlaps the one in line 3: both match ranks 8..9; write ranks: 2..7 here, or "
     "change the other"},
    {" - match: { ranks: ..8 }\n   use: shm\n - match: { ranks: 8..16 }\n   use: pmpi\n",
     "5:4: this rule overlaps the one in line 3: both match ranks 8; write ranks: 9..16 here, or "
     "change the other"},
    {" - match: { ranks: 8..16 }\n   use: shm\n - match: { ranks: ..8 }\n   use: pmpi\n",
     "5:4: this rule overlaps the one in line 3: both match ranks 8; write ranks: ..7 here, or "
     "change the other"},
    {" - match: { collective: [barrier, bcast] }\n   use: shm\n"
     " - match: { collective: [bcast, allreduce] }\n   use: shm\n",
     "5:4: this rule overlaps the one in line 3: both match collective bcast; write collective: "
     "[allreduce] here, or change the other"},
    {" - match: { op: [sum, max] }\n   use: nx\n - match: { op: [max, min] }\n   use: shm\n",
     "5:4: this rule overlaps the one in line 3: both match op max; write op: [min] here, or "
     "change the other"},
    {" - match: { collective: [barrier, allreduce], op: sum }\n   use: shm\n",
     "3:4: this rule can never match barrier, which has no op; leave out barrier or 'op' here"},
    {" - match: { collective: barrier, bytes: 8.. }\n   use: shm\n",
     "3:4: this rule can never match barrier, which has no bytes; leave out barrier or 'bytes' "
     "here"},
    {" - match: { ranks: ..8, nodes: 9.. }\n   use: shm\n",
     "3:4: this rule can never match: 'nodes' begins at 9, which takes as many ranks, and 'ranks' "
     "ends at 8; change one of them"},
    {" - match: { ranks: ..8, ranks_per_node: 9.. }\n   use: shm\n",
     "3:4: this rule can never match: 'ranks_per_node' begins at 9, which takes as many ranks, and "
     "'ranks' ends at 8; change one of them"},
    /* How policies are written is right. */
    {" - match: { bytes: 1KiB..8KiB }\n   use: shm\n - match: { bytes: ..1MiB }\n   use: nx\n"
     " - use: pmpi\n",
     "right"},
    {" - match: { bytes: ..4KiB, ranks: ..8 }\n   use: shm\n"
     " - match: { bytes: 1KiB..8KiB, ranks: 4..16 }\n   use: pmpi\n",
     "right"},
    {" - match: { comm: \"a*\" }\n   use: shm\n - match: { comm: \"*a\" }\n   use: pmpi\n",
     "right"},
    {" - match: { comm: \"a?\" }\n   use: shm\n - match: { comm: \"a*\" }\n   use: pmpi\n",
     "right"},
    {" - match: { bytes: 8.. }\n   use: shm\n - match: { collective: barrier }\n   use: pmpi\n",
     "right"},
};

INSTANTIATE_TEST_SUITE_P(Words, PolicyComplaint, testing::ValuesIn(words));
INSTANTIATE_TEST_SUITE_P(Ranges, PolicyComplaint, testing::ValuesIn(ranges));
INSTANTIATE_TEST_SUITE_P(Uses, PolicyComplaint, testing::ValuesIn(uses));
INSTANTIATE_TEST_SUITE_P(Orders, PolicyComplaint, testing::ValuesIn(orders));

TEST(PolicyRead, SaysEverythingThatIsWrongInOneRun)
{
    Reading reading = read_text("vrsion: 1\n"
                                "options: { stal: 60s, trace: /tmp, stall: 30, spin: }\n"
                                "rules:\n"
                                "  - use: shmm\n"
                                "  - match: { ranks: 0 }\n");

    EXPECT_EQ(reading.result, COLLX_EINVALID);
    EXPECT_EQ(reading.messages,
              Lines({"1:1: unknown key 'vrsion' in a policy; did you mean 'version'?",
                     "2:12: 'stal' is not an option; did you mean 'stall'?",
                     "2:23: 'trace' cannot be set in a policy; set COLLX_TRACE in the environment",
                     "2:36: '30' is not right; it has to be a duration, such as 500ms, 30s or 2min",
                     "2:47: nothing stands here; write a value or leave the key out",
                     "4:10: 'shmm' is not an algorithm; did you mean 'shm'?",
                     "5:21: '0' goes too low; the lowest there can be is 1",
                     "5:5: this rule has no 'use'; say what runs, such as use: [shm, pmpi]",
                     "1:1: there is no version; begin with version: 1"}));
}

TEST(PolicyRead, KnowsWhatIsNoPolicy)
{
    EXPECT_EQ(read_text("").messages, Lines({"1:1: the file says nothing; begin with version: 1"}));
    EXPECT_EQ(read_text("hello\n").messages,
              Lines({"1:1: a policy has to be keys: version, options and rules"}));
    EXPECT_EQ(read_text("version: 2\nrules: [ use: shm ]\n").messages,
              Lines({"1:10: version '2' is not known here; this collx reads version: 1"}));
    EXPECT_EQ(read_text("version: 1\n").messages,
              Lines({"1:1: there are no rules; one that lets collx choose is rules: [ use: [shm, "
                     "pmpi] ]"}));
    EXPECT_EQ(read_text("version: 1\nrules: []\n").messages,
              Lines({"2:1: there are no rules; one that lets collx choose is - use: [shm, pmpi]"}));
    EXPECT_EQ(read_text("version: 1\nrules: [ use: shm\n").messages,
              Lines({"3:1: this is not YAML: flow sequence without a closing bracket"}));
    EXPECT_EQ(read_text("version: 1\n---\nversion: 1\n").messages,
              Lines({"1:1: there is more than one document (---); a policy is one"}));
    EXPECT_EQ(read_text(std::string("version: 1\nrules: [ use: \"s\\0m\" ]\n")).result,
              COLLX_EINVALID);
}

// A YAML parser takes such a byte for the end, and what comes after it would be lost without a
// word.
TEST(PolicyRead, TakesNoZeroBytes)
{
    const std::string zero(1, '\0'), text = "version: 1\nrules:\n - use: shm\n";

    EXPECT_EQ(read_text(text + zero + " - usee: shm\n").messages,
              Lines({"4:1: this is not YAML: a byte of 0; a policy is text in UTF-8"}));
    EXPECT_EQ(read_text("v" + zero + "e" + zero).messages,
              Lines({"1:2: this is not YAML: a byte of 0; a policy is text in UTF-8"}));
    EXPECT_EQ(complaint(" - match: { comm: \"a\\0b\" }\n   use: shm\n"),
              "3:19: a character of number 0 cannot stand here");
}

// It does the same with bytes that are not UTF-8, or never comes back.
TEST(PolicyRead, TakesOnlyUtf8)
{
    const std::string text = "version: 1\nrules:\n - match: { ranks: 2 }\n   use: shm\n",
                      rest = " - order: rank\n   use: shm\n";

    alarm(60);
    EXPECT_EQ(read_text(text + "# f\xfcr alle\n" + rest).messages,
              Lines({"5:4: this is not YAML: a byte of 0xfc; a policy is text in UTF-8"}));
    EXPECT_EQ(read_text("% f\xfcr\n" + text).messages,
              Lines({"1:4: this is not YAML: a byte of 0xfc; a policy is text in UTF-8"}));
    /* Written too long, half of a pair, beyond the last one, begun and not ended. */
    for (const char *wrong :
         {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x9a"}) {
        EXPECT_EQ(read_text(text + "# ä" + wrong + "\n" + rest).result, COLLX_EINVALID) << wrong;
        EXPECT_EQ(read_text(text + "# ä" + wrong).result, COLLX_EINVALID) << wrong;
    }
    for (const char *right :
         {"\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
          "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "für", "\xf0\x9f\x9a\x80"}) {
        Reading reading = read_text(text + "# " + right + "\n" + rest);
        EXPECT_EQ(reading.messages, Lines()) << right;
        EXPECT_EQ(reading.policy->rules, 2u) << right;
    }
    alarm(0);
}

// Where keys have a mark of their own such a tab makes libfyaml free one twice.
TEST(PolicyRead, TakesNoTabThatBreaksTheParser)
{
    for (const char *text :
         {"? d:\t>", "\xef\xbb\xbf? d:\t>", "rules:\n  -\t- ? d:\t>", ": ? d:\t>", "a: : ? d: \t>",
          "a: b\r? d:\t|", "? \"d\":\t :", "?\n  d:\t?", "? x: y\n  d: \t- a",
          "%YAML 1.1\n---\na: b\xc2\x85? d:\t>", "%YAML 1.1\n---\na: b\xe2\x80\xa8? d:\t>",
          "%YAML 1.1\n---\n?\xe2\x80\xa9 d:\t>"}) {
        Reading reading = read_text(text);
        EXPECT_EQ(reading.result, COLLX_EINVALID) << text;
        ASSERT_EQ(reading.messages.size(), 1u) << text;
        EXPECT_NE(reading.messages[0].find("no tab can stand"), std::string::npos) << text;
    }
    EXPECT_EQ(complaint(" - match:\n     ? comm\n     : a\n   use:\t- shm\n"),
              "6:7: behind this colon no tab can stand; write a space");
    EXPECT_EQ(complaint(" - match:\n     ? comm\n     : a\n   use:\tshm\n"), "right");
    EXPECT_EQ(complaint(" - match: { comm:\t?b }\n   use: shm # only that?\n"), "right");
}

/* For some a communicator is made within MPI_Init. */
TEST(PolicyRead, TellsWhetherMessagesMayBeNeeded)
{
    const struct {
        const char *rule;
        bool sends;
    } cases[] = {
        {"use: [shm, pmpi]", false},
        {"use: [pmpi]", false},
        {"use: [shm, tree, pmpi]", false},
        {"use: [shm, nx(n=4), pmpi]", true},
        {"{match: {collective: barrier}, use: [nx, pmpi]}", true},
        {"{order: rank, use: [shm, pmpi]}", true},
    };

    EXPECT_FALSE(collx_policy_sends(collx_policy_builtin()));
    for (const auto &each : cases) {
        Reading reading = read_text("version: 1\nrules:\n  - " + std::string(each.rule) + "\n");
        ASSERT_EQ(reading.result, 0) << each.rule << ": " << reading.messages[0];
        EXPECT_EQ(collx_policy_sends(reading.policy.get()), each.sends) << each.rule;
    }
}

TEST(PolicyRead, CountsRules)
{
    std::string text = "version: 1\nrules:\n";

    for (int i = 1; i <= COLLX_POLICY_RULES; i++)
        text += "  - { match: { ranks: " + std::to_string(i) + " }, use: shm }\n";
    EXPECT_EQ(read_text(text).result, 0);
    text += "  - { use: pmpi }\n";
    EXPECT_EQ(read_text(text).messages, Lines({"67:7: too many rules; a policy has at most 64"}));
}

TEST(PolicyRead, TakesOnlyOrdinaryFilesOfSensibleSize)
{
    char folder[] = "/tmp/collx-policy-test-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder));
    std::string pipe = std::string(folder) + "/pipe", large = std::string(folder) + "/large";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    int file = open(large.c_str(), O_CREAT | O_WRONLY, 0600);
    ASSERT_EQ(ftruncate(file, 1ll << 40), 0);
    close(file);

    Reading missing = read_file(std::string(folder) + "/missing");
    EXPECT_EQ(missing.result, -ENOENT);
    EXPECT_EQ(missing.messages, Lines({" cannot be read: No such file or directory"}));
    EXPECT_EQ(read_file(folder).messages, Lines({" is a folder; a policy is an ordinary file"}));
    EXPECT_EQ(read_file(pipe).messages,
              Lines({" is a device, a pipe or a socket; a policy is an ordinary file"}));
    EXPECT_EQ(read_file("/dev/zero").messages,
              Lines({" is a device, a pipe or a socket; a policy is an ordinary file"}));
    EXPECT_EQ(read_file(large).messages,
              Lines({" is too large for a policy; they have at most 128KiB"}));
    unlink(pipe.c_str());
    unlink(large.c_str());
    rmdir(folder);
}

TEST(PolicyRead, IsNotKeptBusyByHugeFiles)
{
    constexpr size_t most = (128 << 10) - 100; /* nearly as long as they may be */
    std::string keys, rules = "version: 1\nrules:\n", depth(most, '['), anchors = rules, tags;
    std::clock_t begin = std::clock();

    for (int i = 0; keys.size() < most; i++)
        keys += "k" + std::to_string(i) + ": 1\n";
    for (int i = 0; anchors.size() < most; i++)
        anchors += "- &a" + std::to_string(i) + " x\n";
    for (int i = 0; tags.size() < most; i++)
        tags += "%TAG !" + std::to_string(i) + "! !\n";
    tags += "--- {}\n";
    while (rules.size() < most)
        rules += "- {a: 1}\n";
    for (const std::string &text : {keys, rules, depth, anchors, tags}) {
        Reading reading = read_text(text);
        EXPECT_EQ(reading.result, COLLX_EINVALID);
        EXPECT_LE(reading.messages.size(), 51u);
    }
    /* CPU time, for tests run on busy machines; without sanitizers it takes a tenth of that. */
    EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(PolicyRead, EndsQuicklyOnRulesMadeToBeHardToCheck)
{
    /* Boxes that overlap in every dimension and never cover the last one. */
    std::string text = "version: 1\nrules:\n";
    std::clock_t begin = std::clock();

    for (int i = 1; i < COLLX_POLICY_RULES; i++) {
        std::string low = std::to_string(i), high = std::to_string(1000 + 7 * i % 67 * 10);
        text += "  - { match: { ranks: " + low + ".." + high + ", nodes: " + low + ".." + high +
                ", bytes: " + high + "..9" + high + ", op: [sum, max] }, use: shm }\n";
    }
    text += "  - { use: pmpi }\n";
    Reading reading = read_text(text);
    EXPECT_EQ(reading.messages, Lines());
    EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

/* All but one corner of what there can be is taken, and that is looked at last, behind more pieces
 * than anybody would wait for.  What has not been found out is not said to be wrong. */
TEST(PolicyRead, LetsPassWhatIsTooHardToCheck)
{
    enum { CENTRE = 1000, CROSSING = COLLX_POLICY_RULES - 8 };
    std::string text = "version: 1\nrules:\n";
    auto around = [](int far) {
        return std::to_string(CENTRE - far) + ".." + std::to_string(CENTRE + far);
    };

    for (int i = 1; i <= CROSSING; i++)
        text += "  - { match: { ranks: " + around(i) + ", nodes: " + around(CROSSING + 1 - i) +
                ", ranks_per_node: " + around(1 + 7 * i % 31) + ", bytes: ..4KiB }, use: shm }\n";
    for (const char *key : {"ranks", "nodes", "ranks_per_node"})
        for (const char *side : {": ..999", ": 1001.."})
            text += std::string("  - { match: { ") + key + side + " }, use: shm }\n";
    text += "  - { match: { bytes: ..1TiB }, use: shm }\n  - { use: pmpi }\n";
    EXPECT_EQ(read_text(text).messages, Lines());
}

/* Whatever a file says, the reader comes back; what it lets pass it has read to the end, and can be
 * planned with. */
TEST(PolicyRead, SurvivesDamagedFiles)
{
    const std::string good = "version: 1\noptions: { stall: 60s }\nrules:\n"
                             "  - match: { collective: [bcast, allreduce], comm: \"a*\",\n"
                             "             ranks: 2..64, bytes: ..8KiB }\n"
                             "    use: [\"nx(n=6, mode=exchange)\", nx: { n: 4 }, shm]\n"
                             "  - match:\n      op: [sum]\n    use:\n      - shm\n      - pmpi\n"
                             "  - use: [shm, pmpi]\n";
    const char bytes[] = "{}[]:,-'\"#&*!|>%@`?()=. \n\t\0\xff\xc3\xa4"
                         "a1";
    std::mt19937 random(1);
    collx_facts facts = {8, 1, 8, 8, 1, nullptr, nullptr};
    collx_choice choices[512];
    int passed = 0;

    auto feed = [&](const std::string &text) {
        alarm(60);
        Reading reading = read_text(text);
        if (reading.result != 0) {
            EXPECT_FALSE(reading.messages.empty()) << text;
            return;
        }
        passed++;
        /* Behind whatever may end there, this is wrong. */
        EXPECT_EQ(read_text(text + "\n]\n").result, COLLX_EINVALID) << text;
        for (int kind = 0; kind < COLLX_ROUTED; kind++)
            EXPECT_GT(collx_policy_plan(reading.policy.get(), &facts, "abc", (collx_kind)kind, 0,
                                        choices, 512),
                      0);
    };

    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    feed(good);
    EXPECT_EQ(passed, 1);
    for (size_t length = 0; length < good.size(); length++)
        feed(good.substr(0, length));
    for (int i = 0; i < 3000; i++) {
        std::string text = good;
        for (unsigned changes = 1 + random() % 4; changes > 0; changes--) {
            size_t at = random() % text.size();
            char byte = bytes[random() % (sizeof bytes - 1)];
            switch (random() % 4) {
            case 0:
                text[at] = byte;
                break;
            case 1:
                text.insert(at, 1, byte);
                break;
            case 2:
                text.erase(at, 1 + random() % 8);
                break;
            default:
                text.insert(at, text.substr(random() % text.size(), random() % 30));
            }
        }
        feed(text);
    }
    alarm(0);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "libfyaml must not speak for itself";
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

} // namespace
