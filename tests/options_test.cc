/* Values and options: how they are written, and what is said about them. */
extern "C" {
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
}

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace
{

using Lines = std::vector<std::string>;

std::string parsed(collx_type type, const char *text, int64_t min = 0, int64_t max = INT64_MAX)
{
    char why[COLLX_WHY_MAX];
    int64_t value = -1;

    return collx_value_parse(type, text, min, max, &value, why, sizeof why) ? why
                                                                            : std::to_string(value);
}

TEST(Parse, Values)
{
    EXPECT_EQ(parsed(COLLX_NUMBER, "42"), "42");
    EXPECT_EQ(parsed(COLLX_NUMBER, "-1", -1), "-1");
    EXPECT_EQ(parsed(COLLX_SIZE, "4096"), "4096");
    EXPECT_EQ(parsed(COLLX_SIZE, "4096B"), "4096");
    EXPECT_EQ(parsed(COLLX_SIZE, "64KiB"), "65536");
    EXPECT_EQ(parsed(COLLX_SIZE, "3TiB"), std::to_string(3ll << 40));
    EXPECT_EQ(parsed(COLLX_DURATION, "500ms"), "500");
    EXPECT_EQ(parsed(COLLX_DURATION, "30s"), "30000");
    EXPECT_EQ(parsed(COLLX_DURATION, "2min"), "120000");
    EXPECT_EQ(parsed(COLLX_DURATION, "0"), "0");
    for (const char *on : {"1", "on", "yes", "true"})
        EXPECT_EQ(parsed(COLLX_SWITCH, on), "1");
    for (const char *off : {"0", "off", "no", "false"})
        EXPECT_EQ(parsed(COLLX_SWITCH, off), "0");
    EXPECT_EQ(parsed(COLLX_KERNELS, "auto"), "0");
    EXPECT_EQ(parsed(COLLX_KERNELS, "c"), "3");
    EXPECT_EQ(parsed(COLLX_CHECK, "barrier"), "0");
    EXPECT_EQ(parsed(COLLX_CHECK, "full"), "2");
    EXPECT_EQ(parsed(COLLX_TRISTATE, "auto"), "0");
    EXPECT_EQ(parsed(COLLX_TRISTATE, "off"), "2");
}

TEST(Parse, SaysWhatWouldBeRight)
{
    EXPECT_EQ(parsed(COLLX_NUMBER, "4KiB"), "'4KiB' is not right; it has to be a whole number");
    EXPECT_EQ(parsed(COLLX_NUMBER, " 4"), "' 4' is not right; it has to be a whole number");
    EXPECT_EQ(parsed(COLLX_NUMBER, ""), "'' is not right; it has to be a whole number");
    EXPECT_EQ(parsed(COLLX_NUMBER, "-"), "'-' is not right; it has to be a whole number");
    EXPECT_EQ(parsed(COLLX_SIZE, "64kb"),
              "'64kb' is not right; it has to be a size, such as 4096, 64KiB or 1MiB");
    EXPECT_EQ(parsed(COLLX_SIZE, "9999999TiB"),
              "'9999999TiB' is not right; it has to be a size, such as 4096, 64KiB or 1MiB");
    EXPECT_EQ(parsed(COLLX_DURATION, "30"),
              "'30' is not right; it has to be a duration, such as 500ms, 30s or 2min");
    EXPECT_EQ(parsed(COLLX_SWITCH, "2"), "'2' is not right; it has to be on or off");
    EXPECT_EQ(parsed(COLLX_KERNELS, "sse"),
              "'sse' is not right; it has to be auto, avx512, avx2 or c");
    EXPECT_EQ(parsed(COLLX_CHECK, "none"),
              "'none' is not right; it has to be barrier, flush or full");
    EXPECT_EQ(parsed(COLLX_NUMBER, "3", 0, 2), "'3' is too large; it has to be from 0 to 2");
    EXPECT_EQ(parsed(COLLX_SIZE, "1", 4096, 1 << 20),
              "'1' is too small; it has to be from 4KiB to 1MiB");
    EXPECT_EQ(parsed(COLLX_NUMBER, "0", 1), "'0' is too small; it has to be at least 1");
}

TEST(Parse, FormatsSoThatItCanBeParsed)
{
    for (int64_t value : {0ll, 1ll, 1023ll, 1024ll, 1025ll, 65536ll, 1ll << 30, 90000ll, 3600000ll})
        for (collx_type type : {COLLX_NUMBER, COLLX_SIZE, COLLX_DURATION}) {
            char text[COLLX_VALUE_MAX];
            EXPECT_EQ(parsed(type, collx_value_format(type, value, text, sizeof text)),
                      std::to_string(value))
                << text;
        }
}

TEST(Parse, FormatsWords)
{
    char text[COLLX_VALUE_MAX];

    for (const char *word : {"on", "off"})
        EXPECT_STREQ(word, collx_value_format(COLLX_SWITCH, std::stoll(parsed(COLLX_SWITCH, word)),
                                              text, sizeof text));
    for (const char *word : {"auto", "avx512", "avx2", "c"})
        EXPECT_STREQ(word,
                     collx_value_format(COLLX_KERNELS, std::stoll(parsed(COLLX_KERNELS, word)),
                                        text, sizeof text));
    for (const char *word : {"auto", "on", "off"})
        EXPECT_STREQ(word,
                     collx_value_format(COLLX_TRISTATE, std::stoll(parsed(COLLX_TRISTATE, word)),
                                        text, sizeof text));
    for (const char *word : {"barrier", "flush", "full"})
        EXPECT_STREQ(word, collx_value_format(COLLX_CHECK, std::stoll(parsed(COLLX_CHECK, word)),
                                              text, sizeof text));
}

TEST(Parse, Ranges)
{
    struct {
        const char *text;
        int64_t first, last;
        const char *back;
    } const cases[] = {
        {"..8KiB", 0, 8192, "..8KiB"},
        {"64KiB..1MiB", 65536, 1 << 20, "64KiB..1MiB"},
        {"4", 4, 4, "4"},
        {"17..", 17, INT64_MAX, "17.."},
        {"..", 0, INT64_MAX, "any"},
        {"4..4", 4, 4, "4"},
        {"0..", 0, INT64_MAX, "any"},
        {"0", 0, 0, "0"},
    };
    char why[COLLX_WHY_MAX], text[2 * COLLX_VALUE_MAX];

    for (const auto &c : cases) {
        collx_range range;
        ASSERT_EQ(collx_range_parse(COLLX_SIZE, c.text, 0, &range, why, sizeof why), 0) << why;
        EXPECT_EQ(range.first, c.first);
        EXPECT_EQ(range.last, c.last);
        EXPECT_STREQ(collx_range_format(COLLX_SIZE, &range, 0, text, sizeof text), c.back);
    }
    for (const char *bad : {"", "a", "1...5", "1..2..3", "..x", "1-5", "..-1", " 1..2"}) {
        collx_range range;
        EXPECT_EQ(collx_range_parse(COLLX_SIZE, bad, 0, &range, why, sizeof why), COLLX_EINVALID)
            << bad;
    }
}

const char *nearest(const char *word)
{
    collx_nearest search = {};

    search.word = word;

    for (const char *name : {"barrier", "bcast", "allreduce", "shm", "nx"})
        collx_nearest_offer(&search, name);
    return search.name ? search.name : "";
}

/* Each once, also one that is the end of another. */
TEST(Parse, ListsAllNamesWhereNoneIsNear)
{
    collx_nearest search = {};
    char hint[COLLX_WHY_MAX];

    search.word = "somethingelse";
    for (const char *name : {"ranks_per_node", "node", "nodes", "node", "ranks_per_node"})
        collx_nearest_offer(&search, name);
    EXPECT_STREQ(collx_nearest_hint(&search, hint, sizeof hint),
                 "; there are ranks_per_node, node, nodes");
}

TEST(Parse, FindsTheNearestName)
{
    EXPECT_STREQ(nearest("barier"), "barrier");
    EXPECT_STREQ(nearest("abrrier"), "barrier") << "two letters swapped are one slip";
    EXPECT_STREQ(nearest("All-Reduce"), "allreduce");
    EXPECT_STREQ(nearest("broadcast"), "") << "too far to be worth a guess";
    EXPECT_STREQ(nearest("xy"), "");
    EXPECT_STREQ(nearest(""), "");
    EXPECT_STREQ(nearest(std::string(1000, 'a').c_str()), "");
}

Lines said;

void keep(const char *message)
{
    said.push_back(message);
}

Lines load(std::vector<std::string> environment)
{
    std::vector<char *> strings;

    for (std::string &variable : environment)
        strings.push_back(variable.data());
    strings.push_back(nullptr);
    said.clear();
    collx_options_load(strings.data(), keep);
    return said;
}

TEST(Options, DefaultsAreWithinTheirLimits)
{
    load({});
    for (unsigned id = 0; id < COLLX_OPTIONS; id++) {
        const collx_option *option = collx_option_describe((collx_option_id)id);
        EXPECT_EQ(collx_option_origin((collx_option_id)id), COLLX_FROM_DEFAULT);
        EXPECT_EQ(collx_option_number((collx_option_id)id), option->initial);
        EXPECT_STREQ(collx_option_text((collx_option_id)id), "");
        EXPECT_GE(option->initial, option->min) << option->word;
        EXPECT_LE(option->initial, option->max) << option->word;
    }
}

TEST(Options, ComeFromTheEnvironment)
{
    std::vector<std::string> environment = {"HOME=/",           "COLLX_TRACE=/tmp/t",
                                            "COLLX_STALL=2min", "COLLX_ENABLE=off",
                                            "COLLX_SPIN=",      "COLLX_TRACE=/x"};

    EXPECT_EQ(load(environment), Lines());
    EXPECT_STREQ(collx_option_text(COLLX_OPTION_TRACE), "/tmp/t") << "a copy, and the first";
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 120000);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_ENABLE), 0);
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_STALL), COLLX_FROM_ENVIRONMENT);
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_SPIN), COLLX_FROM_DEFAULT);
    load({});
    EXPECT_STREQ(collx_option_text(COLLX_OPTION_TRACE), "");
    EXPECT_EQ(collx_option_number(COLLX_OPTION_ENABLE), 1);
}

