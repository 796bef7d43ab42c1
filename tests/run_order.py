#!/usr/bin/python3
"""usage: run_order.py BUILD MPI LAUNCHER

With `order: rank` in a policy, reductions combine rank 0, 1, 2, … from the left: the same bits on
one node and on several, through shared memory, without any, and as computed by one rank alone.  The
program is tests/programs/order.c."""

import re
import sys
from pathlib import Path

from job import Mpi, Report, Skip, algorithms, check, main, run

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
collx = build / "libcollx.so"
program = build / "tests" / "programs" / f"order-{mpi_name}"

DEMAND = "version: 1\nrules:\n  - order: rank\n    use: [{use}]\n"
TOGETHER = ["COLLX_OTHER_JOBS=on"]
ANY_ORDER = "version: 1\nrules:\n  - use: [{use}]\n"


class Job:
    def __init__(self, folder, ranks, words=(), env=None, use="shm, pmpi", traced=True,
                 rules=DEMAND):
        number = len(list(folder.iterdir()))
        policy = folder / f"policy-{number}.yaml"
        policy.write_text(rules.format(use=use))
        env = {"LD_PRELOAD": collx, "COLLX_POLICY": policy, **(env or {})}
        if traced:
            env["COLLX_TRACE"] = folder / f"trace-{number}"
            env["COLLX_TRACE"].mkdir()
        self.result = run(mpi.command(ranks, [program, *words], env), timeout=120).expect()
        found = re.search(r"^bits (\w+)\ngood$", self.result.out, re.M)
        check(found, f"not at its end\n{self.result.out}{self.result.err}")
        self.bits = found[1]
        if traced:
            self.routes = {}
            for row in Report(build, env["COLLX_TRACE"]).json["rows"]:
                if row["collective"] == "MPI_Allreduce":
                    key = row["route"], row["reason"]
                    self.routes[key] = self.routes.get(key, 0) + row["calls"]

    def went(self, *routes):
        check(set(self.routes) == {(route, "policy") for route in routes}, f"{self.routes}")
        return self


def same_bits(ranks):
    """Every placement of so many ranks, and every way that their calls can go."""

    def case(folder):
        job = Job(folder, ranks).went("shm")
        job.result.expect_quiet()
        bits = {"one node": job.bits}
        # `ordered` is told nothing of nodes: any will do, but not the same ones always.
        size = {1: 1, 2: 1, 3: 2, 4: 3}.get(ranks, 2)
        job = Job(folder, ranks, env={"COLLX_NODE_SIZE": size}).went(
            "shm" if ranks <= size else "ordered")
        job.result.expect_quiet()
        bits[f"nodes of {size}"] = job.bits
        if ranks in (1, 4):
            job = Job(folder, ranks, env={"COLLX_MEMORY": 0})
            job.went("ordered" if ranks > 1 else "shm")  # one rank alone needs none
            bits["no memory"] = job.bits
            bits["pmpi named alone"] = Job(folder, ranks, use="pmpi").went("ordered").bits
        # One that does not promise the order gives way to `ordered`.
        reduce = [name for name, collective, _ in algorithms(build) if collective == "allreduce"]
        for name in reduce if ranks == 6 else []:
            for size in (0, 2) if name != "ordered" else (0,):
                job = Job(folder, ranks, env={"COLLX_NODE_SIZE": size}, use=name)
                check({route for route, reason in job.routes if reason == "policy"} <= {name, "ordered"},
                      f"{name}: {job.routes}")
                bits[f"{name}, nodes of {size}"] = job.bits
        check(len(set(bits.values())) == 1, f"{bits}")

    return case


def last_one_takes_it(folder):
    """What is named, and can be set up, takes elements of up to 4 KiB."""
    for size in 0, 1:
        job = Job(folder, 2, ["large-element", 1280], {"COLLX_NODE_SIZE": size}, use="nx, hsb")
        job.went("ordered").result.expect_quiet()


def next_one_takes_it(folder):
    """Where no order is demanded, too."""
    for size in 0, 1:
        job = Job(folder, 2, ["large-element", 1280],
                  {"COLLX_NODE_SIZE": size, "COLLX_AT_ONCE": "on"}, use="nx, ordered, pmpi",
                  rules=ANY_ORDER)
        job.went("ordered").result.expect_quiet()


def nothing_takes_it(folder):
    job = Job(folder, 2, ["large-element", 50000])
    check(job.routes == {("pmpi", "not taken"): 2}, f"{job.routes}")
    lines = [line for line in job.result.err.splitlines() if "order: rank" in line]
    check(len(lines) == 1 and "200000 bytes" in lines[0], job.result.err)


def communicators_come_and_go(folder):
    """Each has a communicator of its own for messages: none is left behind, for MPICH has only 2048.
    """
    count = 2500 if mpi_name == "mpich" else 300
    job = Job(folder, 2, ["come-and-go", count], {"COLLX_NODE_SIZE": 1}, traced=False)
    job.result.expect_quiet()


