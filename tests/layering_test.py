#!/usr/bin/python3
"""usage: layering_test.py SOURCE

Each folder includes only what lies below it.  The table is the one of CONTRIBUTING.md."""

import re
import sys
from pathlib import Path

BELOW = {
    "base": [],
    "hw": ["base"],
    "algorithms": ["base", "hw"],
    "policies": ["base"],
    "trace": ["base"],
    "pmpi": ["base", "hw", "algorithms", "policies", "trace"],
    "group": ["base", "hw", "algorithms", "policies"],
    "interpose": ["base"],
    "report": ["base", "trace"],
    "tools": ["base", "hw", "algorithms", "policies"],
}
# These may include anything.
OUTSIDE = {"tests", "bench"}
MAY_KNOW_MPI = {"pmpi"} | OUTSIDE
SOURCES = {".c", ".h", ".cc", ".S", ".def", ".in"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def problems(root):
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        folder = place.parts[0]
        if path.suffix not in SOURCES or folder.startswith((".", "build")):
            continue
        if len(place.parts) < 2 or folder not in BELOW.keys() | OUTSIDE:
            yield f"{place}: no layer of the table: tests/layering_test.py has it"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            quote, name = include.groups()
            where = f"{place}:{number}"
            if re.fullmatch(r"(mpi|mpio|mpi-ext|mpif)\.h", name) and folder not in MAY_KNOW_MPI:
                yield f"{where}: only pmpi/, tests/ and bench/ know MPI"
            if quote == "<" or folder in OUTSIDE:
                continue
            layer = name.split("/")[0]
            if "/" not in name:
                yield f'{where}: "{name}": includes begin with the folder'
            elif not (root / name).exists():
                yield f'{where}: "{name}" does not exist'
            elif layer != folder and layer not in BELOW[folder]:
                yield f"{where}: {folder}/ may include {BELOW[folder] or 'nothing'}, not {layer}/"
            elif folder == "interpose" and not name.endswith((".h", ".def")):
                yield f"{where}: interpose/ uses headers of base/ alone, not its code"


found = list(problems(Path(sys.argv[1]).resolve()))
for problem in found:
    print(problem)
sys.exit(1 if found else 0)
