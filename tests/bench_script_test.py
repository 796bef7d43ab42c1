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
        check(result.code == 1 and "the program failed: lmp" in result.err, result.out + result.err)
        check("unbound" not in result.err, result.err)
        check((folder / "runs").read_text() == crash * "\n", f"it went on:\n{result.out}{result.err}")


main([(case.__name__.replace("_", " "), case) for case in (crashed_programs_do_not_count,)])
