/* What can cross between nodes by, and what injures it. */
#ifndef COLLX_TESTS_WAYS_H
#define COLLX_TESTS_WAYS_H

#include "tests/nodes.h"
#include "tests/team.h"

#include <gtest/gtest.h>

extern "C" {
#include "algorithms/crossroads.h"
}

struct Way {
    std::string name;
    collx_over over;
    std::vector<std::pair<std::string, std::string>> environment;

    /* All that has to be set, with the stand-in's files in a folder. */
    std::vector<std::pair<std::string, std::string>> in(const Folder &folder) const
    {
        auto variables = environment;
        variables.emplace_back("COLLX_TEST_SISCI_FOLDER", folder.path);
        return variables;
    }
};

inline Way sisci(const std::string &name, int percent,
                 std::vector<std::pair<std::string, std::string>> more = {})
{
    std::vector<std::pair<std::string, std::string>> variables = {
        {"COLLX_SISCI_LIBRARY", COLLX_TEST_SISCI},
        {"COLLX_TEST_SISCI_FAIL", std::to_string(percent)},
        {"COLLX_TEST_SISCI_HARD", "20"},
        {"COLLX_TEST_SISCI_PENDING", "20"},
        {"COLLX_TEST_SISCI_LATE", "30"},
    };
    variables.insert(variables.end(), more.begin(), more.end());
    return {name, COLLX_OVER_SISCI, variables};
}

inline std::vector<Way> all_ways()
{
    return {{"shm", COLLX_OVER_SHM, {}},
            {"p2p", COLLX_OVER_P2P, {}},
            {"lent", COLLX_OVER_RMA, {}},
            sisci("sisci", 0),
            sisci("sisci_1", 1),
            sisci("sisci_10", 10, {{"COLLX_SISCI_LINE", "128"}, {"COLLX_TEST_SISCI_LINE", "128"}}),
            sisci("sisci_50", 50),
            sisci("sisci_50_at_once", 50,
                  {{"COLLX_SISCI_ONE_CHECK", "1"}, {"COLLX_TEST_SISCI_SHARED", "1"}})};
}

struct Form {
    std::string name;
    const collx_algorithm *algorithm;
    std::vector<int64_t> params; /* without `over`, the last */
};

struct Case {
    Way way;
    Form form;
    std::vector<int> layout;
    Ranks kind;
};

inline std::string name_of(const testing::TestParamInfo<Case> &info)
{
    std::string name = info.param.way.name + "_" + info.param.form.name + "_on";

    for (int node : info.param.layout)
        name += "_" + std::to_string(node);
    return name + (info.param.kind == Ranks::threads ? "_threads" : "");
}

inline collx_args args_of(const Form &form, collx_over over)
{
    collx_args args = {};
    size_t i = 0;

    for (int64_t value : form.params)
        args.value[i++] = value;
    args.value[i] = over;
    return args;
}

/* A team on nodes, that has come and gone without leaving anything behind. */
class OnWays : public testing::TestWithParam<Case>
{
  protected:
    OnWays() : environment(GetParam().way.in(folder))
    {
    }

    ~OnWays() override
    {
        EXPECT_EQ(folder.files(), std::vector<std::string>()) << "files are left behind";
    }

    static std::string run(const std::function<std::string(Rank &)> &body)
    {
        const Case &c = GetParam();
        collx_args args = args_of(c.form, c.way.over);

        return run_team(c.form.algorithm, static_cast<int>(c.layout.size()), c.kind, true, body,
                        &args, nullptr, c.layout);
    }

    Folder folder;
    Environment environment;
};

#endif
