#!/usr/bin/python3
"""usage: run_memory.py BUILD MPI LAUNCHER

The memory that ranks share has bounds, for a node and for a communicator: who finds none left stays
with the MPI library, all results are right, and what is freed can be used again.  The programs are
the cases of tests/programs/memory.c."""

import os
import re
import sys
from pathlib import Path

from cgroup import cgroup
from job import Mpi, Report, Skip, check, main, run

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
collx = build / "libcollx.so"
program = build / "tests" / "programs" / f"memory-{mpi_name}"
RANKS = 2

# One algorithm: it has memory, or it has not.
ALLREDUCE = "version: 1\nrules:\n  - { match: { collective: allreduce }, use: [shm] }\n"


class Job:
    """A case, run with a trace."""

    def __init__(self, folder, case, number, env=None, policy=None, ranks=RANKS, command=None,
                 wrap=()):
        trace = folder / f"trace-{len(list(folder.iterdir()))}"
        trace.mkdir()
        env = {"LD_PRELOAD": collx, "COLLX_TRACE": trace, **(env or {})}
        if policy:
            env["COLLX_POLICY"] = folder / "policy.yaml"
            env["COLLX_POLICY"].write_text(policy)
        command = mpi.command(ranks, [*(command or [program]), case, number], env)
        self.result = run([*wrap, *command], timeout=120).expect()
        if "skip\n" in self.result.out:
            raise Skip("this MPI library cannot do it")
        check("good" in self.result.out, f"not at its end\n{self.result.out}{self.result.err}")
        self.report = Report(build, trace)

    def routed(self, name, collective="MPI_Allreduce"):
        """Whether the calls on a communicator went through shared memory: all or none do."""
        calls = {route: self.report.calls(collective=collective, comm=name, route=route,
                                          reason="policy") for route in ("shm", "pmpi")}
        check((calls["shm"] > 0) != (calls["pmpi"] > 0), f"{collective} on {name}: {calls}")
        return calls["shm"] > 0

    def shared(self, name):
        sizes = {row["comm_shared_bytes"] for row in self.report.json["rows"]
                 if row["comm"] == name}
        check(len(sizes) == 1, f"{name} is not one communicator: {sizes}")
        return sizes.pop()

    def said(self, *words):
        return [line for line in self.result.err.splitlines()
                if line.startswith("collx: ") and all(word in line for word in words)]


