#!/usr/bin/python3
"""usage: run_large.py BUILD MPI LAUNCHER

A program that finds the functions for large counts in libcollx.so, whatever MPI library is there, and
calls them: they do what those with int counts do.  The program's cases are in tests/programs/large.c."""

from job import Report, Skip, check, main
from job import run as run_command
from weather import build, collx, good, in_front, mpi, mpi_name

RANKS = 4
programs = build / "tests" / "programs"
tool = programs / f"libpmpi_tool-{mpi_name}.so"
LACKS = "the library has no large counts"


def run(case, env=None, preload=collx, ranks=RANKS):
    return good(mpi.run(ranks, [programs / f"large-{mpi_name}", case], {"LD_PRELOAD": preload, **(env or {})}))


def called(result):
    """How often each rank has called what: half of that with large counts."""
    return {words[0]: int(words[1]) for words in map(str.split, result.out.splitlines())
            if words[0].startswith("MPI_")}


def same(**env):
    return lambda folder: run("same", env).expect_quiet()


def check_trace(folder, result):
    report = Report(build, folder)
    seen = {name: report.calls(collective=name) for name in called(result)}
    wanted = {name: RANKS * calls for name, calls in called(result).items()}
    check(seen == wanted, f"traced {seen}, not {wanted}")


def traced(folder):
    check_trace(folder, run("same", {"COLLX_TRACE": folder}).expect_quiet())
    sites = run_command([build / "collx-report", folder, "--by", "site", "--format", "csv"]).expect()
    strangers = [line for line in sites.out.splitlines()[1:] if "large_forms.h" not in line]
    check(not strangers, f"not from the program's lines: {strangers}")


def seen_by_tool(order):
    def case(folder):
        traces, tools = folder / "traces", folder / "tools"
        traces.mkdir()
        tools.mkdir()
        result = run("same", {"COLLX_TRACE": traces, "COLLX_TEST_TOOL": tools},
                     order.format(collx=collx, tool=tool)).expect_quiet()
        check_trace(traces, result)
        twins = 0 if LACKS in result.out else 1
        for file in tools.iterdir():
            seen = {name: int(count) for name, count in map(str.split, file.read_text().splitlines())}
            for name in ("bcast", "allreduce"):
                calls = called(result)[f"MPI_{name.capitalize()}"]
                wanted = (calls // (1 + twins), calls // 2 * twins)
                check((seen[name], seen[f"{name}_c"]) == wanted, f"{name}: the tool saw {seen}, not {wanted}")

    return case


def of_ours(result):
    """Only what stands for functions that the MPI library lacks is tried by these cases."""
    if LACKS not in result.out:
        raise Skip("this MPI library has functions for large counts")
    return result


def too_large(folder):
    result = of_ours(run("too-large"))
    check(result.out.count("refused") == 4, result.out)
    check(result.err.count("collx:") == 1 and "does not fit an int" in result.err, result.err)


def two(case, preload=collx):
    return lambda folder: of_ours(run(case, preload=preload, ranks=2)).expect_quiet()


main([
    ("all do what their twins do", same()),
    ("all do, where collx does nothing", same(COLLX_ENABLE="off")),
    ("traced once each, with the program's call sites", traced),
    ("a tool behind sees them", seen_by_tool("{collx} {tool}")),
    ("a tool in front sees them", seen_by_tool("{tool} {collx}")),
    ("counts and displacements that are too large", too_large),
    ("nothing is left of calls that are over", two("given-back")),
    ("many under way", two("under-way")),
    ("arrays stay until the call is over", two("under-way", in_front("reads-late"))),
    ("nothing is left of persistent requests, and arrays stay until they are freed",
     two("persistent", in_front("reads-late"))),
])
