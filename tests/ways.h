/* What can cross between nodes by, and what injures it. */
#ifndef COLLX_TESTS_WAYS_H
#define COLLX_TESTS_WAYS_H

#include "tests/nodes.h"
#include "tests/team.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <unistd.h>

extern "C" {
#include "algorithms/between/crossroads.h"
}

struct Way {
    std::string name;
    collx_over over;
    Variables environment;

    /* All that has to be set, with the stand-in's files in a folder. */
    Variables in(const Folder &folder) const
    {
        auto variables = environment;
        variables.emplace_back("COLLX_TEST_SISCI_FOLDER", folder.path);
        return variables;
    }
};

inline Way sisci(const std::string &name, int percent, const Variables &more = {})
{
    return {name, COLLX_OVER_SISCI, standin_for_sisci(COLLX_TEST_SISCI, percent, more)};
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
    std::vector<int64_t> params; /* the first ones; the others have their initial values */
};

/* Every algorithm that goes over something, also one that somebody adds; then more forms. */
inline std::vector<Form> forms_of(collx_kind kind, const std::vector<Form> &more)
{
    std::vector<Form> all;

    for (int i = 0; collx_algorithms[i]; i++)
        for (const collx_param *param = collx_algorithms[i]->params; param && param->name; param++)
            if (collx_algorithms[i]->kind == kind && !strcmp(param->name, "over"))
                all.push_back({collx_algorithms[i]->name, collx_algorithms[i], {}});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

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

inline collx_args args_of(const Form &form, int64_t over)
{
    const collx_param *param = form.algorithm->params;
    collx_args args = {};

    for (size_t i = 0; param[i].name; i++)
        args.value[i] = !strcmp(param[i].name, "over") ? over
                        : i < form.params.size()       ? form.params[i]
                                                       : param[i].initial;
    return args;
}

/* Each layout meets each form, and each of them each way, in turn, one of `turns` that there are,
 * or a few more: all of it takes long. */
template <size_t layouts>
std::vector<Case> cases(const std::vector<int> (&layout)[layouts], const std::vector<Form> &form,
                        unsigned turns)
{
    std::vector<Case> all;
    unsigned turn = 0;

    while (std::gcd(turns, layouts * form.size()) != 1)
        turns++; /* else some forms would never meet some layouts */
    for (Ranks kind : all_kinds)
        for (const Way &way : all_ways()) {
            /* One check for all would be one for the nodes of all threads. */
            if (kind == Ranks::threads && way.name == "sisci_50_at_once")
                continue;
            for (const std::vector<int> &nodes : layout)
                for (const Form &each : form)
                    if (turn++ % turns == 0)
                        all.push_back({way, each, nodes, kind});
        }
    return all;
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

/* The node of rank 2 dies after 20 calls that were right (0).  The other one finds out, all its
 * ranks, again and again, and can end what it has; after so many `late` calls which may be right,
 * where not all ranks wait for the other node. */
inline void expect_dead_node_is_error(const Form &form, const std::function<int(Rank &)> &call,
                                      int late = 0)
{
    Folder folder;
    Environment environment({{"COLLX_SISCI_LIBRARY", COLLX_TEST_SISCI},
                             {"COLLX_TEST_SISCI_FOLDER", folder.path},
                             {"COLLX_SISCI_PATIENCE", "100ms"}});
    collx_args args = args_of(form, COLLX_OVER_SISCI);

    testing::internal::CaptureStderr();
    std::string wrong = run_team(form.algorithm, 4, Ranks::processes, true,
                                 [&](Rank &self) {
                                     for (int round = 0; round < 20; round++)
                                         if (call(self))
                                             return std::string("an early error");
                                     /* Also a rank that has its result may still be checking
                                      * that what it stored has arrived. */
                                     const std::vector<pid_t> process = self.meet();
                                     if (self.team.rank >= 2)
                                         raise(SIGKILL);
                                     self.abandoned = true;
                                     for (int rank : {2, 3})
                                         await_end_of(process[rank]);
                                     for (int round = 0; round < late; round++)
                                         if (int error = call(self); error && error != UNREACHABLE)
                                             return std::string("a late error");
                                     for (int round = 0; round < 3; round++)
                                         if (call(self) != UNREACHABLE)
                                             return std::string("a call with the dead");
                                     return std::string();
                                 },
                                 &args, nullptr, {0, 0, 1, 1});
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(wrong, "rank 2 died by signal 9 (Killed)\nrank 3 died by signal 9 (Killed)\n")
        << text;
    EXPECT_NE(text.find("rank 0 of a test cannot reach the memory of rank 2 by sisci any more"),
              std::string::npos)
        << text;
}

#endif
