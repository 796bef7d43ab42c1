#!/usr/bin/python3
"""usage: run_models.py PLAN MODEL

Checks one model with Spin, in all the cases that its own head lists:

  ok: DEFINE…                 everything that can happen is looked at, and nothing is wrong
  fails: KIND: DEFINE…        a mutant, in which Spin finds an assertion or a deadlock
  … | ARGUMENT…               after the bar: PLAN prints steps.pml from them

Words from the first one that is no DEFINE on are a remark."""

import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from job import Failure, Skip, check, main, run  # noqa: E402

plan, model = Path(sys.argv[1]), Path(sys.argv[2])
CASE = re.compile(r"^ \* (?:(ok)|fails: (assertion|deadlock)): ([^|]*?)(?:\|((?: [a-z]+)?(?: [\d.]+)+).*)?$", re.M)
DEFINE = re.compile(r"[A-Z][A-Z_]*(=\d+)?$")
# What Spin calls them.
KINDS = {"assertion": r"^pan:\d+: assertion violated", "deadlock": r"^pan:\d+: invalid end state "}
MEMORY_MB, DEPTH = 2048, 200000
# The first compiles in no time, and what it makes is over at once with nearly all models and all
# mutants; the other takes a second, for those that have millions of states.
COMPILERS = [(["tcc"], 18, 0.5), (["gcc", "-O1"], 23, 300)]


def defines_of(text):
    for word in text.split():
        if not DEFINE.match(word):
            return
        yield "-D" + word


def verify(folder, defines, arguments):
    """What the verifier says of it."""
    for source in model.parent.glob("*.pml"):
        shutil.copy(source, folder)
    if arguments:
        (folder / "steps.pml").write_text(run([plan, *arguments.split()]).expect().out)
    made = run(["spin", *defines, "-a", model.name], cwd=folder).expect()
    check("rror" not in made.out, made.out + made.err)
    for compiler, table, seconds in COMPILERS:
        if not shutil.which(compiler[0]):
            continue
        run([*compiler, "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=4096",
             f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c"], cwd=folder).expect()
        try:
            return run([folder / "pan", f"-m{DEPTH}", f"-w{table}"], cwd=folder, timeout=seconds).out
        except Failure as failure:
            late = failure
    raise late


def case(kind, defines, arguments):
    def try_it(folder):
        if not shutil.which("spin"):
            raise Skip("no spin; Debian's spin has it")
        said = verify(folder, defines, arguments)
        check("max search depth too small" not in said and "out of memory" not in said,
              f"not all of it has been looked at\n{said}")
        if kind:
            check(re.search(KINDS[kind], said, re.M), f"Spin does not find what is wrong here\n{said}")
        else:
            check(re.search(r"errors: 0$", said, re.M), said)
    return try_it


cases = [(f"{'fails' if kind else 'ok'}: {' '.join(words.split())} {arguments}".rstrip(),
          case(kind, list(defines_of(words)), arguments))
         for _, kind, words, arguments in CASE.findall(model.read_text())]
check(any(name.startswith("ok") for name, _ in cases), f"no cases in {model}")
main(cases)
