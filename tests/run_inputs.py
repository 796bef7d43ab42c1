#!/usr/bin/python3
"""usage: run_inputs.py BUILD MPI LAUNCHER

What a user gives a job cannot be used, or is not the same on all ranks: policies, options, folders
for traces."""

import os
import re

from job import Report, check, main
from weather import (ALL_PMPI, RANKS, as_nobody_special, build, by_rank, good, job, mpi, mpi_name,
                     own_mounts, routes, said_once, spoke, weather)


def bad_policy(prepare, *, wrap=lambda: []):
    """A policy that cannot be used: said once, and the built-in one holds."""

    def case(folder):
        words = wrap()
        policy = prepare(folder)
        result, calls = routes(folder, {"COLLX_POLICY": policy}, wrap=words)
        good(result)
        said_once(result, "the built-in policy", str(policy))
        check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")

    return case


def missing_policy(folder):
    return folder / "not-there.yaml"


def unreadable_policy(folder):
    policy = folder / "secret.yaml"
    policy.write_text("version: 1\nrules:\n  - use: [pmpi]\n")
    policy.chmod(0)
    return policy


def huge_policy(folder):
    policy = folder / "huge.yaml"
    with policy.open("wb") as file:
        file.truncate(1 << 40)
    return policy


def folder_as_policy(folder):
    return folder


def pipe_as_policy(folder):
    pipe = folder / "pipe.yaml"
    os.mkfifo(pipe)
    return pipe


def wrong_policy(folder):
    policy = folder / "wrong.yaml"
    policy.write_text("version: 1\nrules:\n  - usee: [pmpi]\n")
    return policy


def where_it_is_wrong(folder):
    policy = wrong_policy(folder)
    result = good(job("plain", {"COLLX_POLICY": policy}))
    said_once(result, f"{policy}:3:5: ", "usee")


def policy_by_rank(folder, case, zero, others):
    script = by_rank(folder, "COLLX_POLICY", zero, others, f"{weather} {case}")
    trace = folder / "trace"
    trace.mkdir()
    good(mpi.run(RANKS, [script], {"COLLX_TRACE": trace})).expect_quiet()
    return Report(build, trace)


def policy_on_rank_0_alone(case):
    def run_case(folder):
        policy = folder / "policy.yaml"
        policy.write_text(ALL_PMPI)
        # Where the file is missing nothing may look for it, and where nothing names it all the same.
        for number, others in enumerate((folder / "not-on-this-node.yaml", "")):
            place = folder / str(number)
            place.mkdir()
            report = policy_by_rank(place, case, policy, others)
            check(not report.calls(route="shm"), "rank 0's policy does not hold")
            check(report.calls(route="pmpi", reason="policy"), "no call was decided by the policy")

    return run_case


def options_on_rank_0_alone(folder):
    """What rank 0's policy says of options holds for all, also where rank 0 is not."""
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\noptions: { memory: 0 }\nrules:\n  - use: [shm, pmpi]\n")
    script = by_rank(folder, "COLLX_POLICY", policy, "", f"{weather} apart")
    said_once(good(mpi.run(RANKS, [script])), "COLLX_MEMORY is used up",
              f"the ranks of a communicator of {RANKS - 1} ranks")


def ranges_of_bytes(folder):
    """The last size of a range is in it; what the next rule leaves to the MPI library gets there as
    the program said it, MPI_IN_PLACE included."""
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\nrules:\n  - match: { bytes: ..64 }\n    use: [shm]\n"
                      "  - use: [pmpi]\n")
    result, _ = routes(folder, {"COLLX_POLICY": policy, "COLLX_AT_ONCE": "on"}, "two-sizes")
    good(result).expect_quiet()
    report = Report(build, folder / "trace")
    for collective in ("MPI_Bcast", "MPI_Allreduce"):
        calls = [report.calls(collective=collective, route=route, reason="policy")
                 for route in ("shm", "pmpi")]
        check(calls == [10 * RANKS, 10 * RANKS], f"{collective}: {calls} calls by shm and pmpi")


def policy_elsewhere_alone(case):
    def run_case(folder):
        policy = folder / "policy.yaml"
        policy.write_text(ALL_PMPI)
        report = policy_by_rank(folder, case, "", policy)
        check(report.calls(route="shm"), "another policy than rank 0's holds")
        check(not report.calls(route="pmpi", reason="policy"), "another policy than rank 0's holds")

    return run_case


