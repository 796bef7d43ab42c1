"""Cgroups with limits, for jobs of the tests.

Not a test itself: the run_*.py here use it."""

import contextlib
import os
import time
from pathlib import Path

from job import Skip, run


def places(controller, version1, version2):
    """Where cgroups can be made that may have a limit, and what to write into which file there."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        point, kind = Path(mount.split()[4]), kind.split()
        if kind[0] == "cgroup" and controller in kind[-1].split(","):
            yield point, version1
        elif kind[0] == "cgroup2":
            yield point, version2


def remove(folder):
    for _ in range(100):
        try:
            folder.rmdir()
            return
        except OSError:  # who has just ended may still be in it
            time.sleep(0.05)


def make(*limit):
    why = "no cgroups are mounted that could have a limit"
    for point, files in places(*limit):
        folder = point / f"collx-test-{os.getpid()}"
        words = ["sh", "-c", f'echo $$ >"{folder}/cgroup.procs" && exec "$@"', "sh"]
        try:
            folder.mkdir()
        except OSError as error:
            why = f"no cgroup can be made: {error}"
            continue
        try:
            for name, value in files.items():
                with open(folder / name, "r+") as file:  # without the controller there is none
                    file.write(str(value))
            if run([*words, "true"]).code == 0:
                return folder, words
            why = f"{folder} cannot be entered"
        except OSError as error:
            why = f"no cgroup can have a limit: {error}"
        remove(folder)
    raise Skip(why)


@contextlib.contextmanager
def cgroup(controller, version1, version2):
    """A cgroup in whose files stands what is given for its version, and words that enter it."""
    folder, words = make(controller, version1, version2)
    try:
        yield words
    finally:
        remove(folder)
