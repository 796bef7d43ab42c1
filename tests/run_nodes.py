#!/usr/bin/python3
"""usage: run_nodes.py BUILD MPI LAUNCHER

Collectives between nodes: every algorithm that has a parameter `over`, and nx and hsb in all their
forms, over all that flags can cross by, with nodes that COLLX_NODE_SIZE makes of this one.  Dolphin's
library is the one that stands in for it, tests/sisci.
The program is tests/programs/nodes.c; where MPI has to go on, it is that of the conformance tests."""

import re
import sys
from pathlib import Path

from job import Mpi, Report, algorithms, check, main, without_numbers

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
collx = build / "libcollx.so"
program = build / "tests" / "programs" / f"nodes-{mpi_name}"
conformance = build / "tests" / "conformance" / f"conformance-{mpi_name}"
standin = build / "tests" / "sisci" / "libsisci.so"


def settings(folder, use, node_size, env=None):
    policy = folder / "policy.yaml"
    policy.write_text(f'version: 1\nrules:\n  - {{match: {{collective: barrier}}, use: [{use}]}}\n'
                      "  - use: [shm]\n")
    return {"LD_PRELOAD": collx, "COLLX_POLICY": policy, "COLLX_NODE_SIZE": node_size,
            "COLLX_AT_ONCE": "on", **(env or {})}


def with_standin(folder, fail):
    """Files of the stand-in have to be gone when the job is."""
    place = folder / "sisci"
    place.mkdir()
    return {"COLLX_SISCI_LIBRARY": standin, "COLLX_TEST_SISCI_FOLDER": place,
            "COLLX_TEST_SISCI_FAIL": fail, "COLLX_TEST_SISCI_LATE": 30}


def barriers(use, ranks, node_size, says, fail=None, rounds=300):
    """The program comes to its end, all calls went this way, and this is what was said of it."""

    def case(folder):
        env = settings(folder, use, node_size, {"COLLX_VERBOSE": 1})
        if fail is not None:
            env |= with_standin(folder, fail)
        board, trace = folder / "board", folder / "trace"
        board.write_bytes(bytes(4096))
        trace.mkdir()
        result = mpi.run(ranks, [program, board, rounds], {**env, "COLLX_TRACE": trace}).expect()
        check("good" in result.out, result.out + result.err)
        name = re.match(r"\W*(\w+)", use)[1]
        said = re.findall(rf"^collx: {name} of barrier on [^:]*: (.*)$", result.err, re.M)
        check(said and all(re.search(says, line) for line in said), f"{says}\n{result.err}")
        routes = {(row["route"], row["reason"]) for row in Report(build, trace).json["rows"]
                  if row["collective"] == "MPI_Barrier"}
        check(routes == {(name, "policy")}, f"{routes}")
        check(not list((folder / "sisci").glob("*")), "files are left behind")

    return case


def conforms(use, ranks, node_size, areas, fail=None):
    """Bcast and Allreduce of all kinds; what the algorithm does not take `ordered` does."""

    def case(folder):
        env = settings(folder, use, node_size)
        env["COLLX_POLICY"].write_text(f"version: 1\nrules:\n  - use: [{use}, ordered]\n")
        if fail is not None:
            env |= with_standin(folder, fail)
        trace = folder / "trace"
        trace.mkdir()
        result = mpi.run(ranks, [conformance, "--library", "libcollx", "--in-part", *areas],
                         {**env, "COLLX_TRACE": trace}).expect().expect_quiet()
        good = re.findall(r"^area (\S+) cases [1-9]\d* failures 0 ", result.out, re.M)
        check(good == areas, result.out)
        name = re.match(r"\W*(\w+)", use)[1]
        routed = {row["collective"] for row in Report(build, trace).json["rows"]
                  if row["route"] == name}
        check(routed >= {"MPI_" + area.capitalize() for area in areas if "-" not in area},
              f"{routed}")
        check(not list((folder / "sisci").glob("*")), "files are left behind")

    return case


def keeps_mpi_going(use):
    def case(folder):
        result = mpi.run(4, [conformance, "--library", "libcollx", "progress"],
                         settings(folder, use, 2)).expect().expect_quiet()
        check(re.search(r"^area progress cases [1-9]\d* failures 0 ", result.out, re.M), result.out)

    return case


def one_leader_cannot(folder):
    """Then nobody does; the next of the rule is taken, and why is said."""
    env = settings(folder, "nx(over=sisci), nx(over=p2p)", 1, with_standin(folder, 0))
    board, script = folder / "board", folder / "by-rank"
    board.write_bytes(bytes(4096))
    script.write_text(f"""#!/bin/sh
[ ${{PMIX_RANK:-$PMI_RANK}} = 2 ] && export COLLX_SISCI_LIBRARY=/nonexistent/libsisci.so
LD_PRELOAD={collx} exec {program} {board} 20
""")
    script.chmod(0o755)
    del env["LD_PRELOAD"]
    result = mpi.run(3, [script], {**env, "COLLX_VERBOSE": 1}).expect()
    check("good" in result.out, result.out + result.err)
    check(re.search(r"not nx\(over=sisci\): sisci on rank 2: .*/nonexistent/libsisci.so", result.err),
          result.err)
    check("nx of barrier on MPI_COMM_WORLD: dissemination in groups of 3, in 1 round; flags of 3 "
          "nodes cross by p2p" in result.err, result.err)
    check(not list((folder / "sisci").glob("*")), "files are left behind")


