#!/usr/bin/python3
"""usage: run_nothing.py BUILD [LAUNCHER...]

Preloaded into what is no MPI program, collx does nothing: same output, same exit code, also when
every symbol is bound at once; nor in a program whose MPI it has no adapter for, but say so.
And what it is made of keeps it that way: it needs libc alone, runs nothing when it is loaded, and
exports names of MPI alone."""

import re
import shutil
import sys
from pathlib import Path

from job import Skip, check, main, run

build = Path(sys.argv[1])
launchers = sys.argv[2:]
collx = build / "libcollx.so"


def unchanged(command):
    def case(folder):
        program = shutil.which(command[0])
        if not program:
            raise Skip(f"{command[0]} is not there")
        plain = run([program, *command[1:]])
        for bind_now in ("", "1"):
            preloaded = run([program, *command[1:]],
                            {"LD_PRELOAD": str(collx), "LD_BIND_NOW": bind_now})
            for what in ("code", "out", "err"):
                check(getattr(preloaded, what) == getattr(plain, what),
                      f"LD_BIND_NOW='{bind_now}': {what} is {getattr(preloaded, what)!r}, "
                      f"without collx {getattr(plain, what)!r}")

    return case


def needs_libc_alone(folder):
    dynamic = run(["readelf", "-d", "-W", collx]).expect().out
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    check(needed == ["libc.so.6"], f"it needs {needed}")


def takes_what_older_ones_have(folder):
    """The loader ends a process, of whatever program, that lacks what a preloaded library needs."""
    # Of the versions at which functions may enter that have been in glibc from the first: what a
    # machine's first glibc was called, and those of single functions that are not new.
    known = {"2.2.5", "2.3.3", "2.17"}
    listed = run(["nm", "-D", "--undefined-only", collx]).expect().out
    taken = re.findall(r"(\w)\s+(\w+)@GLIBC_([\d.]+)", listed)
    check(("w", "dlsym") in {entry[:2] for entry in taken}, listed)
    # And what compilers call of themselves, unless others have it as well.
    common = {"__errno_location", "__stack_chk_fail"}
    newer = [f"{name} of {version}" for kind, name, version in taken
             if name not in common and (version not in known or kind == "U" and name.startswith("__"))]
    check(not newer, f"it takes {newer}")


def with_another_libc(folder):
    compiler = shutil.which("musl-gcc")
    if not compiler:
        raise Skip("there is no musl-gcc")
    source, program, library = (folder / name for name in ("calls.c", "calls", "libmpi.so"))
    source.write_text("""int MPI_Barrier(void *);
int main(void) { return MPI_Barrier((void *)0x101) + MPI_Barrier((void *)0x101); }
""")
    stand_in = Path(__file__).parent / "programs" / "standard_abi.c"
    run([compiler, "-shared", "-fPIC", stand_in, "-o", library]).expect()
    run([compiler, source, library, f"-Wl,-rpath,{folder}", "-o", program]).expect()
    run([program]).expect().expect_quiet()
    result = run([program], {"LD_PRELOAD": str(collx)}).expect()
    said = result.err.splitlines()
    check(len(said) == 1 and said[0].startswith("collx: ") and "another C library" in said[0], result.err)
    source.write_text("int main(void) { return 0; }")
    run([compiler, source, "-o", program]).expect()
    run([program], {"LD_PRELOAD": str(collx)}).expect().expect_quiet()


def runs_nothing_when_loaded(folder):
    # The one word in .init_array, and in .fini_array, is the compiler's own.
    sections = run(["readelf", "-S", "-W", collx]).expect().out
    for section in ("init_array", "fini_array"):
        size = re.search(rf"\.{section}\s+\S+\s+\S+\s+\S+\s+(\S+)", sections)
        check(not size or int(size[1], 16) <= 8, f"something of ours is in .{section}\n{sections}")


def names(library, option):
    out = run(["nm", "-D", option, library]).expect().out
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


def exports_names_of_mpi_alone(folder):
    exported = names(collx, "--defined-only")
    other = {name for name in exported if not re.fullmatch(r"P?MPI_[A-Z]\w*", name)}
    check(not other, f"exported: {sorted(other)}")
    single = {name for name in exported if name.startswith("MPI_") and "P" + name not in exported}
    single |= {name for name in exported if name.startswith("P") and name[1:] not in exported}
    check(not single, f"not exported with both names: {sorted(single)}")
    check({"MPI_Barrier", "MPI_Bcast_c", "PMPI_Allreduce"} <= exported, "no names of MPI")


