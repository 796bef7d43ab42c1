#!/usr/bin/python3
"""usage: run_once.py BUILD MPI LAUNCHER LANGUAGE

Each call is seen exactly once, by collx and by a profiler in front of it or behind it, whichever
language it was made from and however collx came into the program: {preload, relink} x {no tool, a
PMPI tool before, a PMPI tool after}.

LANGUAGE is c, mpif.h, mpi, mpi_f08 or python.  The programs are BUILD/tests/programs/once-…, all of
which make the same calls."""

import os
import sys
from pathlib import Path

from job import Mpi, Report, Skip, check, main, run

RANKS = 3
# What a program calls; those with large counts only where the language and the MPI have them.
CALLS = {"MPI_Barrier": 11, "MPI_Bcast": 13, "MPI_Allreduce": 17, "MPI_Gather": 5,
         "MPI_Alltoall": 3, "MPI_Ibcast": 2}
LARGE = {"MPI_Bcast": 7, "MPI_Allreduce": 6}

build, mpi_name, launcher, language = sys.argv[1:5]
build = Path(build)
mpi = Mpi(mpi_name, launcher)
programs = build / "tests" / "programs"
collx = build / "libcollx.so"
tool = programs / f"libpmpi_tool-{mpi_name}.so"


def has_large():
    """Whether the program calls the twins for large counts, where its MPI has them."""
    if language == "c":
        return b"MPI_Bcast_c" in (programs / f"once-c-{mpi_name}-plain").read_bytes()
    return (mpi_name, language) == ("mpich", "mpi_f08")


def seen_by_tool():
    """What a tool written in C sees, which depends on how the MPI library's bindings are made."""
    seen = {"barrier": CALLS["MPI_Barrier"], "bcast": CALLS["MPI_Bcast"],
            "allreduce": CALLS["MPI_Allreduce"], "bcast_c": 0, "allreduce_c": 0}
    if has_large():
        seen.update(bcast_c=LARGE["MPI_Bcast"], allreduce_c=LARGE["MPI_Allreduce"])
    if language in ("mpif.h", "mpi", "mpi_f08") and mpi_name == "openmpi":
        # Its Fortran bindings call PMPI_X.
        seen = dict.fromkeys(seen, 0)
    elif language == "mpi_f08" and mpi_name == "mpich":
        # Its mpi_f08 calls MPI_X for what has a buffer, which goes through a wrapper in C, and
        # PMPI_X for the rest.
        seen["barrier"] = 0
    return seen


def check_tool(folder):
    counts = []
    for file in folder.iterdir():
        lines = (line.split() for line in file.read_text().splitlines())
        counts.append({name: int(count) for name, count in lines})
    if language == "python":
        # mpi4py calls the twins for large counts where there are any, whatever the count.
        for count in counts:
            for name in ("bcast", "allreduce"):
                count[name] += count[f"{name}_c"]
                count[f"{name}_c"] = 0
    check(counts == RANKS * [seen_by_tool()],
          f"the tool saw {counts}\non each of {RANKS} ranks it should be {seen_by_tool()}")


def check_trace(folder):
    report = Report(build, folder)
    check(report.code == 0, report.err)
    want = dict(CALLS)
    if has_large():
        for name, count in LARGE.items():
            want[name] += count
    for name, count in want.items():
        calls = report.calls(collective=name)
        check(calls == RANKS * count, f"{name}: {calls} traced, not {RANKS} x {count}")
    check(report.per_rank() == RANKS * [sum(want.values())], f"calls by rank {report.per_rank()}")
    for name in ("MPI_Barrier", "MPI_Bcast", "MPI_Allreduce"):
        check(report.calls(collective=name, route="shm"), f"{name} never took the route shm")


def cell(link, order, command):
    """One cell of the table; `command` finds the program that is built for it, or skips."""

    def case(folder):
        words = command()
        traces, tools = folder / "traces", folder / "tools"
        traces.mkdir()
        tools.mkdir()
        # Set up before the first call: the programs make few.
        policy = folder / "policy.yaml"
        policy.write_text("version: 1\nrules:\n  - { order: rank, use: [shm] }\n")
        env = {"COLLX_TRACE": traces, "COLLX_TEST_TOOL": tools, "COLLX_POLICY": policy}
        if link == "relink":
            result = mpi.run(RANKS, words, env)
        elif order == "no tool":
            # As the README says it, which preloads the launcher, too.
            result = mpi.mpirun(collx, RANKS, words, env)
        else:
            both = f"{tool} {collx}" if order == "tool before" else f"{collx} {tool}"
            result = mpi.run(RANKS, words, {**env, "LD_PRELOAD": both})
        result.expect().expect_quiet()
        check_trace(traces)
        if order != "no tool":
            check_tool(tools)

    return case


def python_program(module):
    if module == "mpi4py":
        test = run(["/usr/bin/python3", "-c", "import mpi4py; print(mpi4py.get_config())"])
        if test.code:
            raise Skip("no mpi4py for /usr/bin/python3; python3-mpi4py has it")
    elif not Path(module).exists():
        raise Skip("pympi was not built: there are no headers of python; python3-dev has them")
    return ["/usr/bin/python3", source / "once.py", module]


def program(link):
    """The command, for one way of linking: plain, collx, tool-collx or collx-tool."""
    if language == "python":
        return python_program(programs / f"pympi-{mpi_name}-{link}.so")
    path = programs / f"once-{language}-{mpi_name}-{link}"
    if not path.exists():
        raise Skip(f"not built: no compiler for {language} of {mpi_name}")
    return [path]


source = Path(__file__).resolve().parent / "programs"
linked = {"no tool": "collx", "tool before": "tool-collx", "tool after": "collx-tool"}
cases = []
for order in linked:
    cases.append((f"preload, {order}", cell("preload", order, lambda: program("plain"))))
for order, link in linked.items():
    cases.append((f"relink, {order}", cell("relink", order, lambda link=link: program(link))))
# Debian's mpi4py is built for its default MPI, Open MPI; one that somebody has built for MPICH is
# tried too, if this says where it is.
mpi4py_of_mpich = os.environ.get("COLLX_TEST_MPI4PY_MPICH")
if language == "python" and (mpi_name == "openmpi" or mpi4py_of_mpich):
    if mpi_name == "mpich":
        os.environ["PYTHONPATH"] = mpi4py_of_mpich
    for order in linked:
        cases.append((f"mpi4py, preload, {order}",
                      cell("preload", order, lambda: python_program("mpi4py"))))
main(cases)
