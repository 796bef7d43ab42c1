"""Starts MPI jobs for the tests, with or without collx, and reports in TAP.

Not a test itself: the run_*.py here use it."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

TIMEOUT = 60  # seconds that a job may take; on a busy machine the ordinary ones take one or two


class Failure(Exception):
    """A check that failed; its text is all there is to say."""


class Skip(Exception):
    """What cannot be tried here, and why."""


def check(good, message):
    if not good:
        raise Failure(message)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def expect(self, code=0):
        check(self.code == code, f"exit code {self.code}, not {code}\n{self.out}{self.err}")
        return self

    def expect_quiet(self):
        check("collx:" not in self.out + self.err, f"collx spoke:\n{self.out}{self.err}")
        return self


def start(command, env, cwd=None, **files):
    env = os.environ | {name: str(value) for name, value in (env or {}).items()}
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, text=True,
                            errors="replace", env=env, cwd=cwd, start_new_session=True, **files)


def stop(process):
    """Ends a command with all its children; what it has written meanwhile."""
    # A launcher that is asked nicely takes its ranks along.
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            return process.communicate(timeout=5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    return "", ""


def run(command, env=None, timeout=TIMEOUT, cwd=None):
    """Runs a command to its end, all its children with it."""
    process = start(command, env, cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        out, err = stop(process)
        raise Failure(f"not over after {timeout} s: {' '.join(map(str, command))}\n{out}{err}")
    return Result(process.returncode, out, err)


def run_until(said, more, command, log, env=None, timeout=TIMEOUT):
    """Runs a command that does not come to an end: until `said`(what it has written to the file
    `log`), and `more` seconds, for what should not follow.  Then it is stopped; the code is None."""
    with open(log, "a") as file:
        # The pipe is open as long as any of its children is there.
        process = start(command, env, stdout=subprocess.PIPE, stderr=file)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if said(log.read_text(errors="replace")):
            end = min(end, time.monotonic() + more)
        time.sleep(0.05)
    code = process.poll()
    out, _ = stop(process)
    return Result(code, out, log.read_text(errors="replace"))


class Mpi:
    """One MPI implementation: how its jobs are started."""

    def __init__(self, name, launcher):
        self.name, self.launcher = name, launcher

    def command(self, ranks, program, env=None):
        """env: for the ranks alone, not for the launcher."""
        env = {name: str(value) for name, value in (env or {}).items()}
        if self.name == "openmpi":
            given = [word for item in env.items() for word in ("-x", "=".join(item))]
            return [self.launcher, "--oversubscribe", "-n", ranks, *given, *program]
        given = [word for item in env.items() for word in ("-env", *item)]
        return [self.launcher, "-n", ranks, *given, *program]

    def run(self, ranks, program, env=None, launcher_env=None, timeout=TIMEOUT, cwd=None):
        return run(self.command(ranks, program, env), launcher_env, timeout, cwd)

    def mpirun(self, library, ranks, program, env=None, timeout=TIMEOUT, cwd=None):
        """As a user does it: LD_PRELOAD=libcollx.so mpirun …; the launcher is preloaded as well."""
        return run(self.command(ranks, program),
                   {name: str(value) for name, value in {"LD_PRELOAD": library, **(env or {})}.items()},
                   timeout, cwd)


class Report:
    """What collx-report says about a folder of traces."""

    def __init__(self, build, folder):
        result = run([Path(build) / "collx-report", "summary", folder, "--format", "json"])
        self.code, self.err = result.code, result.err
        check(result.code in (0, 2), f"collx-report: exit code {result.code}\n{result.err}")
        self.json = json.loads(result.out)

    def calls(self, **keys):
        """Calls of all ranks, of the rows that have these values: collective="MPI_Bcast" …"""
        return sum(row["calls"] for row in self.json["rows"]
                   if all(row[key] == value for key, value in keys.items()))

    def per_rank(self):
        return [rank["calls"] for rank in self.json["ranks"]]


def without_numbers(text):
    """With N for the numbers of processes, which nobody knows beforehand."""
    return re.sub(r"\(process \d+", "(process N", text)


def algorithms(build):
    """[(name, collective, names of its parameters)] of all that there are, also what somebody adds."""
    info = run([Path(build) / "collx", "info"]).expect().out
    found = []
    for line in info.partition("\nAlgorithms\n")[2].splitlines():
        if head := re.fullmatch(r"  (\S+) of (\S+)", line):
            found.append((head[1], head[2], []))
        elif param := re.match(r"      (\w+) = ", line):
            found[-1][2].append(param[1])
    return found


def main(cases):
    """Runs the cases, (name, function) each, and reports in TAP.  A case is given a folder of its
    own, which is removed afterwards."""
    # mpirun of Open MPI does not run for root unless it is told twice.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # Nor does it wait two seconds then for the ranks of a job that has failed to end by themselves.
    os.environ["OMPI_MCA_odls_base_sigkill_timeout"] = "0"
    # What a developer has set in his shell is not what is tested.
    for name in [name for name in os.environ if name.startswith("COLLX_")]:
        if not name.startswith("COLLX_TEST_"):
            del os.environ[name]
    wanted = os.environ.get("COLLX_TEST_ONLY", "")
    cases = [(name, case) for name, case in cases if wanted in name]
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, (name, case) in enumerate(cases, 1):
        try:
            with tempfile.TemporaryDirectory(prefix="collx-test-") as folder:
                case(Path(folder))
            print(f"ok {number} - {name}")
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
        except Exception as error:
            failed += 1
            text = str(error) if isinstance(error, Failure) else traceback.format_exc()
            print(f"not ok {number} - {name}")
            # Meson shows of a TAP test that failed what it wrote here, not its comments.
            print(f"{name}: {text}", file=sys.stderr, flush=True)
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