def who_is_late(late, *said):
    """By flags in memory and by messages, over two nodes of two ranks."""

    def case(folder):
        for use, texts in zip(("nx(over=shm)", "nx(over=p2p)"), said):
            result = mpi.run(4, [program, "late", late, 1],
                             settings(folder, use, 2, {"COLLX_STALL": "200ms"})).expect()
            for text in texts:
                err = re.sub(r"waited [1-9]\d* m?s", "waited", without_numbers(result.err))
                check(text in err, f"{use}: {text}\nis not in\n{err}")

    return case


def each():
    """Every algorithm that crosses between nodes, also one that somebody adds."""
    areas = {"barrier": [], "bcast": ["bcast"], "allreduce": ["allreduce", "allreduce-user"]}
    crossing = {}
    for name, collective, params in algorithms(build):
        if "over" in params:
            crossing.setdefault(name, []).append(collective)
    check(crossing, "no algorithm has a parameter `over`")
    for name, collectives in crossing.items():
        data = [area for collective in collectives for area in areas[collective]]
        for over in ("shm", "p2p"):
            use = f"{name}(over={over})"
            if "barrier" in collectives:
                yield f"{name} by {over}", barriers(use, 4, 2, f"2 nodes cross by {over}$", rounds=100)
                yield f"MPI goes on in {name} by {over}", keeps_mpi_going(use)
            if data:
                yield f"Bcast and Allreduce: {name} by {over}", conforms(use, 5, 2, data)


MEMBER_IS_LATE = ("rank 0 of MPI_COMM_WORLD has waited in MPI_Barrier for rank 1 (process N). Have they stopped, or "
                  "are they in another call (COLLX_CHECK=on compares what ranks call)?")


main([
    *each(),
    ("nx on one node", barriers("nx", 3, 0, "^the ranks check in with rank 0")),
    ("hsb of one rank", barriers("hsb", 1, 0, "^the ranks check in with rank 0")),
    ("nx by what is best: shared memory", barriers(
        "nx", 5, 2, "^leaders of nodes do dissemination in groups of 3, in 1 round; flags of 3 nodes "
        "cross by shm$")),
    ("nx by what is best: Dolphin's", barriers(
        "nx", 4, 1, "^dissemination in groups of 4, in 1 round; flags of 4 nodes cross by sisci$",
        fail=10)),
    ("nx by messages, a rank a node", barriers(
        '"nx(over=p2p, mode=exchange, n=2)"', 5, 1, "exchange in groups of 2, in 4 rounds; flags of "
        "5 nodes cross by p2p", rounds=100)),
    ("nx by messages, uneven nodes", barriers("nx(over=p2p)", 7, 3, "3 nodes cross by p2p",
                                              rounds=100)),
    ("hsb by Dolphin's, half of all checks fail", barriers(
        '"hsb(over=sisci, f_in=2, f_out=3)"', 6, 2, "3 nodes cross by sisci", fail=50)),
    ("hsb by shared memory, a rank a node", barriers(
        '"hsb(over=shm, f_in=2, f_out=2)"', 9, 1, "9 nodes cross by shm", rounds=100)),
    ("nx by windows", barriers("nx(over=rma)", 5, 2, "3 nodes cross by rma", rounds=30)),
    ("hsb by windows, a rank a node", barriers(
        '"hsb(over=rma, f_in=2)"', 4, 1, "4 nodes cross by rma", rounds=30)),
    ("Bcast and Allreduce: nx by messages", conforms(
        '"nx(over=p2p, n=2)"', 3, 1, ["bcast", "allreduce-user"])),
    ("Bcast and Allreduce: hsb by Dolphin's", conforms(
        '"hsb(over=sisci, f_in=2, f_out=2)"', 4, 1, ["bcast", "allreduce-user"], fail=10)),
    ("Bcast: nx by windows", conforms("nx(over=rma)", 2, 1, ["bcast"])),
    ("one leader cannot", one_leader_cannot),
    ("a leader is late", who_is_late(
        2, ["rank 3 of MPI_COMM_WORLD has waited in MPI_Barrier for rank 2 (process N). Have they",
            "rank 0 of MPI_COMM_WORLD has waited in MPI_Barrier for rank 2, or others that"],
        ["rank 3 of MPI_COMM_WORLD has waited in MPI_Barrier for rank 2 (process N). Have they",
         "rank 0 of MPI_COMM_WORLD has waited in a collective for a message from rank 2. "])),
    ("a member is late", who_is_late(
        1, [MEMBER_IS_LATE], [MEMBER_IS_LATE])),
])
