#!/usr/bin/python3
"""usage: scripts_test.py SOURCE

The scripts know where a checkout cannot be measured from."""

import shutil
import sys
from pathlib import Path

from job import check, main, run

scripts = Path(sys.argv[1]) / "scripts"


def said_in(checkout, script):
    """What a script says there.  With no program but one none gets as far as to build or to install."""
    programs = checkout.parent / "bin"
    if not programs.exists():
        programs.mkdir()
        (programs / "dirname").symlink_to(shutil.which("dirname"))
    shutil.copytree(scripts, checkout / "scripts", dirs_exist_ok=True)
    result = run([checkout / "scripts" / script], env={"PATH": str(programs)})
    check(result.code != 0, f"{script} goes well without any program:\n{result.out}")
    return result.err


def where_no_library_can_be_preloaded_nothing_is_measured(folder):
    for name in ("with blank", "with:colon", "good"):
        for script in ("bench", "demo", "hwbarrier", "test", "build"):
            said = said_in(folder / name, script)
            refused = f"move the checkout from '{folder / name}'" in said
            check(refused == (name != "good" and script != "build"), f"{name}, {script}: {said}")


main([(function.__name__.replace("_", " "), function)
      for function in (where_no_library_can_be_preloaded_nothing_is_measured,)])
