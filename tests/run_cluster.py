#!/usr/bin/python3
"""usage: run_cluster.py BUILD MPI LAUNCHER

Jobs over several nodes, each with its own network, host name, processes and /dev/shm: what
tests/vcluster makes of this machine.  The programs are cluster.c, nodes.c and rma.c."""

import functools
import re
import sys
from pathlib import Path

from boards import running, world
from job import Report, Result, Skip, check, main, run

build, mpi_name = Path(sys.argv[1]), sys.argv[2]
vcluster = Path(__file__).resolve().parent / "vcluster"
programs = build / "tests" / "programs"
cluster = programs / f"cluster-{mpi_name}"
rma = programs / f"rma-{mpi_name}"
collx = build / "libcollx.so"

# MPICH's waiting ranks do not give way: with more ranks than cores a message takes milliseconds.
ROUNDS = 20 if mpi_name == "openmpi" else 5


# Only then does Open MPI 4 make windows over TCP.  Later ones and MPICH do so by themselves.
demands = mpi_name == "openmpi" and " 4." in run(["mpirun.openmpi", "--version"]).out.split("\n")[0]
windowed = ["--mca", "osc", "pt2pt"] if demands else []


@functools.cache
def why_not():
    """Why there are no virtual nodes here, or ""."""
    result = run([vcluster, "-n", 2, "-p", 1, "-m", "none", "true"])
    return result.out + result.err if result.code else ""


def words_for(env):
    for name, value in env.items():
        yield from ["-x", f"{name}={value}"] if mpi_name == "openmpi" else ["-genv", name, str(value)]


def job(nodes, ranks, program, env=None, words=(), options=(), limit=40):
    """So many ranks on each of so many nodes.  The launcher is the one that vcluster finds."""
    if why_not():
        raise Skip("no virtual nodes: " + " ".join(why_not().split()))
    more = [word for given in (*words_for(env or {}), *words) for word in ("-a", given)]
    return run([vcluster, "-n", nodes, "-p", ranks, "-m", mpi_name, "-t", limit, *options, *more,
                "--", *program], timeout=limit + 10)


def good(result):
    """What MPICH's launcher says of the end is of no use: see tests/end_well.h."""
    check(result.code == 0 or (result.code != 124 and mpi_name == "mpich"),
          f"exit code {result.code}\n{result.out}{result.err}")
    check("good\n" in result.out, f"the program did not reach its end\n{result.out}{result.err}")
    return result


class Routes:
    """How the routed calls of a job on each communicator went."""

    def __init__(self, folder, nodes, ranks, policy=None):
        trace = folder / "trace"
        trace.mkdir()
        env = {"LD_PRELOAD": collx, "COLLX_TRACE": trace}
        if policy:
            env["COLLX_POLICY"] = folder / "policy.yaml"
            env["COLLX_POLICY"].write_text(policy)
        self.result = good(job(nodes, ranks, [cluster, "both", ROUNDS], env)).expect_quiet()
        self.report = Report(build, trace)
        seen = sorted(re.findall(r"^node (\S+) ranks (\d+)$", self.result.out, re.M))
        check(seen == [(f"n{i}", str(ranks)) for i in range(nodes)], f"the nodes are {seen}")

    def all(self):
        return "\n".join(f"{row['comm']}: {row['collective']} {row['route']} ({row['reason']})"
                         for row in self.report.json["rows"])

    def of(self, comm, collective):
        return {row["route"] for row in self.report.json["rows"]
                if row["comm"].startswith(comm) and row["collective"] == f"MPI_{collective}"
                and row["reason"] != "warm-up"}


def both(nodes, ranks):
    """Shared memory within the nodes; between them the MPI library, or what a policy demands."""

    def case(folder):
        routes = Routes(folder, nodes, ranks)
        for collective in ("Barrier", "Bcast", "Allreduce"):
            check(routes.of("nodal", collective) == {"shm"}, routes.all())
            check(routes.of("everywhere", collective) == {"pmpi"}, routes.all())
        # No node has so many ranks, which all know without asking each other, after the first call.
        warm = routes.report.calls(comm="everywhere", reason="warm-up")
        check(warm == nodes * ranks, f"{warm} calls before that\n{routes.all()}")
        text = run([build / "collx-report", folder / "trace"]).out
        check(f"{nodes * ranks} ranks on {nodes} nodes (n0, …)" in text, text[:500])

    return case


def in_rank_order(folder):
    routes = Routes(folder, 3, 2, "version: 1\nrules:\n  - order: rank\n    use: [shm, pmpi]\n")
    check(routes.of("nodal", "Allreduce") == {"shm"}, routes.all())
    check(routes.of("everywhere", "Allreduce") == {"ordered"}, routes.all())


def untraced_node(folder):
    """Where a node cannot write its traces it says so, once, and the others write theirs."""
    trace = folder / "trace"
    trace.mkdir()
    result = good(job(3, 2, [cluster, "both", ROUNDS], {"LD_PRELOAD": collx, "COLLX_TRACE": trace},
                      options=["-b", f"test $(hostname) != n1 || mount -t tmpfs -o ro none {trace}"]))
    said = [line for line in result.err.splitlines() if "collx:" in line]
    check(len(said) == 1 and "on n1 traces" in said[0] and "Read-only" in said[0], result.err)
    report = Report(build, trace)
    check(len(report.json["ranks"]) == 4, f"{report.json['ranks']}")
    check(any("ranks 2–3: " in problem for problem in report.json["problems"]),
          f"{report.json['problems']}")


