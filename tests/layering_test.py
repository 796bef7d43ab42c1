#!/usr/bin/python3
"""usage: layering_test.py SOURCE

Each folder includes only what lies below it, by the table in CONTRIBUTING.md."""

import re
import sys
from pathlib import Path

# These may include anything.
OUTSIDE = {"tests", "bench"}
MAY_KNOW_MPI = {"pmpi"} | OUTSIDE
SOURCES = {".c", ".h", ".cc", ".S", ".def", ".in"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# A row: | `hw/`, … | what it holds | base, trace |
ROW = re.compile(r"^\| (`[\w/]+/`(?:, `[\w/]+/`)*) \|.*\| ([^|]+) \|$", re.M)


def table(root):
    """What each folder may include beside itself."""
    below = {}
    for folders, words in ROW.findall((root / "CONTRIBUTING.md").read_text()):
        for folder in re.findall(r"`([\w/]+)/`", folders):
            below[folder] = (list(below) if words == "all above" else
                             [] if words == "nothing of ours" else
                             re.findall(r"(\w+)(?:'s headers)?(?:, |$)", words))
    return below


def layer_of(below, place):
    """The innermost folder around it that has a row, or None."""
    return next((str(folder) for folder in place.parents if str(folder) in below), None)


def may_include(below, folder, layer):
    """Beside each other, folders in a folder go by their own names; elsewhere they are part of it."""
    top, *inside = layer.split("/")
    if top == folder.split("/")[0] and inside:
        top = inside[-1]
    return layer == folder or top in below[folder]


def problems(root):
    below = table(root)
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        if path.suffix not in SOURCES or place.parts[0].startswith((".", "build")):
            continue
        folder = layer_of(below, place)
        if not folder:
            yield f"{place}: no layer of the table in CONTRIBUTING.md"
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
            layer = layer_of(below, Path(name))
            if "/" not in name:
                yield f'{where}: "{name}": includes begin with the folder'
            elif not (root / name).exists():
                yield f'{where}: "{name}" does not exist'
            elif not may_include(below, folder, layer):
                yield f"{where}: {folder}/ may include {below[folder] or 'nothing'}, not {layer}/"
            elif folder == "interpose" and not name.endswith((".h", ".def")):
                yield f"{where}: interpose/ uses headers of base/ alone, not its code"


found = list(problems(Path(sys.argv[1]).resolve()))
for problem in found:
    print(problem)
sys.exit(1 if found else 0)
