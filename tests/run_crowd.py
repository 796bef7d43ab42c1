#!/usr/bin/python3
"""usage: run_crowd.py BUILD MPI LAUNCHER

More ranks than CPUs, or than CPU time: the job has to end, which it does not, or in many minutes,
if a waiting rank keeps the CPU, sleeps through what it waits for, or forgets the MPI library.  The
program is tests/programs/crowd.c."""

import os
import re
import sys
from pathlib import Path

from cgroup import cgroup
from job import Mpi, Skip, check, main, run

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
program = build / "tests" / "programs" / f"crowd-{mpi_name}"
cpus = sorted(os.sched_getaffinity(0))
# The sender of a large message has to take part in all of it, not only the receiver.
os.environ.update(OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_smsc="^cma,xpmem,knem")
# Open MPI 4 and 5 would else bind ranks to other CPUs than taskset gives them.
os.environ.update(OMPI_MCA_hwloc_base_binding_policy="none",
                  PRTE_MCA_hwloc_default_binding_policy="none")


def job(ranks, reason, how="at once", wrap=(), env=None, comm="MPI_COMM_WORLD",
        program=program):
    """Runs the program, which has to give `reason` for the way in which it waits."""
    command = mpi.command(ranks, [program], {"LD_PRELOAD": build / "libcollx.so",
                                             "COLLX_VERBOSE": 2, **(env or {})})
    result = run([*wrap, *command]).expect()
    check("good" in result.out, f"the program did not reach its end\n{result.out}{result.err}")
    said = [line for line in result.err.splitlines() if f"waiting on {comm}: " in line]
    check(len(said) == 1, f"{len(said)} lines say how {comm} waits\n{result.err}")
    # Below a MiB other ways than through the segment are not even tried in a crowd.
    check(not re.search(r" of \d+ KiB and more", result.err), result.err)
    check(reason in said[0] and said[0].endswith(f": who waits yields {how}"), said[0])


def on_cpus(count, ranks, how="at once", env=None):
    def case(_):
        if len(cpus) < count:
            raise Skip(f"there are not {count} CPUs here")
        job(ranks, f"{ranks} ranks on {count} CPU", how,
            ["taskset", "-c", ",".join(map(str, cpus[:count]))], env)

    return case


def spinning(count, ranks):
    """What the user asks for holds, and the job ends all the same."""
    return on_cpus(count, ranks, "after 100 polls", {"COLLX_SPIN": 100})


def half_a_cpu(_):
    with cgroup("cpu", {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": 50000},
                {"cpu.max": "50000 100000"}) as enter:
        job(2, ", and a cgroup gives 2 of them the time of 0.5", wrap=enter)


def short_for_job(folder):
    """Two ranks have a CPU each, but one more of the job lives on the same time."""
    if len(cpus) < 2:
        raise Skip("there are not 2 CPUs here")
    # Not bound to one each they would be many ranks on few CPUs, whatever the time.
    bound = folder / "bound"
    bound.write_text(f"""#!/bin/sh
case ${{PMIX_RANK:-$PMI_RANK}} in
0) cpu={cpus[0]} ;;
*) cpu={cpus[1]} ;;
esac
exec taskset -c $cpu {program} pairs
""")
    bound.chmod(0o755)
    with cgroup("cpu", {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": 250000},
                {"cpu.max": "250000 100000"}) as enter:
        job(3, "2 ranks on 2 CPUs, with others beside them", wrap=enter, program=bound,
            comm="a communicator of 2 ranks [ranks 0, 2 of MPI_COMM_WORLD]")


main([
    ("twice as many ranks as CPUs", on_cpus(2, 4, "at once to ranks on its CPU")),
    ("four times as many ranks as CPUs", on_cpus(2, 8, "at once to ranks on its CPU")),
    ("still more", on_cpus(2, 9)),
    ("eight ranks on one CPU", on_cpus(1, 8)),
    ("ranks that spin all the same", spinning(1, 2)),
    ("and two for each CPU", spinning(2, 4)),
    ("a quota of half a CPU", half_a_cpu),
    ("a quota that is too small for the job, though not for some of its ranks", short_for_job),
])
