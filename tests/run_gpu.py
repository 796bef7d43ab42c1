#!/usr/bin/python3
"""usage: run_gpu.py BUILD MPI LAUNCHER

Buffers in the memory of a GPU, by a driver that stands in for CUDA's: only the MPI library touches
them, whichever ranks have theirs there."""

import sys
from pathlib import Path

from job import Mpi, check, main

build, mpi_name, launcher = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mpi = Mpi(mpi_name, launcher)
programs = build / "tests" / "programs"
# What goes past collx would need an MPI library for GPUs.  hsb has no way for long vectors.
POLICY = """version: 1
rules:
  - match: {{ bytes: ..64KiB }}
    use: [{}]
  - use: [{}]
"""


def job(folder, ranks, gpu, use="shm", options=None):
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(use, use.replace("hsb", "nx")))
    env = {"LD_PRELOAD": build / "libcollx.so", "COLLX_AT_ONCE": "on", "COLLX_GPU": gpu,
           "COLLX_POLICY": policy, **(options or {})}
    return mpi.run(ranks, [programs / f"gpu-{mpi_name}", programs / "libgpu_driver.so"], env)


def works(ranks, use, options=None):
    def case(folder):
        result = job(folder, ranks, "on", use, options).expect().expect_quiet()
        check("good\n" in result.out, f"the program did not reach its end\n{result.out}{result.err}")

    return case


def is_needed(folder):
    """Else this would be true of everything."""
    result = job(folder, 2, "off")
    check("touched by " in result.err, f"nobody touched it\n{result.out}{result.err}")


def not_this_library(folder):
    """It has not been made for GPUs, and says so: nobody is asked."""
    result = job(folder, 2, "auto")
    check("touched by " in result.err, f"nobody touched it\n{result.out}{result.err}")


main([(f"{mpi_name}: {ranks} ranks, {use}", works(ranks, use)) for ranks in (2, 3)
      for use in ("shm", "shm(single_copy=always)")]
     + [(f"{mpi_name}: between nodes, {use}", works(4, use, {"COLLX_NODE_SIZE": "2"})) for use in ("nx", "hsb")]
     + [(f"{mpi_name}: off", is_needed), (f"{mpi_name}: auto", not_this_library)])
