#!/usr/bin/python3
"""usage: run_hwbarrier.py BUILD MPI LAUNCHER

Jobs whose barriers go through emulated boards of the hardware barrier, with nodes that
COLLX_NODE_SIZE makes of this one.  The program is tests/programs/nodes.c, and that of the conformance
tests."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from boards import running, world
from job import Mpi, Report, check, main

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
program = build / "tests" / "programs" / f"nodes-{mpi_name}"
conformance = build / "tests" / "conformance" / f"conformance-{mpi_name}"


def job(folder, board, node_size, arguments, env=None, before=""):
    """The command of a rank, and its environment.  `before` is shell that knows $node."""
    policy, script, memory = folder / "policy.yaml", folder / "by-rank", folder / "memory"
    policy.write_text("version: 1\nrules:\n"
                      "  - {match: {collective: barrier}, use: [hwbarrier, nx]}\n  - use: [shm]\n")
    memory.write_bytes(bytes(4096))
    script.write_text(f"""#!/bin/sh
node=$((${{PMIX_RANK:-$PMI_RANK}} / $COLLX_NODE_SIZE))
export COLLX_HWBARRIER={board.spec}
{before}
LD_PRELOAD={build}/libcollx.so exec "$@"
""")
    script.chmod(0o755)
    words = [str(memory) if word == "MEMORY" else word for word in arguments]
    return [script, *words], {"COLLX_POLICY": policy, "COLLX_NODE_SIZE": node_size, "COLLX_AT_ONCE": "on",
                              **(env or {})}


def barriers(kind, ranks, node_size, others):
    """Of MPI_COMM_WORLD all go this way; what is said of other communicators matches `others`.  And
    what a job has had can be had by one on other nodes."""

    def case(folder):
        nodes = -(-ranks // node_size)
        trace = folder / "trace"
        trace.mkdir()
        with running(build, kind, nodes, folder) as board:
            command, env = job(folder, board, node_size, [program, "MEMORY", 100],
                               {"COLLX_VERBOSE": 1})
            result = mpi.run(ranks, command, {**env, "COLLX_TRACE": trace}).expect()
            check("good" in result.out, result.out + result.err)
            check(world(result.err) == 0, result.err)
            for text in others:
                check(re.search(text, result.err), f"{text}\nis not in\n{result.err}")
            routes = {(row["route"], row["reason"]) for row in Report(build, trace).json["rows"]
                      if row["collective"] == "MPI_Barrier" and row["comm"] == "MPI_COMM_WORLD"}
            check(routes == {("hwbarrier", "policy")}, f"{routes}")
            if kind == "channels":
                command, env = job(folder, board, node_size, [program, "MEMORY", 20],
                                   {"COLLX_VERBOSE": 1})
                result = mpi.run(2 * node_size, command, env).expect()
                check(world(result.err) == 0, result.err)

    return case


def conforms(areas, ranks, node_size):
    def case(folder):
        with running(build, "channels", ranks // node_size, folder) as board:
            command, env = job(folder, board, node_size,
                               [conformance, "--library", "libcollx", *areas])
            result = mpi.run(ranks, command, env).expect().expect_quiet()
            for area in areas:
                check(re.search(rf"^area {area} cases [1-9]\d* failures 0 ", result.out, re.M),
                      result.out)

    return case


def one_cannot(folder):
    """Then nobody does; the next of the rule is taken, and why is said."""
    with running(build, "channels", 3, folder) as board:
        command, env = job(folder, board, 1, [program, "MEMORY", 20], {"COLLX_VERBOSE": 1},
                           before="[ $node = 2 ] && unset COLLX_HWBARRIER")
        result = mpi.run(3, command, env).expect()
    check("good" in result.out, result.out + result.err)
    check("not hwbarrier: the port on rank 2: COLLX_HWBARRIER does not say what wires there are"
          in result.err, result.err)
    check("nx of barrier on MPI_COMM_WORLD: " in result.err, result.err)


class Running:
    """A job that goes on until it is killed, and what it says meanwhile."""

    def __init__(self, ranks, command, env):
        self.process = subprocess.Popen([str(word) for word in mpi.command(ranks, command, env)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.guard = threading.Timer(60, self.kill)
        self.guard.start()
        self.killed = False
        self.err = ""

    def wait_for(self, text):
        while text not in self.err:
            line = self.process.stderr.readline()
            check(line, f"{text}\nis not in\n{self.err}")
            self.err += line

    def kill(self):
        self.killed = True
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def end(self):
        if not self.process.stderr.closed:
            self.err += self.process.communicate()[1]
        self.guard.cancel()
        return self.process.returncode


def two_jobs(kind, late, said, other):
    """A job whose first barrier is never over; another one on the same nodes; and, when the first
    was killed with all nodes but one arrived, a third, which nothing may release early."""

    def case(folder):
        with running(build, kind, 3, folder) as board:
            verbose = {"COLLX_VERBOSE": 1, "COLLX_STALL": "1s"}
            first = Running(3, *job(folder, board, 1, [program, "late", late, 60], verbose))
            try:
                first.wait_for(said)
                check(world(first.err) == 0, first.err)
                command, env = job(folder, board, 1, [program, "MEMORY", 50], {"COLLX_VERBOSE": 1})
                second = mpi.run(3, command, env).expect()
                check("good" in second.out, second.out + second.err)
                other(second.err)
            finally:
                first.kill()
                first.end()
            third = mpi.run(3, command, env).expect()
            check("good" in third.out and world(third.err) == 0, third.out + third.err)

    return case


# Whose ranks have other numbers in MPI_COMM_WORLD.
WHO = r"( \[ranks [0-9, ]+ of MPI_COMM_WORLD\])?"


def goes_another_way(err):
    check(world(err) is None and re.search(
        "not hwbarrier: the port on rank 0: channel 0 of this node is taken by another", err), err)
    check("nx of barrier on MPI_COMM_WORLD: " in err, err)


def has_another_channel(err):
    check(world(err) in (1, 2, 3), err)


def the_board_fails(folder):
    """The error handler, which is the usual one, ends the job."""
    with running(build, "single", 2, folder, ports=True) as board:
        run = Running(2, *job(folder, board, 1, [program, "late", 1, 50],
                              {"COLLX_STALL": "1s"}))
        try:
            run.wait_for("has waited")
            board.stop()
            run.wait_for("can no longer use the port to the hardware barrier")
            code = run.end()
            # MPI_ERR_OTHER ends it, without collx, too: MPICH 4.2's launcher returns 0 then, now and
            # then, and that of Open MPI 4.1 often loses the message on its way.
            fatal = code == 16 if mpi_name == "openmpi" else "Other MPI error" in run.err
            check(not run.killed and fatal, f"exit code {code}\n{run.err}")
        finally:
            run.kill()
            run.end()


main([
    ("one channel, a rank a node", barriers("single", 3, 1, [
        "not hwbarrier: every channel of the board is another communicator's",
        f"nx of barrier on a communicator of 3 ranks{WHO}: "])),
    ("one channel, nodes of two ranks", barriers("single", 5, 2, [
        "not hwbarrier: .* is (another communicator's|taken by another communicator or job)"])),
    ("four channels, a rank a node", barriers("channels", 4, 1, [
        f"hwbarrier of barrier on a communicator of 4 ranks{WHO}: leaders of 4 nodes meet at channel 1 of 4"])),
    ("four channels, nodes of two ranks", barriers("channels", 4, 2, [
        f"hwbarrier of barrier on a communicator of 4 ranks{WHO}: leaders of 2 nodes meet at channel 1 of 4"])),
    ("conformance, a rank a node", conforms(["barrier", "progress", "mixes", "errors"], 3, 1)),
    ("conformance, nodes of two ranks", conforms(["barrier", "progress", "intercomm"], 4, 2)),
    ("threads", conforms(["threads"], 2, 1)),
    ("one leader cannot", one_cannot),
    ("two jobs, one channel", two_jobs(
        "single", 1, "for some of ranks 1 2, or others that these wait for", goes_another_way)),
    ("two jobs, four channels", two_jobs(
        "channels", 2, "for rank 2, or others that these wait for", has_another_channel)),
    ("the board fails", the_board_fails),
])
