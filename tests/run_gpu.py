#!/usr/bin/python3
"""usage: run_gpu.py BUILD MPI LAUNCHER

Buffers in the memory of a GPU, by libraries that stand in for CUDA's driver, HIP's, and Level Zero's:
only the MPI library touches them, whichever ranks have theirs there."""

from job import Skip, check, main
from weather import build, in_front, mpi, mpi_name

programs = build / "tests" / "programs"
# What goes past collx would need an MPI library for GPUs.  hsb has no way for long vectors.
POLICY = """version: 1
rules:
  - match: {{ bytes: ..64KiB }}
    use: [{}]
  - use: [{}]
"""


CUDA, ZE = "libcuda.so.1", "libze_loader.so.1"
# One that takes it for an error to be asked about other memory, and one that does not.
HIPS = ["libamdhip64.so.5", "libamdhip64.so.7"]


def job(folder, ranks, gpu, use="shm", options=None, driver=CUDA):
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(use, use.replace("hsb", "nx")))
    env = {"LD_PRELOAD": build / "libcollx.so", "COLLX_AT_ONCE": "on", "COLLX_GPU": gpu,
           "COLLX_POLICY": policy, **(options or {})}
    result = mpi.run(ranks, [programs / f"gpu-{mpi_name}", programs / f"gpu_driver-{driver}.so"], env)
    if "the real driver is loaded" in result.out:
        raise Skip(f"this MPI library brings the real {driver} along")
    return result


def works(ranks, use="shm", options=None, gpu="on", driver=CUDA):
    def case(folder):
        result = job(folder, ranks, gpu, use, options, driver).expect().expect_quiet()
        check("good\n" in result.out, f"the program did not reach its end\n{result.out}{result.err}")

    return case


def is_needed(driver):
    """Else this would be true of everything."""
    def case(folder):
        result = job(folder, 2, "off", driver=driver)
        check("touched by " in result.err, f"nobody touched it\n{result.out}{result.err}")

    return case


def not_this_library(options):
    """It has not been made for GPUs, and says so: nobody is asked."""
    def case(folder):
        result = job(folder, 2, "auto", options=options, driver=ZE)
        check("touched by " in result.err, f"nobody touched it\n{result.out}{result.err}")

    return case


main([(f"{mpi_name}: {ranks} ranks, {use}", works(ranks, use)) for ranks in (2, 3)
      for use in ("shm", "shm(single_copy=always)")]
     + [(f"{mpi_name}: between nodes, {use}", works(4, use, {"COLLX_NODE_SIZE": "2"})) for use in ("nx", "hsb")]
     + [(f"{mpi_name}: {driver}, off", is_needed(driver)) for driver in (CUDA, ZE, *HIPS)]
     + [(f"{mpi_name}: {driver}", works(2, driver=driver)) for driver in HIPS]
     + [(f"{mpi_name}: auto", not_this_library({})),
        (f"{mpi_name}: auto, Intel's for none", not_this_library({"I_MPI_OFFLOAD": "0"})),
        (f"{mpi_name}: Level Zero", works(2, driver=ZE))]
     + [(f"{mpi_name}: auto, {whose} with {driver}", works(2, options=options, gpu="auto", driver=driver))
        for whose, options, driver in (("Intel's", {"I_MPI_OFFLOAD": "2"}, CUDA),
                                       ("Intel's", {"I_MPI_OFFLOAD": "2"}, ZE),
                                       ("MVAPICH's", {"MVP_ENABLE_GPU": "1"}, CUDA))]
     + [(f"{mpi_name}: auto, one for {what}",
         works(2, options={"LD_PRELOAD": in_front(library)}, gpu="auto", driver=driver))
        for what, library, driver in (("Level Zero", "takes-ze", ZE),
                                      ("CUDA, as MPICH 3.4 is", "cuda-by-number", CUDA))])
