"""What the tests of bad weather share: whatever goes wrong around collx, the job does what it would do
without it, and collx says once what happened.  The programs are the cases of
tests/programs/weather.c.

Not a test itself: run_weather.py uses it, and others that are given BUILD MPI LAUNCHER."""

import os
import shutil
import sys
from pathlib import Path

from job import Mpi, Report, Skip, check, run, without_numbers

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
collx = build / "libcollx.so"
weather = build / "tests" / "programs" / f"weather-{mpi_name}"

RANKS = 3
ALL_PMPI = "version: 1\nrules:\n  - use: [pmpi]\n"


def in_front(name):
    """To preload: collx, and a library of tests/programs that stands in front of the MPI library."""
    return f"{collx} {build / 'tests' / 'programs' / f'libmpi.so.{name}-{mpi_name}'}"


def job(case, env=None, ranks=RANKS, with_collx=True, wrap=(), **more):
    """Runs a case; `wrap` are words to put in front of the launcher."""
    env = dict(env or {})
    if with_collx:
        env["LD_PRELOAD"] = collx
    result = run([*wrap, *mpi.command(ranks, [weather, case], env)], **more)
    if "skip\n" in result.out:
        raise Skip("this MPI library cannot do it")
    return result


def good(result):
    result.expect()
    check("good" in result.out, f"the program did not reach its end\n{result.out}{result.err}")
    return result


def made_up_by_launcher(result):
    """MPICH's launcher takes the end of one rank for a crash now and then, kills those that are left or
    hangs them up by its own end, and exits with the number of that signal; or it takes a crash for an
    end, and exits with 0.  Both come without collx, too."""
    ended = {1: "Hangup", 9: "Killed"}.get(result.code)
    return mpi_name == "mpich" and (result.code == 0 or f"EXIT STRING: {ended} (signal {result.code})" in
                                    result.out + result.err)


def ends_alike(result, case):
    """The job's exit code is the one without collx."""
    plain = job(case, with_collx=False)
    check(result.code == plain.code, f"exit code {result.code}, without collx {plain.code}\n{result.err}")


def spoke(result):
    """What collx said, line by line, with N for the numbers of processes."""
    return [line for line in without_numbers(result.err).splitlines() if line.startswith("collx: ")]


def said_once(result, *words):
    """Exactly one message has all these words."""
    lines = [line for line in spoke(result) if all(word in line for word in words)]
    check(len(lines) == 1, f"{len(lines)} messages with {words}, not one:\n{result.err}")


def routes(folder, env=None, case="plain", **more):
    """Runs a case with a trace and tells the job's result, and calls of the routed three by
    (route, reason)."""
    trace = folder / "trace"
    trace.mkdir(exist_ok=True)
    result = job(case, {**(env or {}), "COLLX_TRACE": trace}, **more)
    check(any(trace.iterdir()), f"no traces; exit code {result.code}\n{result.out}{result.err}")
    report = Report(build, trace)
    damaged = [problem for problem in report.json["problems"] if "make no sense" in problem]
    check(not damaged, f"what the trace says is not believed: {damaged}")
    calls = {}
    for row in report.json["rows"]:
        key = row["route"], row["reason"]
        calls[key] = calls.get(key, 0) + row["calls"]
    return result, calls


def as_nobody_special():
    """Words that take from root what lets it read and write everything."""
    if os.geteuid() != 0:
        return []
    words = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]
    if not shutil.which("setpriv") or run([*words, "true"]).code:
        raise Skip("root cannot be made an ordinary user here: setpriv fails")
    return words


def own_mounts(*commands):
    """Words that run what follows where `commands` (mounts) hold, and nowhere else."""
    words = ["unshare", "-m", "sh", "-c", " && ".join([*commands, 'exec "$@"']), "sh"]
    if not shutil.which("unshare") or run([*words, "true"]).code:
        raise Skip("file systems cannot be mounted here: it takes root, or CAP_SYS_ADMIN")
    return words


def by_rank(folder, variable, zero, others, command):
    """A program that sets a variable to `zero` on rank 0 and to `others` elsewhere; "" unsets."""
    script = folder / "by-rank"
    script.write_text(f"""#!/bin/sh
case ${{PMIX_RANK:-$PMI_RANK}} in
0) {variable}={zero} ;;
*) {variable}={others} ;;
esac
export {variable}
LD_PRELOAD={collx} exec {command}
""")
    script.chmod(0o755)
    return script


def simple(case, expect_route=True, **more):
    def run_case(folder):
        result, calls = routes(folder, case=case, **more)
        good(result).expect_quiet()
        if expect_route:
            check(calls.get(("shm", "policy")), f"nothing was routed: {calls}")

    return run_case
