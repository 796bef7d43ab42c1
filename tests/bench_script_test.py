#!/usr/bin/python3
"""usage: bench_script_test.py SOURCE

What scripts/bench makes of the jobs that it runs, good ones and others.  The jobs, and all else that
it calls of a build and a Debian system, are stand-ins: only the script is tried."""

import shutil
import sys
from pathlib import Path

from job import check, main, run

source = Path(sys.argv[1])

PROGRAMS = {
    "dpkg-query": "echo installed",
    "apt-get": "exit 1",
    "meson": "exit 0",
    "ninja": "exit 0",
    "dpkg": "echo /mpich-tests/xdqr",
    "mpirun.openmpi": 'shift 3; exec "$@"',
    "mpiexec.mpich": 'shift 2; exec "$@"',
    "hpcc": "exit 0",
    # Crashes in the run whose number is in the file.
    "lmp": 'echo >>"$FOLDER/runs"; [ "$(wc -l <"$FOLDER/runs")" != "$(cat "$FOLDER/crash")" ] || exit 139',
}


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)


def bench(folder, *arguments):
    """Runs the script in a copy of the source, with these stand-ins first in the PATH."""
    for part in ("scripts", "bench"):
        if not (folder / part).exists():
            shutil.copytree(source / part, folder / part, ignore=shutil.ignore_patterns("results"))
    for name, text in PROGRAMS.items():
        program(folder / "bin" / name, text)
    return run([folder / "scripts/bench", "-y", *arguments],
               env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "FOLDER": str(folder)})


def crashed_programs_do_not_count(folder):
    # The first without collx, and the first that has collx and comes before the one without.
    for crash in (1, 3):
        (folder / "runs").unlink(missing_ok=True)
        (folder / "crash").write_text(str(crash))
        result = bench(folder, "--quick", "apps")
        check(result.code == 1 and "the program failed: " in result.err and "lmp -in" in result.err, result.out + result.err)
        check("unbound" not in result.err, result.err)
        check((folder / "runs").read_text() == crash * "\n", f"it went on:\n{result.out}{result.err}")


def results(folder, where):
    return {path.name: path.read_text() for path in (folder / "bench/results" / where).glob("*.*")}


def jobs_write(folder, text, code=0):
    program(folder / "build/bench/collx-bench-openmpi", f"""
echo {text}
for word; do case $word in --csv=* | --svg=*) echo {text} >"${{word#*=}}" ;; esac; done
exit {code}""")


def good(folder, text, *arguments):
    jobs_write(folder, text)
    bench(folder, *arguments).expect()


def quick_figures_replace_no_others(folder):
    good(folder, "full", "4")
    before = results(folder, ".")
    check(set(before) == {f"openmpi-4.{what}" for what in ("txt", "csv", "svg", "machine")}, before)
    check("kernel:" in before["openmpi-4.machine"], before)
    good(folder, "fast", "--quick", "4")
    check(results(folder, ".") == before, results(folder, "."))
    quick = results(folder, "quick")
    check(set(quick) == set(before) and quick["openmpi-4.txt"] == quick["openmpi-4.csv"] == "fast\n", quick)


def failed_jobs_leave_what_was_there(folder):
    good(folder, "before", "4")
    before = results(folder, ".")
    jobs_write(folder, "broken", code=1)
    result = bench(folder, "4")
    check(result.code == 1 and "broken" in result.err and "the job failed" in result.err, result.err)
    check(results(folder, ".") == before, results(folder, "."))


def any_number_of_ranks_will_do(folder):
    good(folder, "figures", "1", "128")
    check(set(results(folder, ".")) >= {"openmpi-1.csv", "openmpi-128.csv"}, results(folder, "."))
    for word in ("0", "2x", ""):
        result = bench(folder, word)
        check(result.code == 1 and f"do not know '{word}'" in result.err, result.err)


main([(case.__name__.replace("_", " "), case) 
      for case in (crashed_programs_do_not_count, quick_figures_replace_no_others,
                   failed_jobs_leave_what_was_there, any_number_of_ranks_will_do)])
