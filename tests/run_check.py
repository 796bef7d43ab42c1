#!/usr/bin/python3
"""usage: run_check.py BUILD MPI LAUNCHER

COLLX_CHECK: ranks that call different things are told of, and the MPI library is left to make of it
what it does; and where they do not differ, nothing is."""

import re

from job import Report, check, main
from weather import RANKS, build, by_rank, collx, good, job, mpi, mpi_name, said_once, spoke

program = build / "tests" / "programs" / f"differ-{mpi_name}"
conformance = build / "tests" / "conformance" / f"conformance-{mpi_name}"

# What rank 0 calls, and what the others do.
DIFFERENT = {
    "lengths": ("MPI_Bcast of 100 bytes from rank 0", "MPI_Bcast of 20000 bytes from rank 0"),
    "kinds": ("MPI_Barrier", "MPI_Bcast of 0 bytes from rank 0"),
    "operations": ("MPI_Allreduce (sum) of 4 bytes, int32",
                   "MPI_Allreduce (max) of 4 bytes, int32"),
    "elements": ("MPI_Allreduce (sum) of 4 bytes, int32",
                 "MPI_Allreduce (sum) of 4 bytes, float32"),
    "roots": ("MPI_Bcast of 0 bytes from rank 0", "MPI_Bcast of 0 bytes from rank 1"),
}


def differ(case, **env):
    """Runs a case, with what it is compared by."""
    return good(mpi.run(RANKS, [program, case], {"LD_PRELOAD": collx, "COLLX_CHECK": "on",
                                                 "COLLX_AT_ONCE": "on", **env}))


def told(result, name):
    zero, others = DIFFERENT[name]
    said_once(result, "the ranks of differing differ", f"{zero} on rank 0;",
              f"{others} on ranks 1, 2.", "go to the MPI library")
    check(len(spoke(result)) == 1, result.err)


def different(name):
    def case(folder):
        trace = folder / "trace"
        trace.mkdir()
        told(differ(name, COLLX_TRACE=trace), name)
        # Before it collx has carried out what all had called, and after it still does elsewhere.
        report = Report(build, trace)
        barriers = report.calls(collective="MPI_Barrier", route="shm")
        check(barriers == 10 * RANKS, f"{barriers} barriers by shm")
        check(report.calls(collective="MPI_Allreduce", route="shm") == RANKS, "not routed elsewhere")

    return case


def one_rank_asks(folder):
    script = by_rank(folder, "COLLX_CHECK", "off", "on", f"{program} lengths")
    told(good(mpi.run(RANKS, [script], {"COLLX_AT_ONCE": "on"})), "lengths")


def policy_asks(folder):
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\noptions: { check: on, at_once: on }\nrules:\n  - use: [shm]\n")
    told(good(mpi.run(RANKS, [program, "kinds"], {"LD_PRELOAD": collx, "COLLX_POLICY": policy})),
         "kinds")


def refused(folder):
    """What MPI refuses of one rank it does not carry out: there is nothing to compare."""
    for case in "lonely-error", "lonely-error-told":
        good(job(case, {"COLLX_CHECK": "on", "COLLX_AT_ONCE": "on"})).expect_quiet()


def late(folder):
    """It is said of whom nothing has been heard; where that is who compares, one rank speaks."""
    result = differ("late", COLLX_STALL="300ms")
    said_once(result, "rank 0 of differing has waited", "in MPI_Barrier", "what rank 1 (process N) calls")
    check(len(spoke(result)) == 1, result.err)
    result = differ("zero-late", COLLX_STALL="300ms")
    said_once(result, "of differing has waited", "in MPI_Barrier", "what rank 0 (process N) calls", "which compares")
    check(len(spoke(result)) == 1, result.err)


def two_late(folder):
    result = good(mpi.run(4, [program, "two-late"], {"LD_PRELOAD": collx, "COLLX_CHECK": "on",
                                                     "COLLX_AT_ONCE": "on", "COLLX_STALL": "300ms"}))
    said_once(result, "rank 0 of first has waited", "what rank 1 (process N) calls")
    said_once(result, "rank 0 of second [ranks 2, 3 of MPI_COMM_WORLD] has waited", "what rank 1 (process N) calls")
    check(len(spoke(result)) == 2, result.err)


def no_memory(folder):
    """One rank has none to compare with: nobody does, and the job goes on."""
    library = build / "tests" / "programs" / "no_memory.so"
    result = differ("no-memory", LD_PRELOAD=f"{library} {collx}")
    said_once(result, "cannot compare what they call", "no memory left")


def equivalent(folder):
    differ("equivalent").expect_quiet()


def nothing_differs(folder):
    """All datatypes, operations, roots, and elements that root and leaves cut differently."""
    result = mpi.run(RANKS, [conformance, "--library", "libcollx", "barrier", "bcast", "allreduce"],
                     {"LD_PRELOAD": collx, "COLLX_CHECK": "on", "COLLX_AT_ONCE": "on"}).expect()
    areas = re.findall(r"^area \S+ cases (\d+) failures 0 ", result.out, re.M)
    check(len(areas) == 3 and all(int(cases) for cases in areas), result.out)
    check(not spoke(result), result.err)


main([*((name, different(name)) for name in DIFFERENT),
      ("one rank alone asks for it", one_rank_asks),
      ("a policy asks for it", policy_asks),
      ("one rank's call is refused", refused),
      ("a rank is late", late),
      ("ranks of two communicators are late, again and again", two_late),
      ("one rank has no memory for it", no_memory),
      ("types that are the same to MPI", equivalent),
      ("nothing differs", nothing_differs)])
