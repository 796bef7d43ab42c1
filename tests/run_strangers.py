#!/usr/bin/python3
"""usage: run_strangers.py BUILD MPI LAUNCHER

Not all that come together are of one kind: ranks without collx or with another one, MPI libraries
that have another name or are not the adapter's, programs that go past collx."""

import re
import shlex
import shutil
from pathlib import Path

from job import Report, Skip, check, main, run, run_until
from weather import RANKS, build, collx, good, job, mpi, mpi_name, said_once, spoke, weather


def no_adapter(folder):
    result = good(job("plain", {"COLLX_ADAPTER": folder / "nothing.so"}))
    said_once(result, "runs without collx. It is what COLLX_ADAPTER names: unset that")
    check(len(spoke(result)) == 1, result.err)


def beside_a_copy(folder):
    """What the program is told of what lies beside a copy of libcollx.so."""
    return good(job("plain", {"LD_PRELOAD": shutil.copy(collx, folder)}, with_collx=False))


def adapter_not_there(folder):
    said_once(beside_a_copy(folder), "runs without collx. The adapter belongs beside libcollx.so")


def adapter_of_another_system(folder):
    """It needs a function that is not to be had here."""
    name = f"libcollx-{mpi_name}.so"
    adapter = (build / name).read_bytes()
    check(b"\0calloc\0" in adapter, "it names no function to take away")
    (folder / name).write_bytes(adapter.replace(b"\0calloc\0", b"\0cannot\0"))
    said_once(beside_a_copy(folder), "undefined symbol: cannot",
              "runs without collx. Build collx on this system")


def adapter_of_another_kind(folder):
    """Its handles would be taken for addresses, or addresses for its handles."""
    other = build / {"openmpi": "libcollx-mpich.so", "mpich": "libcollx-openmpi.so"}[mpi_name]
    if not other.exists():
        raise Skip("collx was built for one MPI library alone")
    result = good(job("plain", {"COLLX_ADAPTER": other}))
    said_once(result, "the program runs without collx")


def says_so(folder):
    """The first line tells that collx is there, and needs no communicator that is worth a setup."""
    for at_once in "off", "on":
        result = good(job("no-calls", {"COLLX_VERBOSE": 1, "COLLX_AT_ONCE": at_once}))
        said_once(result, "MPI", ", policy built-in. Which way its collectives go is said of each")


def another_version(folder):
    """On one rank, or on all but rank 0: nothing goes a way of collx's, and nobody waits for ever."""
    another = build / "tests" / "programs" / f"libcollx-another-{mpi_name}.so"
    for zero, others in (another, ""), ("", another):
        script = folder / "by-rank"
        script.write_text(f"""#!/bin/sh
case ${{PMIX_RANK:-$PMI_RANK}} in
0) COLLX_ADAPTER={zero} COLLX_AT_ONCE=on ;;
*) COLLX_ADAPTER={others} ;;
esac
export COLLX_ADAPTER COLLX_AT_ONCE
LD_PRELOAD={collx} exec {weather} plain
""")
        script.chmod(0o755)
        said_once(good(mpi.run(RANKS, [script])), "MPI_COMM_WORLD run different versions of collx")


def another_reader(folder):
    """What it says of algorithms would be of others than there are."""
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\nrules:\n  - use: [shm, pmpi]\n")
    another = build / "tests" / "programs" / f"libcollx-another-{mpi_name}.so"
    result = good(job("plain", {"COLLX_ADAPTER": another, "COLLX_POLICY": policy}))
    said_once(result, "libcollx-policy.so is not of the same version as libcollx.so")
    said_once(result, "the built-in policy is used instead of")


def some_without(ranks, without, jobs=1, env=None, program="plain", where="MPI_COMM_WORLD"):
    """The jobs wait, in MPI_Init if they have one, and one rank of each says so, whichever runs
    without collx; `env` is what they are started in."""

    def case(folder):
        script = folder / "by-rank"
        script.write_text(f"""#!/bin/sh
[ ${{PMIX_RANK:-$PMI_RANK}} != {without} ] && export COLLX_STALL=400ms LD_PRELOAD={collx}
exec {weather} {program}
""")
        script.chmod(0o755)
        job = shlex.join(map(str, mpi.command(ranks, [script])))
        # Each has a folder for what its launcher makes: two of Open MPI's that make the first one
        # in /tmp at the same moment fail now and then.
        begun = []
        for i in range(jobs):
            own = folder / f"job-{i}"
            own.mkdir()
            begun.append(f"TMPDIR={own} {job}")
        # Who is not rank 0 would say so after twice the time.
        result = run_until(lambda err: err.count("Does every rank run under collx") >= jobs, 1,
                           ["sh", "-c", " & ".join(begun)], folder / "err", env, 30)
        if "Auto-detection of PMI version failed" in result.err:
            raise Skip("this MPI library does not start there, without collx either")
        check(result.code is None, f"it has not waited\n{result.err}")
        check(all(where in line and "Does every rank run under collx" in line
                  for line in spoke(result)) and len(spoke(result)) == jobs, result.err)

    return case


