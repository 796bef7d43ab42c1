#!/usr/bin/python3
"""The python part of the test that every call is seen exactly once: the same calls as once.c.

usage: once.py mpi4py|PATH-OF-pympi.so"""

import importlib.util
import sys
from array import array

if sys.argv[1] == "mpi4py":
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
else:
    spec = importlib.util.spec_from_file_location("pympi", sys.argv[1])
    comm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(comm)

rank, size = comm.Get_rank(), comm.Get_size()


def check(good, what):
    if not good:
        sys.exit(f"wrong result of {what}")


for i in range(11):
    comm.Barrier()
for i in range(13):
    want = array("d", [100 * i + k for k in range(4)])
    data = want[:] if rank == i % size else array("d", 4 * [-1])
    comm.Bcast(data, i % size)
    check(data == want, "Bcast")
for i in range(17):
    data, total = array("d", [rank + i + k for k in range(4)]), array("d", 4 * [0])
    comm.Allreduce(data, total)
    check(total == array("d", [size * (size - 1) / 2 + size * (i + k) for k in range(4)]),
          "Allreduce")
for i in range(5):
    to = array("d", size * [-1])
    comm.Gather(array("d", [rank]), to, 0)
    check(rank or to == array("d", range(size)), "Gather")
for i in range(3):
    to = array("d", size * [-1])
    comm.Alltoall(array("d", [1000 * rank + k for k in range(size)]), to)
    check(to == array("d", [1000 * k + rank for k in range(size)]), "Alltoall")
for i in range(2):
    data = array("d", [i + 7 if rank == 0 else 0])
    request = comm.Ibcast(data, 0)
    if request is not None:
        request.Wait()
    check(data[0] == i + 7, "Ibcast")
