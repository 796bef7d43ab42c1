#!/usr/bin/python3
"""usage: run_style.py SOURCE

The source is formatted by .clang-format, and shellcheck finds nothing in the scripts.  Generated
files are not looked at: they are in build folders."""

import re
import shutil
import sys
from pathlib import Path

from job import Skip, check, main, run

root = Path(sys.argv[1])


def files(wanted):
    for path in sorted(root.rglob("*")):
        top = path.relative_to(root).parts[0]
        if top == ".git" or top.startswith("build") or not path.is_file():
            continue
        if wanted(path):
            yield path


def needs(program, package):
    if not shutil.which(program):
        raise Skip(f"no {program}; Debian's {package} has it")


# Whose formatting is the project's: other versions do some things in another way.
CLANG_FORMAT = 14


def formatted(folder):
    needs("clang-format", "clang-format")
    version = re.search(r"version (\d+)", run(["clang-format", "--version"]).expect().out)
    if int(version[1]) != CLANG_FORMAT:
        raise Skip(f"this is clang-format {version[1]}, not {CLANG_FORMAT}")
    sources = list(files(lambda path: path.suffix in (".c", ".h", ".cc")))
    check(sources, "no source files")
    result = run(["clang-format", "--dry-run", "-Werror", "--style=file", *sources])
    wrong = sorted({line.split(":")[0] for line in result.err.splitlines() if ": error:" in line})
    check(result.code == 0, "\n".join([*wrong, "clang-format -i FILE formats it"]))


def is_shell(path):
    with path.open("rb") as file:
        return file.readline().startswith((b"#!/bin/bash", b"#!/bin/sh", b"# shellcheck shell"))


def shell_scripts_are_sound(folder):
    needs("shellcheck", "shellcheck")
    scripts = list(files(is_shell))
    check(scripts, "no shell scripts")
    result = run(["shellcheck", "-x", *scripts], cwd=root)
    check(result.code == 0, result.out + result.err)


main([("clang-format", formatted), ("shellcheck", shell_scripts_are_sound)])