def each_copies_its_way(folder, variable):
    conformance = build / "tests" / "conformance" / f"conformance-{mpi_name}"
    script = by_rank(folder, variable, "on", "off",
                     f"{conformance} --library libcollx bcast allreduce")
    result = mpi.run(2, [script], {"COLLX_AT_ONCE": "on", "COLLX_RETURN": "on"}).expect()
    check(len(re.findall(r"^area \S+ cases \d+ failures 0 ", result.out, re.M)) == 2, result.out)


def returned_by_one_alone(folder):
    """Whether lines are returned is each rank's own business."""
    each_copies_its_way(folder, "COLLX_RETURN")


def whole_lines_of_one_alone(folder):
    """A debugger may show one rank another CPU than the others have."""
    each_copies_its_way(folder, "COLLX_WHOLE_LINES")


def missing_trace(folder):
    trace = folder / "deep" / "in" / "nowhere"
    result = good(job("plain", {"COLLX_TRACE": trace}))
    if trace.is_dir():
        check(Report(build, trace).calls(), "nothing was traced")
        result.expect_quiet()
    else:
        said_once(result, str(trace))


def unwritable_trace(folder):
    words = as_nobody_special()
    trace = folder / "trace"
    trace.mkdir()
    trace.chmod(0o500)
    said_once(good(job("plain", {"COLLX_TRACE": trace}, wrap=words)), str(trace))


def trace_of_rank_0_alone(folder):
    """The others find their names taken by what no file can replace, and one of them speaks."""
    trace = folder / "trace"
    for rank in range(1, RANKS):
        (trace / f"rank-{rank:06}.collx").mkdir(parents=True)
    result = good(job("plain", {"COLLX_TRACE": trace}))
    said_once(result, str(trace), "Is a directory")
    check(len(spoke(result)) == 1, result.err)
    check((trace / "rank-000000.collx").is_file(), "rank 0 has written nothing")
    check(not [file for file in trace.iterdir() if file.name.startswith(".")], "left behind")


def full_trace(folder):
    trace = folder / "trace"
    trace.mkdir()
    words = own_mounts(f"mount -t tmpfs -o size=256k tmpfs '{trace}'")
    result = good(job("many", {"COLLX_TRACE": trace}, wrap=words))
    check(any(str(trace) in line for line in spoke(result)), f"nothing was said\n{result.err}")
    check(len(spoke(result)) <= RANKS, f"said more than once\n{result.err}")


def limited_trace(folder):
    result, calls = routes(folder, {"COLLX_TRACE_LIMIT": "256KiB"}, case="many")
    good(result)
    check(any("limit" in line for line in spoke(result)), f"nothing was said\n{result.err}")
    check(len(spoke(result)) <= RANKS, f"said more than once\n{result.err}")
    for file in (folder / "trace").iterdir():
        check(file.stat().st_size <= 256 << 10, f"{file.name} has {file.stat().st_size} bytes")
    check(sum(calls.values()), "what was traced before is lost")


main([
    ("policy: missing", bad_policy(missing_policy)),
    ("policy: unreadable", bad_policy(unreadable_policy, wrap=as_nobody_special)),
    ("policy: huge", bad_policy(huge_policy)),
    ("policy: a folder", bad_policy(folder_as_policy)),
    ("policy: a pipe that nobody writes to", bad_policy(pipe_as_policy)),
    ("policy: a word that does not exist", bad_policy(wrong_policy)),
    ("policy: the message says where", where_it_is_wrong),
    ("policy: ranges of bytes", ranges_of_bytes),
    ("policy: only where rank 0 is", policy_on_rank_0_alone("plain")),
    ("policy: only where rank 0 is, which is in another communicator", policy_on_rank_0_alone("apart")),
    ("policy: only where rank 0 is, which has options", options_on_rank_0_alone),
    ("policy: only where rank 0 is not", policy_elsewhere_alone("plain")),
    ("policy: only where rank 0 is not, in another communicator", policy_elsewhere_alone("apart")),
    ("one rank returns lines, the other does not", returned_by_one_alone),
    ("one rank writes whole lines, the other does not", whole_lines_of_one_alone),
    ("trace: folder missing", missing_trace),
    ("trace: folder unwritable", unwritable_trace),
    ("trace: of rank 0 alone", trace_of_rank_0_alone),
    ("trace: disk full", full_trace),
    ("trace: limit reached", limited_trace),
])