TEST(Options, SlipsAreReportedAndCountAsNotSet)
{
    EXPECT_EQ(load({"COLLX_POLICI=x", "COLLX_TRACEDIR=x", "COLLX_stall=1s", "COLLX_FOO=1",
                    "COLLX_TEST_FOO=1", "COLLX=1", "XCOLLX_FOO=1", "COLLX_"}),
              Lines({"COLLX_POLICI is not an option; did you mean COLLX_POLICY?",
                     "COLLX_TRACEDIR is not an option; did you mean COLLX_TRACE?",
                     "COLLX_stall is not an option; did you mean COLLX_STALL?",
                     "COLLX_FOO is not an option; `collx info` lists all there are"}));
    EXPECT_EQ(
        load({"COLLX_STALL=30", "COLLX_VERBOSE=3"}),
        Lines({"COLLX_STALL: '30' is not right; it has to be a duration, such as 500ms, 30s or "
               "2min; it counts as not set",
               "COLLX_VERBOSE: '3' is too large; it has to be from 0 to 2; it counts as not set"}));
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 30000);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_VERBOSE), 0);
    /* So a policy may still set it. */
    char why[COLLX_WHY_MAX];
    EXPECT_EQ(collx_option_set("stall", "60s", why, sizeof why), 0);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 60000);
}