def policy_elsewhere_alone(folder):
    """The policy of rank 0 holds for all from the first call on, whatever the others have."""
    policy = folder / "policy.yaml"
    policy.write_text(DEMAND.format(use="shm"))
    for there in (0, 1):
        script = folder / "by-rank"
        script.write_text(f"""#!/bin/sh
[ ${{PMIX_RANK:-$PMI_RANK}} = {there} ] && export COLLX_POLICY={policy}
LD_PRELOAD={collx} exec {program} come-and-go 10
""")
        script.chmod(0o755)
        trace = folder / f"trace-{there}"
        trace.mkdir()
        result = run(mpi.command(2, [script], {"COLLX_TRACE": trace})).expect().expect_quiet()
        check("good" in result.out, result.out + result.err)
        calls = Report(build, trace).calls(collective="MPI_Allreduce", route="shm")
        check(calls == (20 if there == 0 else 0), f"{calls} calls of 20 were routed")


# Jobs of Open MPI that others start do not know that there are more ranks than CPUs.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": 1}


def join(own, other, timeout, ranks=1):
    """Two jobs that become one communicator; what env has to set for each of them."""
    joined = build / "tests" / "programs" / f"joined-{mpi_name}"
    if run(mpi.command(1, [joined, joined, "COLLX_ENABLE=off"])).code:
        raise Skip("this MPI library cannot bring two jobs together here, without collx either")
    preload = f"LD_PRELOAD={collx}"
    result = run(mpi.command(ranks, ["env", preload, *own, joined, joined, preload, *other]), YIELD,
                 timeout=timeout).expect()
    if "skip\n" in result.out:
        raise Skip("this MPI library cannot start another job here")
    check("good" in result.out, result.out + result.err)
    return result


def jobs_that_join(folder):
    """One job's policy demands an order, which would be set up before the first call; the other one
    knows nothing of that."""
    policy = folder / "policy.yaml"
    policy.write_text(DEMAND.format(use="shm, pmpi"))
    for both in [], TOGETHER:
        demand, nothing = [*both, f"COLLX_POLICY={policy}"], [*both, "COLLX_POLICY="]
        said = join(demand, nothing, timeout=60).err
        check(("of several jobs" in said and "order: rank" in said) == (not both), f"{both}: {said}")
        join(nothing, demand, timeout=60)


def one_past_collx(folder):
    """What one process does not know of its own job does not make it take another for it."""
    for both in [], TOGETHER:
        join(["JOINED_PAST=1", *both], both, timeout=30)


def jobs_that_compare(folder):
    """What they call, by what does not get in the way of the program's nonblocking calls."""
    join(["COLLX_CHECK=on", *TOGETHER], TOGETHER, timeout=60, ranks=2)


def one_without(folder):
    """One of two jobs knows nothing of collx: the other one does not wait for it."""
    policy = folder / "policy.yaml"
    policy.write_text(ANY_ORDER.format(use="shm, nx, pmpi"))
    for env in [], ["COLLX_AT_ONCE=on"], ["JOINED_PAST=1"], [f"COLLX_POLICY={policy}"]:
        join(env, ["COLLX_ENABLE=off"], timeout=60)


def jobs_side_by_side(folder):
    """What they have in common stays with the MPI library, unless all are said to know of it."""
    policy = folder / "policy.yaml"
    policy.write_text(ANY_ORDER.format(use="shm, nx, pmpi"))
    for both, ways in ([], {("pmpi", "other jobs"), ("pmpi", "warm-up")}), \
                      (TOGETHER, {("shm", "policy"), ("pmpi", "warm-up")}):
        trace = folder / f"trace-{len(both)}"
        trace.mkdir()
        both = [*both, f"COLLX_POLICY={policy}"]
        join([f"COLLX_TRACE={trace}", *both], [*both, "COLLX_TRACE="], timeout=60)
        seen = {(row["route"], row["reason"]) for row in Report(build, trace).json["rows"]
                if row["collective"] == "MPI_Allreduce"}
        check(seen == ways, f"{seen}, not {ways}")


main([(f"the same bits from {ranks} rank{'s' if ranks > 1 else ''}", same_bits(ranks))
      for ranks in (1, 2, 3, 4, 6, 9)] + [
    ("an element that only what is not named takes", last_one_takes_it),
    ("an element that the next one takes, in any order", next_one_takes_it),
    ("an element that nothing takes", nothing_takes_it),
    ("communicators come and go", communicators_come_and_go),
    ("only rank 0 has the policy, or has none", policy_elsewhere_alone),
    ("jobs that join, and only one has the policy", jobs_that_join),
    ("jobs that join, and only one is under collx", one_without),
    ("jobs that join, and which way they go", jobs_side_by_side),
    ("jobs that join, and compare what they call", jobs_that_compare),
    ("jobs that join, and MPI_Init of one has gone past collx", one_past_collx),
])
