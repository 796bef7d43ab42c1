// Which job a trace is said to be of.
#include "tests/trace_session.h"

#include <csignal>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

namespace
{

// A program that no launcher starts, or the launcher of another MPI, is a job of its own: several
// at once do not take each other's names.
TEST(Trace, ProcessesThatAreAloneAreJobsOfTheirOwn)
{
    TraceFolder folder;
    collx_trace_setup setup = trace_setup(folder, 0, 1);
    setup.job = 0;
    int begun[2];
    char byte;
    ASSERT_EQ(pipe(begun), 0);
    pid_t first = fork();
    if (!first) {
        open_or_die(setup);
        close(begun[1]);
        pause();
    }
    close(begun[1]);
    EXPECT_EQ(read(begun[0], &byte, 1), 0); // until it has
    close(begun[0]);
    EXPECT_EQ(in_process([&] {
                  open_or_die(setup);
                  collx_recorder.close();
              }),
              0);
    kill(first, SIGKILL);
    waitpid(first, nullptr, 0);
    std::set<uint64_t> jobs;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
        jobs.insert(open_trace(entry.path())->header.job);
    EXPECT_EQ(jobs.size(), 2u);
    EXPECT_TRUE(std::filesystem::exists(folder.file(0)));
}

// Nor is one of theirs that of a later process with the same number.
TEST(Trace, RunsOfOneProcessNumberAreDifferentJobs)
{
    std::set<uint64_t> jobs;
    TraceFolder folder;
    ASSERT_EQ(in_process([&] {
                  collx_trace_setup setup = trace_setup(folder, 0, 1);
                  setup.job = 0;
                  for (setup.start_ns = 1; setup.start_ns <= 2; setup.start_ns++) {
                      open_or_die(setup);
                      collx_recorder.close();
                      jobs.insert(open_trace(folder.file(0))->header.job);
                  }
                  EXPECT_EQ(jobs.size(), 2u);
              }),
              0);
}

using Variables = std::vector<std::pair<const char *, const char *>>;

// The job number of a process that has these variables of launchers and no others.
uint64_t job_of(const Variables &variables, int size = 4)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  for (const char *name :
                       {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID",
                        "LSB_JOBID", "FLUX_JOB_ID", "PALS_APID", "I_MPI_HYDRA_UUID",
                        "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
                        "SLURM_STEP_TASKS_PER_NODE"})
                      unsetenv(name);
                  for (const auto &[name, value] : variables)
                      setenv(name, value, 1);
                  collx_trace_setup setup = trace_setup(folder, size ? 0 : -1, size);
                  setup.job = 0;
                  open_or_die(setup);
                  collx_recorder.close();
              }),
              0);
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
        return open_trace(entry.path())->header.job;
    return 0;
}

// Ranks that mpirun starts on its own node inherit what it was run in; the others do not.
TEST(Trace, WhatALauncherWasRunInMakesNoOtherJob)
{
    const Variables around[] = {
        {{"SLURM_JOB_ID", "7"}},   {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}},
        {{"PBS_JOBID", "7.head"}}, {{"LSB_JOBID", "7"}},
        {{"FLUX_JOB_ID", "f7"}},   {{"SLURM_JOB_ID", "7"}, {"PMI_JOBID", "7.0"}}};
    const uint64_t remote = job_of({{"PMIX_NAMESPACE", "3141140481"}});
    for (Variables all : around) {
        all.push_back({"PMIX_NAMESPACE", "3141140481"});
        EXPECT_EQ(job_of(all), remote) << all[0].first;
    }
    // From a shell that srun began.
    EXPECT_EQ(job_of({{"I_MPI_HYDRA_UUID", "9d260000"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}}),
              job_of({{"I_MPI_HYDRA_UUID", "9d260000"}}));
    EXPECT_EQ(job_of({{"PMI_JOBID", "7.1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}}),
              job_of({{"PMI_JOBID", "7.1"}}));
}

TEST(Trace, RunsOfALauncherAreDifferentJobs)
{
    const Variables runs[] = {{{"PMIX_NAMESPACE", "1"}, {"SLURM_JOB_ID", "7"}},
                              {{"PMIX_NAMESPACE", "2"}, {"SLURM_JOB_ID", "7"}},
                              {{"I_MPI_HYDRA_UUID", "9d260000"}, {"SLURM_JOB_ID", "7"}},
                              {{"I_MPI_HYDRA_UUID", "9d270000"}, {"SLURM_JOB_ID", "7"}},
                              {{"PMI_JOBID", "7.0"}},
                              {{"PMI_JOBID", "7.1"}},
                              {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}},
                              {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}},
                              {{"SLURM_JOB_ID", "71"}, {"SLURM_STEP_ID", ""}},
                              {{"PALS_APID", "a"}, {"PBS_JOBID", "7.head"}},
                              {{"PALS_APID", "b"}, {"PBS_JOBID", "7.head"}},
                              {{"FLUX_JOB_ID", "f7"}, {"SLURM_JOB_ID", "7"}},
                              {{"FLUX_JOB_ID", "f8"}, {"SLURM_JOB_ID", "7"}},
                              {{"PBS_JOBID", "7.head"}},
                              {{"LSB_JOBID", "7"}},
                              {}};
    std::set<uint64_t> jobs;
    for (const Variables &run : runs)
        jobs.insert(job_of(run));
    EXPECT_EQ(jobs.size(), std::size(runs));
}

// Sessions do not tell how many processes there are.
TEST(Trace, SessionsThatAreAloneAreJobsOfTheirOwn)
{
    EXPECT_NE(job_of({}, 0), job_of({}, 0));
    EXPECT_EQ(job_of({{"MPI_LOCALNRANKS", "2"}}, 0), job_of({{"MPI_LOCALNRANKS", "2"}}, 0));
    EXPECT_EQ(job_of({{"PMIX_NAMESPACE", "1"}}, 0), job_of({{"PMIX_NAMESPACE", "1"}}, 0));
}

// A session's calls open it before MPI_Init, where the ranks agree on a number.
TEST(Trace, IsOfTheJobThatTheRanksAgreeOn)
{
    TraceFolder folder;
    EXPECT_EQ(in_process([&] {
                  open_or_die(trace_setup(folder, 0, 2));
                  barrier_now(trace_comm(1, 0, 2, ""), 0);
                  collx_recorder.close();
                  collx_recorder.reopen();
                  collx_recorder.adopt(0xa9eed);
              }),
              0);
    Trace trace = open_trace(folder.file(0));
    EXPECT_EQ(trace->header.job, 0xa9eedu);
    EXPECT_EQ(trace->events, 1u);
}

} // namespace
