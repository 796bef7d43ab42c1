#!/usr/bin/python3
"""usage: run_fuzz.py BUILD MPI LAUNCHER

Collectives in random order on communicators that overlap, with a seed that is always the same.  The
program is tests/conformance/fuzz.c; by hand it goes on for longer, and with other seeds."""

import sys
from pathlib import Path

from job import Mpi, Report, check, main

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
program = build / "tests" / "conformance" / f"fuzz-{mpi_name}"

SEED = 1


def sequence(ranks, steps, threads=1):
    def case(folder):
        trace = folder / "trace"
        trace.mkdir()
        result = mpi.mpirun(build / "libcollx.so", ranks, [program, SEED, steps, threads],
                            env={"COLLX_TRACE": trace}, timeout=120)
        check(result.code == 0, f"exit code {result.code}\n{result.out}{result.err}")
        result.expect_quiet()
        # Without collx it would pass as well.
        report = Report(build, trace)
        for word in ("Barrier", "Bcast", "Allreduce"):
            name = f"MPI_{word}"
            routed = report.calls(collective=name) - report.calls(collective=name, route="pmpi")
            check(routed > 0, f"no {name} was routed")

    return case


main([("2 ranks", sequence(2, 2500)), ("4 ranks", sequence(4, 1200)),
      ("2 ranks with 2 threads", sequence(2, 2000, 2))])
