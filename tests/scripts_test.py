#!/usr/bin/python3
"""usage: scripts_test.py SOURCE

The scripts know where a checkout cannot be measured from, and what a release of Debian does not have."""

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


def what_this_debian_has_not_is_left_out(folder):
    """Where nothing is installed, and all but one package could be."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "dirname", "env", "grep", "sed"):
        (programs / name).symlink_to(shutil.which(name))
    asked = folder / "asked"
    for name, does in {"dpkg-query": "exit 1", "sudo": 'exec "$@"',
                       "apt-cache": 'for name; do :; done; [ "$name" != scalapack-mpi-test ]',
                       "apt-get": f'echo "$@" >>{asked}'}.items():
        (programs / name).write_text(f"#!{shutil.which('bash')}\n{does}\n")
        (programs / name).chmod(0o755)
    shutil.copytree(scripts, folder / "scripts")
    result = run([folder / "scripts" / "build", "-y"], env={"PATH": str(programs)})
    check("no scalapack-mpi-test: what needs that is left out" in result.out, f"{result.out}{result.err}")
    check("meson" in result.err and result.code, f"did not go on, to where there is no meson: {result.err}")
    wanted = [line.split("#")[0].strip() for line in (scripts / "packages").read_text().splitlines()]
    wanted = [name for name in wanted if name and name != "scalapack-mpi-test"]
    update, install = asked.read_text().splitlines()
    check(update == "update" and install.startswith("install ") and install.split()[-len(wanted):] == wanted,
          f"{update}; {install}")


main([(function.__name__.replace("_", " "), function)
      for function in (where_no_library_can_be_preloaded_nothing_is_measured,
                       what_this_debian_has_not_is_left_out)])
