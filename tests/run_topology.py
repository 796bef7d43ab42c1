#!/usr/bin/python3
"""usage: run_topology.py BUILD MPI LAUNCHER

Ranks that pretend to be on machines with several packages: collectives among them take the shape of
that machine, and are right.  The program is the conformance test of them."""

import re
import sys
from pathlib import Path

from job import Mpi, check, main

RANKS = 9
build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
program = build / "tests" / "conformance" / f"conformance-{mpi_name}"


def calls(area, env, ranks=RANKS):
    """What is said about this collective, and everything else that collx said but its tables."""
    result = mpi.run(ranks, [program, "--library", "libcollx", area],
                     {"LD_PRELOAD": build / "libcollx.so", "COLLX_VERBOSE": 1, **env}).expect()
    check(re.search(rf"^area {area} cases \d+ failures 0 ", result.out, re.M), result.out + result.err)
    said = re.findall(r"^collx: (.*)$", result.err, re.M)
    how = [line.partition(": ")[2] for line in said if line.startswith(f"shm of {area} on ")]
    return how, said


def barriers(env, ranks=RANKS):
    return calls("barrier", env, ranks)


def with_policy(area, folder, use, env, ranks=RANKS):
    policy = folder / "policy.yaml"
    policy.write_text(f"version: 1\nrules:\n  - use: [{use}, pmpi]\n")
    return calls(area, {"COLLX_POLICY": policy, **env}, ranks)


def bcasts(*rest):
    return with_policy("bcast", *rest)


def two_packages(folder):
    how, said = barriers({"COLLX_TOPOLOGY": "package:2 l3:1 core:8 pu:1"})
    check(how == ["a tree of 2 groups by shared caches and packages; 2 lines "
                  "cross between packages, not 16; some 490 ns a call, not 740"], said)


def four_packages_with_memory(folder):
    """Placing flags on NUMA nodes that are not there is no harm."""
    how, said = barriers({"COLLX_TOPOLOGY": "package:4 [numa] l3:1 core:4 pu:1"}, ranks=16)
    check(len(how) == 1 and "a tree of 4 groups by shared caches and packages; 12 lines" in how[0], said)


def one_cache(folder):
    how, said = barriers({"COLLX_TOPOLOGY": "package:1 l3:1 core:16 pu:1"})
    check(len(how) == 1 and "dissemination" in how[0], said)


def this_machine(folder):
    how, said = barriers({})
    check(len(how) == 1, said)


def few_ranks_do_not_look(folder):
    how, said = barriers({"COLLX_TOPOLOGY": "nonsense"}, ranks=3)
    check(how == ["everybody waits for everybody"], said)
    check(not any("nonsense" in line for line in said), said)


def nonsense(folder):
    how, said = barriers({"COLLX_TOPOLOGY": "nonsense"})
    check(len(how) == 1 and "dissemination" in how[0], said)
    check(sum("'nonsense' is no machine" in line for line in said) == 1, said)


def bcast_groups(folder):
    """As many groups as packages, one of them of one rank alone."""
    env = {"COLLX_TOPOLOGY": "package:2 [numa] l3:1 core:8 pu:1"}
    how, said = bcasts(folder, "shm(groups=always)", env)
    check(how == ["2 groups, by last cache; crossings of each line between packages: 1, not 1; "
                  "some 530 ns for 512 bytes, not 530"], said)
    env = {"COLLX_TOPOLOGY": "package:3 [numa] l3:1 core:3 pu:1"}
    how, said = bcasts(folder, '"shm(single_copy=never, groups=always)"', env)
    check(len(how) == 1 and how[0].startswith("3 groups, by last cache; crossings of each "
                                              "line between packages: 2, not 6;"), said)


def bcast_flat(folder):
    """For so few ranks groups are worth nothing."""
    env = {"COLLX_TOPOLOGY": "package:3 [numa] l3:1 core:3 pu:1"}
    how, said = bcasts(folder, "shm", env)
    check(how == ["everybody reads from the root"], said)


def allreduce_groups(folder):
    env = {"COLLX_TOPOLOGY": "package:2 [numa] l3:1 core:8 pu:1"}
    how, said = with_policy("allreduce", folder, "shm(groups=always)", env, 16)
    check(how == ["small vectors: 2 groups, by last cache; 16 lines cross between packages, not 128; "
                  "some 440 ns, not 600"], said)
    env = {"COLLX_TOPOLOGY": "package:3 [numa] l3:1 core:3 pu:1"}
    how, said = with_policy("allreduce", folder, "shm(groups=always)", env)
    check(len(how) == 1 and "3 groups, by last cache; 18 lines cross between packages, not 54;" in how[0], said)


def allreduce_flat(folder):
    env = {"COLLX_TOPOLOGY": "package:1 l3:1 core:16 pu:1"}
    how, said = with_policy("allreduce", folder, "shm", env)
    check(how == ["small vectors: everybody reads everybody's"], said)


main([
    (f"{mpi_name}: two packages", two_packages),
    (f"{mpi_name}: four packages with memory of their own", four_packages_with_memory),
    (f"{mpi_name}: one cache", one_cache),
    (f"{mpi_name}: this machine", this_machine),
    (f"{mpi_name}: few ranks do not look", few_ranks_do_not_look),
    (f"{mpi_name}: nonsense", nonsense),
    (f"{mpi_name}: bcast in groups", bcast_groups),
    (f"{mpi_name}: bcast to few ranks", bcast_flat),
    (f"{mpi_name}: allreduce in groups", allreduce_groups),
    (f"{mpi_name}: allreduce at one cache", allreduce_flat),
])