def entries_can_be_unwound(folder):
    """By what stops in one: a profiler, a debugger."""
    frames = run(["readelf", "--debug-dump=frames-interp", collx]).expect().out
    known = {}
    for frame in re.split(r"\n\n", frames):
        where = re.search(r" pc=([0-9a-f]+)\.\.([0-9a-f]+)", frame)
        if where:
            rows = [row.split()[1:] for row in frame.splitlines()[2:] if row.strip()]
            known[range(*(int(end, 16) for end in where.groups()))] = rows
    entries = re.findall(r"^(\w+) [tT] (P?MPI_\w+|resolve_p?mpi)$",
                         run(["nm", collx]).expect().out, re.M)
    check({"MPI_Barrier", "resolve_mpi"} <= {name for _, name in entries}, "no entries")
    for address, name in entries:
        rows = [rows for frame, rows in known.items() if int(address, 16) in frame]
        check(rows, f"nothing says how to unwind {name}")
        if name.startswith("resolve"):
            # It ends in a jump, with everything where it was.
            check(len(rows[0]) > 1 and rows[0][-1] == rows[0][0], f"{name}: {rows[0]}")


def companions_export_one_symbol(folder):
    # One for programs to be linked with; the others are loaded into programs that know nothing of it.
    public = build / "libcollx-group.so"
    adapters = sorted(set(build.glob("libcollx-*.so")) - {public})
    check(adapters, "there are no adapters")
    for library in adapters:
        exported = names(library, "--defined-only")
        check(len(exported) == 1, f"{library.name} exports {sorted(exported)}")
    foreign = {name for name in names(public, "--defined-only") if not name.startswith("collx_group_")}
    check(not foreign, f"{public.name} exports {sorted(foreign)}")


def adapters_import_nothing_of_collx(folder):
    """Else a call that an adapter makes could come back to the door."""
    exported = names(collx, "--defined-only")
    for library in build.glob("libcollx-*.so"):
        imported = names(library, "--undefined-only") & exported
        check(not imported, f"{library.name} imports {sorted(imported)}")


def standard_abi(folder):
    """An adapter of the library's family would take its handles for others."""
    library = build / "tests" / "programs" / "libmpi_standard_abi.so"
    calls = folder / "calls.py"
    calls.write_text(f"""import ctypes, sys
ctypes.CDLL("{library}", ctypes.RTLD_GLOBAL)
barrier = ctypes.CDLL(None).MPI_Barrier
sys.exit(any(barrier(ctypes.c_void_p(0x101)) for _ in range(2000)))
""")
    result = run(["/usr/bin/python3", calls], {"LD_PRELOAD": str(collx)}).expect()
    said = [line for line in result.err.splitlines() if line.startswith("collx: ")]
    check(len(said) == 1 and "standard ABI" in said[0] and "without collx" in said[0], result.err)


def alone_in_python(module):
    """Python loads what it calls, and what that needs, for nobody else to see."""
    path = build / "tests" / "programs" / module
    command = ["/usr/bin/python3", "-c",
               f"import ctypes, sys; sys.exit(ctypes.CDLL('{path}').main(0, None))"]

    def case(folder):
        run(command).expect().expect_quiet()  # where collx is linked in it is there without our doing
        unchanged(command)(folder)

    return case


cases = [
    ("true", unchanged(["true"])),
    ("false", unchanged(["false"])),
    ("bash", unchanged(["bash", "-c", "echo $((6 * 7)) | cat; (exit 3)"])),
    ("python without MPI", unchanged(["/usr/bin/python3", "-c", "import threading; print('hello')"])),
    ("git", unchanged(["git", "--version"])),
    ("ssh", unchanged(["ssh", "-V"])),
    ("a program with what stands in for MPI", unchanged([str(build / "tests/programs/alone")])),
    ("a module with what stands in for MPI", alone_in_python("alone_module.so")),
    ("a module with what stands in for MPI, linked with collx", alone_in_python("alone_linked.so")),
]
for launcher in launchers:
    name = Path(launcher).name
    words = ["--oversubscribe"] if "openmpi" in name else []
    cases += [
        (f"{name}", unchanged([launcher, "--version"])),
        (f"{name} of a program without MPI",
         unchanged([launcher, *words, "-n", "2", "sh", "-c", "echo hello; exit 0"])),
    ]
cases += [
    ("an MPI library of the standard ABI", standard_abi),
    ("it needs libc alone", needs_libc_alone),
    ("it takes nothing that an older libc has not", takes_what_older_ones_have),
    ("a program of another libc", with_another_libc),
    ("it runs nothing when it is loaded", runs_nothing_when_loaded),
    ("it exports names of MPI alone", exports_names_of_mpi_alone),
    ("its entries can be unwound", entries_can_be_unwound),
    ("its companions export one symbol each", companions_export_one_symbol),
    ("adapters import nothing that collx exports", adapters_import_nothing_of_collx),
]
main(cases)