def killed(folder):
    """A node dies: the job ends, and nothing of ours stays where others live on."""
    # What is killed takes a moment to end, and stays as a zombie where its parent has ended, too.
    look = (f"for i in $(seq 50); do pgrep -x -r D,R,S,T {cluster.name} >/dev/null || break; sleep 0.1; done; "
            "ls -a /dev/shm | sed 's/^/left: /'; ps -eo args | sed 's/^/runs: /'")

    def endless(env):
        begun = folder / "begun"
        begun.unlink(missing_ok=True)
        return job(3, 2, [cluster, "endless", begun], env, limit=20,
                   options=["-k", f"{begun}:n1", "-e", look])

    result = endless({"LD_PRELOAD": collx})
    # That of Open MPI 5 goes first, and says that all was well.
    if not result.code and not endless({}).code:
        raise Skip("this MPI library's launcher does not end the job, without collx either")
    # Now and then Open MPI's mpirun crashes meanwhile, and does not end by itself.
    check(result.code, f"exit code {result.code}\n{result.out}{result.err}")
    check("node n2 ranks 2" in result.out and "node n1 goes down" in result.err,
          f"it ended before\n{result.out}{result.err}")
    check("left: " in result.out, f"nobody is left to look\n{result.out}{result.err}")
    left = [line for line in result.out.splitlines()
            if (line.startswith("left: ") and "collx" in line)
            or (line.startswith("runs: ") and str(cluster) in line)]
    check(not left, "\n".join(left))
    Result(0, "", result.err).expect_quiet()


def windows(folder):
    """Segments in windows of MPI, between nodes."""
    good(job(2, 1, [rma, "rules"], words=windowed))
    good(job(3, 2, [rma, "rules", 2 * ROUNDS if mpi_name == "openmpi" else 2], words=windowed))


def no_windows(folder):
    if not demands:
        raise Skip("this MPI library makes windows over TCP")
    good(job(2, 2, [rma, "refused"]))


def meet(folder, use, nodes, ranks, words=(), rounds=ROUNDS, env=None, options=()):
    """Barriers by `use`; the program is that of run_nodes.py."""
    policy, memory = folder / "policy.yaml", folder / "memory"
    policy.write_text("version: 1\nrules:\n  - {match: {collective: barrier}, use: "
                      f"[{use}, pmpi]}}\n  - use: [shm, pmpi]\n")
    memory.write_bytes(bytes(4096))
    env = {"LD_PRELOAD": collx, "COLLX_POLICY": policy, "COLLX_VERBOSE": 1, **(env or {})}
    return good(job(nodes, ranks, [programs / f"nodes-{mpi_name}", memory, rounds], env, words, options))


def barriers(use, says, *how):
    """Barriers between nodes, and why they cannot be had."""

    def case(folder):
        result = meet(folder, use, *how)
        said = [line for line in result.err.splitlines() if says in line]
        check(said, f"nobody said: {says}\n{result.err}")

    return case


def by_ports(folder):
    """Each node has a parallel port of its own to the emulated board, by the same name on all of them."""
    port, trace = "/dev/shm/parport0", folder / "trace"
    trace.mkdir()
    with running(build, "channels", 3, folder, ports=True) as board:
        plug = f"node=$(hostname | tr -d n) && : >{port} && mount --bind {board.place}/parport$node {port}"
        result = meet(folder, "hwbarrier", 3, 2, options=["-b", plug],
                      env={"COLLX_HWBARRIER": f"ppdev:{port},channels=4", "COLLX_AT_ONCE": "on",
                           "COLLX_TRACE": trace})
    check(world(result.err) == 0, result.err)
    check("MPI_COMM_WORLD: leaders of 3 nodes" in result.err, result.err)
    rows = [row for row in Report(build, trace).json["rows"]
            if row["collective"] == "MPI_Barrier" and row["comm"] == "MPI_COMM_WORLD"]
    check({(row["route"], row["reason"]) for row in rows} == {("hwbarrier", "policy")}, f"{rows}")
    check(sum(row["calls"] for row in rows) >= 6 * ROUNDS, f"{rows}")


main([
    (f"{mpi_name}: 3 nodes with 2 ranks", both(3, 2)),
    (f"{mpi_name}: 2 nodes with 3 ranks", both(2, 3)),
    (f"{mpi_name}: in rank order", in_rank_order),
    (f"{mpi_name}: one node writes no traces", untraced_node),
    (f"{mpi_name}: a node is killed", killed),
    (f"{mpi_name}: windows", windows),
    (f"{mpi_name}: no windows", no_windows),
    (f"{mpi_name}: nx by messages",
     barriers("nx(over=p2p)", "flags of 3 nodes cross by p2p", 3, 2)),
    (f"{mpi_name}: nx by what is best",
     barriers("nx", "flags of 2 nodes cross by p2p, not by sisci", 2, 2)),
    (f"{mpi_name}: nx by windows",
     barriers("nx(over=rma)", "flags of 3 nodes cross by rma", 3, 1, windowed)),
    (f"{mpi_name}: hsb by windows",
     barriers('"hsb(over=rma, f_in=2)"', "flags of 2 nodes cross by rma", 2, 3, windowed, 3)),
    *([(f"{mpi_name}: nx without windows",
        barriers("nx(over=rma)", "over TCP it needs mpirun --mca osc pt2pt", 2, 1))]
      if demands else []),
    (f"{mpi_name}: hwbarrier by ports", by_ports),
])