def mpi_library():
    found = re.search(r"libmpi(ch)?\.so\S* => (\S+)", run(["ldd", weather]).out)
    return Path(found[2])


def python_job(folder, library, initialiser, first="", preload=collx, env=None, calls=50):
    """Two ranks of a program that loads a library with all its functions itself, traced to
    folder/trace; `initialiser`: whose MPI_Init it calls, that of the `library` or of the `process`;
    `first`: what it does before."""
    program = folder / "program.py"
    program.write_text(f"""import ctypes
{first}
library = ctypes.CDLL("{library}", ctypes.RTLD_GLOBAL)
process = ctypes.CDLL(None)
try:
    world = ctypes.byref(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world"))
except ValueError:
    world = 0x44000000
{initialiser}.MPI_Init(None, None)
for _ in range({calls}):
    process.MPI_Barrier(world)
process.MPI_Finalize()
print("good")
""")
    return good(mpi.run(2, ["/usr/bin/python3", program],
                        {"LD_PRELOAD": preload, "COLLX_TRACE": folder / "trace",
                         "COLLX_AT_ONCE": "on", **(env or {})}, cwd=build))


def from_python(folder, *rest, **more):
    """The calls of such a program."""
    python_job(folder, *rest, **more).expect_quiet()
    return Report(build, folder / "trace")


def another_name(folder):
    """Cray's MPICH is called after the compiler that it is for."""
    copy = folder / "libmpi_gnu_91.so.12"
    shutil.copy(mpi_library(), copy)
    calls = from_python(folder, copy, "process").calls(route="shm")
    check(calls == 2 * 50, f"{calls} calls of 100 were routed")


def another_open_mpi(folder):
    """Handles of Open MPI are addresses in one library, and the adapter's is not the program's here.
    Since release 6 the one with the functions has another one beneath it, with the handles."""
    beside = mpi_library().parent
    names = [name for name in ("libopen_mpi.so.40", "libmpi.so.40") if (beside / name).exists()]
    copies = [folder / name.replace("40", "20") for name in names]
    for name, copy in zip(names, copies):
        text = (beside / name).read_bytes()
        for its, new in zip(names, copies):
            text = text.replace(f"{its}\0".encode(), f"{new.name}\0".encode())
        check(f"{copy.name}\0".encode() in text, f"{name} does not say what it is called")
        copy.write_bytes(text)
    beneath = f"ctypes.CDLL('{copies[0]}', ctypes.RTLD_GLOBAL)"
    said_once(python_job(folder, copies[-1], "process", beneath), "another MPI library", "runs without collx")


def init_past_collx(folder):
    """Who asks the MPI library itself for its functions does not come by collx."""
    report = from_python(folder, mpi_library(), "library")
    check(report.calls() == 2 * 50, f"{report.calls()} calls of 100 were traced")
    check(report.code == 0, report.err)


def windows_past_collx(folder):
    """Nobody would tell when they have to go."""
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\nrules:\n  - use: [nx(over=rma), pmpi]\n")
    # Nor when communicators are set up.
    report = from_python(folder, mpi_library(), "library", calls=5000,
                         env={"COLLX_POLICY": policy, "COLLX_NODE_SIZE": 1})
    routes = {(row["route"], row["reason"]) for row in report.json["rows"]}
    check(routes == {("pmpi", "warm-up"), ("pmpi", "policy")}, f"{routes}")


def relative_library(folder):
    """What lies beside libcollx.so is found, wherever the program has gone meanwhile."""
    calls = from_python(folder, mpi_library(), "process", "import os; os.chdir('/')",
                        preload="./libcollx.so").calls(route="shm")
    check(calls == 2 * 50, f"{calls} calls of 100 were routed")


main([
    ("another version", another_version),
    ("another version of what reads policies", another_reader),
    ("rank 0 alone without collx", some_without(4, 0)),
    ("the last rank alone without collx", some_without(4, 3)),
    ("rank 0 alone without collx, of two jobs at once", some_without(2, 0, jobs=2)),
    ("rank 0 alone without collx, of two jobs in a shell that a launcher started",
     some_without(2, 0, jobs=2, env={"PMIX_NAMESPACE": "1"})),
    *([("rank 0 alone without collx, and sessions alone",
        some_without(2, 0, program="sessions", where="a communicator"))] if mpi_name == "mpich" else []),
    ("no adapter", no_adapter),
    ("the adapter is not there", adapter_not_there),
    ("the adapter is of another system", adapter_of_another_system),
    ("an adapter for another kind of MPI library", adapter_of_another_kind),
    ("a program that makes no collectives", says_so),
    ("libcollx.so by a relative name", relative_library),
    ("MPI_Init goes past collx", init_past_collx),
    ("MPI_Init goes past collx, and there would be windows", windows_past_collx),
    {"openmpi": ("another Open MPI than the adapter's", another_open_mpi),
     "mpich": ("an MPI library of another name", another_name)}[mpi_name],
])
