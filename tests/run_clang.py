#!/usr/bin/python3
"""usage: run_clang.py BUILD [MPI LAUNCHER]...

Another compiler than the one that has made all else here, such as most vendors' are made of: it takes
collx without a warning, and the libraries that it makes do what ours do."""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from job import Skip, check, main, run

build = Path(sys.argv[1])
mpis = list(zip(sys.argv[2::2], sys.argv[3::2]))
tests = Path(__file__).parent
temporary = tempfile.TemporaryDirectory(prefix="collx-clang-")
made = Path(temporary.name) / "build"
CLANG = {"CC": "clang", "CXX": "clang++"}


def compiles(folder):
    if not shutil.which("clang"):
        raise Skip("there is no clang")
    run(["meson", "setup", "-Dtests=false", "-Dwerror=true", made, tests.parent], CLANG).expect()
    result = run(["ninja", "-C", made], timeout=300).expect()
    check("warning" not in result.out + result.err, result.out + result.err)


def needed():
    if not (made / "libcollx.so").exists():
        raise Skip("clang has not compiled it")


def tap(command, **env):
    """Another test, with what clang has made."""
    result = run([sys.executable, *command], env, timeout=120).expect()
    check(re.search("^ok 1 ", result.out, re.M) and "not ok" not in result.out, result.out)


def refuses_fast_math(folder):
    kernels = ["-fsyntax-only", f"-I{tests.parent}", "-DKERNELS=kernels",
               tests.parent / "algorithms" / "reduction" / "kernels.c"]
    for compiler in filter(shutil.which, ("gcc", "clang")):
        run([compiler, "-O3", *kernels]).expect()
        result = run([compiler, "-Ofast", *kernels])
        check(result.code and "build it without -ffast-math" in result.err, result.err)


def takes_what_older_ones_have(folder):
    needed()
    tap([tests / "run_nothing.py", made], COLLX_TEST_ONLY="it takes nothing")


def is_right(name, launcher, ranks):
    def case(folder):
        needed()
        tap([tests / "conformance" / "run.py", "--mpi", name, "--launcher", launcher, "--program",
             build / "tests" / "conformance" / f"conformance-{name}", "--build", made, "--ranks", ranks])

    return case


main([("clang compiles it", compiles),
      ("it takes nothing that an older libc has not", takes_what_older_ones_have),
      ("not with -Ofast", refuses_fast_math),
      *((f"the results of {ranks} ranks with {name}", is_right(name, launcher, ranks))
        for ranks, (name, launcher) in enumerate(mpis, 2))])