TEST(Options, ComeFromAPolicyWhereItMaySetThem)
{
    char why[COLLX_WHY_MAX];

    load({"COLLX_SPIN=9"});
    EXPECT_EQ(collx_option_check("stall", "5s", why, sizeof why), 0);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 30000);
    EXPECT_EQ(collx_option_set("stall", "5s", why, sizeof why), 0);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 5000);
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_STALL), COLLX_FROM_POLICY);
    EXPECT_EQ(collx_option_set("spin", "5", why, sizeof why), 0);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_SPIN), 9) << "the environment comes first";
    collx_option_unset(COLLX_OPTION_STALL);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_STALL), 30000);
    EXPECT_EQ(collx_option_origin(COLLX_OPTION_STALL), COLLX_FROM_DEFAULT);
    collx_option_unset(COLLX_OPTION_SPIN);
    EXPECT_EQ(collx_option_number(COLLX_OPTION_SPIN), 9);
    EXPECT_EQ(collx_option_set("spim", "5", why, sizeof why), COLLX_EINVALID);
    EXPECT_STREQ(why, "'spim' is not an option; did you mean 'spin'?");
    EXPECT_EQ(collx_option_set("adapter", "x", why, sizeof why), COLLX_EINVALID);
    EXPECT_STREQ(why, "'adapter' cannot be set in a policy; set COLLX_ADAPTER in the environment");
}

/* What programs call their communicators, for instance. */
TEST(Log, NothingControlsATerminal)
{
    testing::internal::CaptureStderr();
    collx_warn("the ranks of %s", "\x1b[31ma\nb\x7f\xc2\x9b\xc2\xa0\xe2\x89\xa4");
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "collx: the ranks of ?[31ma?b???\xc2\xa0\xe2\x89\xa4\n");
}

} // namespace
