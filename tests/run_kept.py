#!/usr/bin/python3
"""usage: run_kept.py BUILD MPI LAUNCHER

Communicators that are freed leave what they had to the next ones of the same ranks, which have it
sooner; and where that cannot be, they have their own.  All results are right.  The programs are the
cases of tests/programs/kept.c."""

from job import Report, check, main
from weather import build, collx, good, in_front, mpi, mpi_name, spoke

program = build / "tests" / "programs" / f"kept-{mpi_name}"
TAKEN = "go the ways of one that has been freed"

ORDERED = "version: 1\nrules:\n  - order: rank\n    use: [{}]\n"

# As in the program; and after how many calls ranks ask each other, on communicators of which one may
# know more than another, and on all.
SET_UP_AFTER, MORE, ENOUGH = 4096, 44, 300
ASKED_AFTER, ALL_ASKED_AFTER = 16, 64


def kept(folder, case, env=None, ranks=2):
    trace = folder / f"trace-{len(list(folder.iterdir()))}"
    trace.mkdir()
    result = good(mpi.run(ranks, [program, case], {"LD_PRELOAD": collx, "COLLX_TRACE": trace,
                                                   **(env or {})}))
    return result, Report(build, trace)


def check_calls(report, name, *expected, ranks=2):
    """How many calls of each rank came before a setup, and how many after it."""
    calls = tuple(report.calls(comm=name, reason=reason) // ranks for reason in ("warm-up", "policy"))
    check(calls == expected, f"{name}: {calls}, not {expected}")


def again(folder):
    result, report = kept(folder, "again")
    result.expect_quiet()
    check_calls(report, "again", SET_UP_AFTER + 4 * ASKED_AFTER, MORE + 4 * (ENOUGH - ASKED_AFTER))
    check_calls(report, "brief", 15, 0)


def together(folder):
    """Four of 1000, and as many of the fifth as are asked about next, are enough."""
    _, report = kept(folder, "together")
    check_calls(report, "together", 4 * 1000 + 256 + ASKED_AFTER, 1000 - 256 + 1000 - ASKED_AFTER)


def barriers(folder):
    _, report = kept(folder, "barriers")
    check_calls(report, "barriers", SET_UP_AFTER + 3 * ALL_ASKED_AFTER,
                MORE + 3 * (ENOUGH - ALL_ASKED_AFTER))


def both(folder):
    _, report = kept(folder, "both")
    check_calls(report, "both", SET_UP_AFTER + ASKED_AFTER + 2 * ENOUGH, MORE + ENOUGH - ASKED_AFTER)


def turned_between(folder):
    _, report = kept(folder, "turned-between")
    check_calls(report, "between", SET_UP_AFTER + 5 * ASKED_AFTER, MORE + 5 * (ENOUGH - ASKED_AFTER))
    check_calls(report, "turned", SET_UP_AFTER + ASKED_AFTER, MORE + ENOUGH - ASKED_AFTER)


def other_name(folder):
    _, report = kept(folder, "other-name")
    check_calls(report, "one", SET_UP_AFTER, MORE)
    check_calls(report, "other", ENOUGH, 0)


def other_order(folder):
    _, report = kept(folder, "other-order")
    check_calls(report, "order", SET_UP_AFTER + ENOUGH, MORE)


def threads(folder):
    """What threads do before each other may be another way round the next time."""
    _, report = kept(folder, "again", {"THREADS": 1})
    check_calls(report, "again", SET_UP_AFTER + 4 * ENOUGH, MORE)


def at_once(case, taken, ranks=2, env=None, policy=None):
    """Set up before their first calls, so many of them by taking over what another one had."""
    def one(folder):
        if policy:
            (folder / "policy.yaml").write_text(policy)
            env["COLLX_POLICY"] = folder / "policy.yaml"
        result, report = kept(folder, case, {"COLLX_AT_ONCE": "on", "COLLX_VERBOSE": 1, **(env or {})},
                              ranks)
        lines = [line for line in spoke(result) if TAKEN in line]
        check(len(lines) in taken, f"{len(lines)} were taken over, not {taken}:\n{result.err}")
        calls = {reason: report.calls(reason=reason) for reason in ("policy", "warm-up")}
        check(calls["policy"] and not calls["warm-up"], f"not all are set up: {calls}")

    return one


main([
    ("communicators that come again", again),
    ("communicators that are long enough together", together),
    ("communicators of barriers alone", barriers),
    ("two of the same ranks at a time", both),
    ("others between, of another rank 0", turned_between),
    ("another name", other_name),
    ("another order of the ranks", other_order),
    ("several threads", threads),
    ("60 of them, at once", at_once("often", [59])),
    ("60 of them, of more ranks than CPUs", at_once("often", [59], 5)),
    ("another name on each rank, at once", at_once("names-differ", [0])),
    ("another name on each rank, made up by MPI, at once", at_once("made-up-names", [3])),
    # Rank 0's name decides for all.
    ("another name on each rank, which a policy names, at once", at_once(
        "names-differ", [0], 2, {}, "version: 1\nrules:\n  - match: { comm: a }\n    use: [shm]\n  - use: [pmpi]\n")),
    ("ranks that cannot keep as many as others", at_once("lost", [6], 3)),
    ("one that a rank has not freed yet", at_once("still-in-use", [0])),
    ("a rank has called one too many", at_once("one-too-many", [2])),
    ("two kinds by turns", at_once("by-turns", [18])),
    ("a rank is the last to have it again", at_once("last-to-come", [1], 3, {"LD_PRELOAD": in_front("late-to-return")})),
    ("calls that are compared", at_once("often", [0], env={"COLLX_CHECK": "on"})),
    ("several nodes", at_once("often", [0], 4, {"COLLX_NODE_SIZE": 2})),
    ("messages, for what a demanded order may take", at_once(
        "large-elements", [38], 3, {}, ORDERED.format("shm"))),
    ("messages, for what neither of two takes", at_once(
        "large-elements", [38], 3, {}, ORDERED.format("shm, nx"))),
])
