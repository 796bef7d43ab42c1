#!/usr/bin/python3
"""usage: run_rma.py BUILD MPI LAUNCHER

Segments in windows of MPI: what hw/segment.h promises, between the ranks of real jobs, and what
becomes of it where some or all of them cannot make windows."""

import sys
from pathlib import Path

from job import Mpi, Skip, check, main

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
program = build / "tests" / "programs" / f"rma-{mpi_name}"


def good(ranks, *arguments, env=None):
    result = mpi.run(ranks, [program, *arguments], env).expect()
    check("good\n" in result.out, f"the program did not reach its end\n{result.out}{result.err}")
    return result


def rules(folder):
    good(2, "rules")


def more_ranks_than_cores(folder):
    """MPICH waits for the others without giving way, for some milliseconds each time."""
    good(5, "rules", 300 if mpi_name == "openmpi" else 12)


def alone(folder):
    good(1, "rules")


def apart(folder):
    good(6, "apart", 50 if mpi_name == "openmpi" else 5)


def not_all(folder):
    good(4, "lost")


def one_without(folder):
    if mpi_name == "mpich":
        raise Skip("MPICH over UCX aborts in MPI_Finalize where a window is left that nobody can free")
    good(3, "lost-window")


def none(folder):
    """No component of Open MPI that makes windows."""
    if mpi_name != "openmpi":
        raise Skip("this MPI library cannot be told to make no windows")
    good(3, "refused", env={"OMPI_MCA_osc": "monitoring"})


main([
    (f"{mpi_name}: the rules", rules),
    (f"{mpi_name}: more ranks than cores", more_ranks_than_cores),
    (f"{mpi_name}: alone", alone),
    (f"{mpi_name}: several at the same time", apart),
    (f"{mpi_name}: a rank cannot use its window", not_all),
    (f"{mpi_name}: a rank has no window", one_without),
    (f"{mpi_name}: no windows at all", none),
])
