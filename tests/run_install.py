#!/usr/bin/python3
"""usage: run_install.py BUILD [MPI LAUNCHER]...

What `meson install` leaves, moved to another place: it finds its own parts there, jobs run with it,
programs can be linked with it, and everything has its manual page."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from job import Mpi, Skip, check, main, run

build = Path(sys.argv[1])
mpis = [Mpi(name, launcher) for name, launcher in zip(sys.argv[2::2], sys.argv[3::2])]
destination = tempfile.TemporaryDirectory(prefix="collx-install-")
subprocess.run(["meson", "install", "--no-rebuild", "--quiet", "-C", build, "--destdir", destination.name],
               check=True, stdout=subprocess.DEVNULL)
tool = next(Path(destination.name).rglob("bin/collx"))
root = tool.parent.parent
libraries = next(root.rglob("libcollx.so")).parent
share = root / "share"

PROGRAM = """#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 50; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""
USES = """#include <collx/group.h>
#include <stdlib.h>
#include <trace/format.h>
int main(void)
{
    collx_group_destroy(NULL);
    return sizeof(struct collx_trace_record) != COLLX_TRACE_RECORD;
}
"""


def finds_its_parts(folder):
    info = run([tool, "info"]).expect().out
    check(f"MPI adapters in {libraries}\n" in info, info)
    policies = sorted((share / "collx" / "policies").glob("*.yaml"))
    check(len(policies) >= 4, policies)
    run([tool, "policy", "check", *policies]).expect()


def has_manuals(folder):
    for program in sorted(tool.parent.iterdir()):
        check((share / "man" / "man1" / f"{program.name}.1").exists(), f"no manual page of {program.name}")
    for page in ("hardware.md", "policies.md", "report.md", "trace-format.md"):
        check((share / "doc" / "collx" / "docs" / page).exists(), f"manual pages name {page}, which is not there")


def has_what_it_links(folder):
    documents = share / "doc" / "collx"
    for page in sorted(documents.rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            check(":" in target or (page.parent / target).exists(),
                  f"{page.relative_to(documents)} refers to {target}, which is not there")


def package(*arguments):
    if not shutil.which("pkg-config"):
        raise Skip("no pkg-config")
    return run(["pkg-config", f"--define-variable=prefix={root}", *arguments],
               {"PKG_CONFIG_PATH": str(libraries / "pkgconfig")}).expect().out.split()


def compiles(folder):
    (folder / "uses.c").write_text(USES)
    run(["cc", "-Wall", "-Werror", "uses.c", "-o", "uses", *package("--cflags", "--libs", "collx", "collx-group"),
         f"-Wl,-rpath,{libraries}"], cwd=folder).expect()
    run([folder / "uses"]).expect()


def runs(mpi, linked):
    def case(folder):
        (folder / "program.c").write_text(PROGRAM)
        wrapper = mpi.launcher.replace("mpiexec", "mpicc")
        flags = [*package("--libs", "collx"), f"-Wl,-rpath,{libraries}"] if linked else []
        run([wrapper, "program.c", "-o", "program", *flags], cwd=folder).expect()
        env = {"COLLX_TRACE": folder / "trace", "COLLX_AT_ONCE": "on"}
        preload = {} if linked else {"LD_PRELOAD": libraries / "libcollx.so"}
        mpi.run(2, [folder / "program"], {**env, **preload}).expect().expect_quiet()
        rows = run([tool.parent / "collx-report", "--format=csv", "--by=route", folder / "trace"]).expect().out
        check(",shm,policy," in rows, rows)

    return case


def privileged(mpi):
    """A program with rights that its user has not is no way to use them for something else."""
    def case(folder):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            raise Skip("it takes root and setpriv to make such a program, and another user of it")
        (folder / "program.c").write_text(PROGRAM)
        wrapper = mpi.launcher.replace("mpiexec", "mpicc")
        program, trace = folder / "program", folder / "trace"
        run([wrapper, "program.c", "-o", program, *package("--libs", "collx"), f"-Wl,-rpath,{libraries}"],
            cwd=folder).expect()
        for place in (folder, Path(destination.name)):
            place.chmod(0o755)
        program.chmod(0o4755)
        user = ["setpriv", "--reuid", "65534", "--clear-groups"]
        result = run([*user, program],
                     {"COLLX_TRACE": str(trace), "COLLX_ADAPTER": "/nowhere/adapter.so"}).expect()
        check(not trace.exists(), "it has made a folder for its user")
        check("/nowhere" not in result.err and "COLLX_TRACE counts as not set" in result.err, result.err)

    return case


def module(mpi):
    """What loads it runs under collx, of this tree, which has been moved since it was made."""
    def case(folder):
        modulecmd = shutil.which("modulecmd") or "/usr/lib/modulecmd.tcl"
        if not Path(modulecmd).exists():
            raise Skip("no Environment Modules")
        (folder / "program.c").write_text(PROGRAM)
        run([mpi.launcher.replace("mpiexec", "mpicc"), "program.c", "-o", "program"], cwd=folder).expect()
        words = " ".join(map(str, mpi.command(2, [folder / "program"], {})))
        result = run(["sh", "-c", f'eval "$({modulecmd} sh load collx)" && collx info && {words} && '
                                  f'eval "$({modulecmd} sh unload collx)" && echo "left: $LD_PRELOAD"'],
                     {"MODULEPATH": share / "modulefiles", "COLLX_VERBOSE": "1"}).expect()
        check(f"MPI adapters in {libraries}\n" in result.out, result.out)
        check("left: \n" in result.out, result.out)
        check("collx: version" in result.err, f"the job did not run under collx\n{result.err}")

    return case


main([("it finds its own parts", finds_its_parts), ("manual pages", has_manuals),
      ("documents, and what they refer to", has_what_it_links),
      ("what reads traces or uses groups", compiles)]
     + [(f"{mpi.name}: {'linked' if linked else 'preloaded'}", runs(mpi, linked))
        for mpi in mpis for linked in (False, True)]
     + [(f"{mpi.name}: by its module", module(mpi)) for mpi in mpis]
     # As a user who has no home Open MPI's does not start.
     + [(f"{mpi.name}: a privileged program", privileged(mpi)) for mpi in mpis if mpi.name == "mpich"])