def each(size, ranks=RANKS, page=4096):
    """What each rank is charged for a segment."""
    return (-(-size // page) * page + ranks - 1) // ranks


SIZES = {}


def size_of(folder, policy, ranks=RANKS):
    if (policy, ranks) not in SIZES:
        SIZES[policy, ranks] = measured_size(folder, policy, ranks)
    return SIZES[policy, ranks]


def measured_size(folder, policy, ranks):
    size = Job(folder, "cycle", 1, policy=policy, ranks=ranks).shared("cycle0")
    check(size > 0, "no memory was shared")
    return size


def check_calls(job, name, shared, expected, ranks=RANKS):
    """How many calls of each rank came before the setup, and how many after it."""
    calls = [job.report.calls(comm=name, reason=reason) // ranks
             for reason in ("warm-up", "policy")]
    check(calls == expected, f"{name}: {calls}")
    check((job.shared(name) > 0) == shared, f"memory of {name}: {job.shared(name)}")


def short_lived(folder):
    job = Job(folder, "brief", 20)
    check_calls(job, "brief0", False, [20 * 15, 0])
    check_calls(job, "often0", True, [4096, 100])
    check_calls(job, "long0", True, [16, 100])
    check_calls(job, "later0", True, [64, 100])
    # However long it takes: the order of combination must not change with the time.
    check_calls(job, "slow0", False, [116, 0])


def asks(folder):
    """After 16, 64 and 256 calls; after 64 in any case."""
    library = build / "tests" / "programs" / f"libmpi.so.asked-{mpi_name}"
    job = Job(folder, "asks", 3, {"LD_PRELOAD": f"{collx} {library}"})
    for what in range(4):
        check_calls(job, f"asks{what}", False, [300 - 1, 0])


def crowd(folder):
    """The more ranks, the fewer calls are worth a setup; MPICH's take long there."""
    ranks = os.sysconf("SC_NPROCESSORS_ONLN") + 1
    job = Job(folder, "brief", 1, ranks=ranks)
    early = mpi_name == "mpich"
    due = 2 if early else max(16, 4096 // ((ranks + 1) // 2))
    check_calls(job, "slow0", early, [2, 114] if early else [116, 0], ranks=ranks)
    check_calls(job, "often0", True, [due, 4196 - due], ranks=ranks)


def used_up(folder):
    size = size_of(folder, ALLREDUCE)
    # Enough for three, and not for four.
    job = Job(folder, "fill", 6, {"COLLX_MEMORY": RANKS * (4 * each(size) - 1)}, ALLREDUCE)
    for turn in ("first", "second"):
        routed = [job.routed(f"{turn}-{i}") for i in range(6)]
        check(routed == 3 * [True] + 3 * [False], f"{turn}: {routed}")
        check([job.shared(f"{turn}-{i}") for i in range(6)] == 3 * [size] + 3 * [0],
              "other memory than what is routed")
    check(job.routed("refill-0") and not job.routed("refill-1"), "what was freed is not used again")
    check(len(job.said("COLLX_MEMORY is used up")) == 1, job.result.err)


def none_at_all(folder):
    job = Job(folder, "fill", 3, {"COLLX_MEMORY": 0})
    for collective in ("MPI_Barrier", "MPI_Bcast", "MPI_Allreduce"):
        check(not job.routed("first-1", collective), f"{collective} is routed")
    check(len(job.said()) == 1, job.result.err)


def no_block(folder):
    """A rank on which not even the smallest thing can be remembered counts like the others."""
    library = build / "tests" / "programs" / "no_memory.so"
    for rank in range(2):
        # More in all than there are spare ones for, but not at a time.
        job = Job(folder, "fill", 10,
                  {"LD_PRELOAD": f"{library} {collx}", "COLLX_TEST_NO_BLOCK": rank})
        check(not job.report.calls(route="shm"), "set up without memory")
        check(len(job.said("no memory left")) == 1, job.result.err)


def none_for_mpi(folder):
    """A rank on which MPI cannot remember what collx has for a communicator counts like the others."""
    library = build / "tests" / "programs" / f"libmpi.so.out-of-memory-{mpi_name}"
    for rank in range(RANKS):
        job = Job(folder, "mpi-lacks", rank, {"LD_PRELOAD": f"{collx} {library}"})
        for what in range(8):
            check(job.routed(f"lacks{what}") and job.routed(f"after{what}"), "not set up")
            # A Bcast of 1 MiB, and what else makes 16 calls; then they go to algorithms.
            check_calls(job, f"after{what}", True, [16, 41 - 16])


def untold(folder):
    """Where MPI fails while ranks tell each other of a segment, they stay with it and keep no file."""
    library = build / "tests" / "programs" / f"libmpi.so.out-of-memory-{mpi_name}"
    job = Job(folder, "untold", 4, {"LD_PRELOAD": f"{collx} {library}", "COLLX_AT_ONCE": "on"})
    check(job.routed("told0", "MPI_Barrier"), "not set up")
    calls = job.report.calls(collective="MPI_Barrier", comm="untold0", reason="setup failed")
    check(calls == RANKS * 4 * 4, f"{calls} of its calls went to MPI")
    check(job.said("could not agree on their routes"), job.result.err)


def cycles(folder):
    """With room for one alone, each of many finds it: none that came before keeps any."""
    size = size_of(folder, None)
    job = Job(folder, "cycle", 1000, {"COLLX_MEMORY": RANKS * each(size)})
    check(job.routed("cycle0"), "memory got lost")
    check(not job.said(), job.result.err)


def again(folder):
    """Twice as fast as having the kernel make another one; and cleared, or results would be wrong."""
    job = Job(folder, "again", 20)
    check(job.routed("again0"), "nothing is routed")
    if (build / "libcollx-topology.so").exists():
        job = Job(folder, "again-on-nodes", 6, {"COLLX_TOPOLOGY": "package:2 [numa] l3:1 core:5 pu:1"}, ranks=10)
        check(job.routed("again0"), "nothing is routed on several NUMA nodes")


def by_turns(folder):
    """What is kept for communicators of one kind makes way for one of another kind."""
    policy = "version: 1\nrules:\n" + "".join(
        f"  - {{ match: {{ comm: {name}, collective: {word} }}, use: [shm] }}\n"
        for name, word in (("cycle0", "bcast"), ("turn0", "bcast"), ("turn1", "allreduce")))
    large, small = size_of(folder, ALLREDUCE), size_of(folder, policy)
    check(small < large, f"{small} and {large} bytes")
    job = Job(folder, "by-turns", 20, {"COLLX_MEMORY": RANKS * each(large)}, policy)
    check(job.routed("turn0", "MPI_Bcast") and job.routed("turn1"), "memory got lost")
    check(not job.said(), job.result.err)


def other_groups(folder):
    ranks = 4
    small, large = size_of(folder, ALLREDUCE, 2), size_of(folder, ALLREDUCE, ranks)
    job = Job(folder, "groups", 50,
              {"COLLX_MEMORY": ranks * (each(small, 2) + each(large, ranks))}, ALLREDUCE, ranks)
    check(job.routed("group") and job.routed("all0"), "memory got lost")


def fewer(folder):
    """What some ranks keep and others do not is no more than all of them may have."""
    ranks, count = 4, 4
    most = max(each(size_of(folder, ALLREDUCE, n), n) for n in range(2, ranks + 1))
    # MPI_COMM_WORLD may have been set up as well.
    job = Job(folder, "fewer", count, {"COLLX_MEMORY": ranks * (count + 1) * most}, ALLREDUCE, ranks)
    check(job.routed("fewer"), "memory got lost")


def let_go(folder):
    """A segment that one rank has told of and has not any more is not missed."""
    library = build / "tests" / "programs" / f"libmpi.so.meanwhile-{mpi_name}"
    size = size_of(folder, "version: 1\n")
    # Room for the five of them alone: what is kept with its routes is taken only where that is short.
    job = Job(folder, "let-go", 4, {"LD_PRELOAD": f"{collx} {library}", "COLLX_AT_ONCE": "on",
                                    "COLLX_MEMORY": RANKS * 5 * each(size)})
    check(job.routed("next0") and job.shared("next0") == size, "memory got lost")
    check(not job.said(), job.result.err)


def threads(folder):
    size = size_of(folder, ALLREDUCE)
    job = Job(folder, "threads", 30, {"COLLX_MEMORY": RANKS * 2 * each(size)}, ALLREDUCE)
    # However the threads came to it, afterwards there is room for two again.
    for name in "first-0", "first-1", "second-0", "second-1":
        check(job.routed(name), f"memory got lost: {name} has none")
    check(job.report.calls(comm="thread0", route="shm"), "no thread found memory")


def one_rank_has_less(folder):
    """Its environment is its own: all go the same way all the same."""
    for poor in range(RANKS):
        for variable in "COLLX_MEMORY", "COLLX_MEMORY_COMM":
            script = folder / "by-rank"
            script.write_text(f"""#!/bin/sh
[ ${{PMIX_RANK:-$PMI_RANK}} = {poor} ] && export {variable}=10KiB
exec {program} "$@"
""")
            script.chmod(0o755)
            job = Job(folder, "fill", 3, command=[script])
            routed = [job.routed(f"first-{i}", "MPI_Allreduce") for i in range(3)]
            check(not any(routed), f"rank {poor}, {variable}: {routed}")
            check(len(job.said(variable)) == 1, job.result.err)
            # What one rank has mapped before it heard of the other is not there any more.
            job = Job(folder, "fill", 1, policy=ALLREDUCE, command=[script])
            check(job.shared("first-0") == 0, f"rank {poor}, {variable}: {job.shared('first-0')} bytes")


def to_the_byte(folder):
    """What a communicator may have is enough for what needs all of it."""
    size = size_of(folder, ALLREDUCE)
    for less in 0, 1:
        job = Job(folder, "fill", 1, {"COLLX_MEMORY_COMM": size - less}, ALLREDUCE)
        check(job.routed("first-0") == (not less), f"{size} bytes, {less} less of COLLX_MEMORY_COMM")


def used_twice(folder):
    """What several rules name alike is one."""
    policy = "version: 1\nrules:\n" + "".join(
        f"  - {{ match: {{ collective: allreduce, bytes: {sizes} }}, use: [shm] }}\n" for sizes in ("..8", "9..64", "65.."))
    job = Job(folder, "cycle", 1, policy=policy)
    check(job.shared("cycle0") == size_of(folder, ALLREDUCE), f"{job.shared('cycle0')} bytes")


def used_otherwise(folder):
    """What they name with other parameters is not."""
    policy = "version: 1\nrules:\n" + "".join(
        f"  - {{ match: {{ collective: allreduce, bytes: {sizes} }}, use: ['nx(n={n})'] }}\n"
        for sizes, n in (("..64", 2), ("65..", 3)))
    job = Job(folder, "cycle", 1, policy=policy)
    routed = [job.report.calls(collective="MPI_Allreduce", comm="cycle0", reason="policy", route=route)
              for route in ("nx", "pmpi")]
    check(routed == [RANKS * 8, 0], f"nx and pmpi: {routed}")


def largest_first(folder):
    """Where not all fits, what needs most is left out, and the rest is not."""
    sizes = {}
    for word in "barrier", "bcast", "allreduce":
        sizes[word] = size_of(folder, "version: 1\nrules:\n"
                              f"  - {{ match: {{ collective: {word} }}, use: [shm] }}\n")
    largest = max(sizes, key=sizes.get)
    job = Job(folder, "fill", 2,
              {"COLLX_MEMORY_COMM": sum(sizes.values()) - sizes[largest], "COLLX_VERBOSE": 1})
    for word in sizes:
        routed = job.routed("first-0", f"MPI_{word.capitalize()}")
        check(routed == (word != largest), f"{word}: {routed} of {sizes}")
    check(len(job.said("COLLX_MEMORY_COMM")) == 1, job.result.err)
    check(job.said("memory of first-0: not enough for", f"of {largest}"), job.result.err)
    check(job.said("memory of first-0: its ranks share"), job.result.err)


def preferred_last(folder):
    """Calls are offered to the others for what the first one does not take: rather without those."""
    rule = "version: 1\nrules:\n  - match: {{ collective: allreduce }}\n    order: rank\n    use: [{}]\n"
    size = measured_size(folder, rule.format("shm"), RANKS)
    job = Job(folder, "cycle", 1, {"COLLX_MEMORY_COMM": size, "COLLX_VERBOSE": 1},
              rule.format("shm, nx, hsb"))
    check(job.routed("cycle0"), "not routed")
    check(job.shared("cycle0") == size, f"{job.shared('cycle0')} bytes are shared, not {size}")


def little_memory(folder):
    """The kernel kills whoever takes more than a cgroup has; what is not set does not come near."""
    with cgroup("memory", {"memory.limit_in_bytes": "200M"}, {"memory.max": "200M"}) as enter:
        job = Job(folder, "fill", 200, wrap=enter)
    check(job.routed("first-0"), "nothing is routed")
    check(not job.routed("first-199"), "there was memory for all")
    check(len(job.said("COLLX_MEMORY is used up")) == 1, job.result.err)


main([
    ("what is used little is not set up", short_lived),
    ("nobody is asked about what all know", asks),
    ("in a crowd it is sooner, where calls take long", crowd),
    ("used up, freed, used up again", used_up),
    ("none at all", none_at_all),
    ("not even a small block, on one rank", no_block),
    ("nothing left for MPI, on one rank", none_for_mpi),
    ("MPI fails where they tell each other of a segment", untold),
    ("1,000 communicators, one at a time", cycles),
    ("what a freed one had is used again", again),
    ("two kinds of communicators, one at a time", by_turns),
    ("communicators of other groups", other_groups),
    ("communicators of fewer and fewer ranks", fewer),
    ("what one rank has let go of meanwhile", let_go),
    ("threads set up communicators at the same time", threads),
    ("one rank has less than the others", one_rank_has_less),
    ("the limit of a communicator, to the byte", to_the_byte),
    ("what several rules name alike", used_twice),
    ("what they name with other parameters", used_otherwise),
    ("what needs most is left out first", largest_first),
    ("but what is asked first is left out last", preferred_last),
    ("a cgroup with little memory", little_memory),
])
