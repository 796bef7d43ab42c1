"""Emulated boards of the hardware barrier for jobs of the tests, and what jobs say of them.

Not a test itself: the run_*.py here use it."""

import os
import re
import subprocess
from contextlib import contextmanager

from job import Skip, check


class Board:
    """An emulated board that runs, and the way to it."""

    def __init__(self, build, kind, nodes, place, ports):
        self.place = place
        self.spec = (f"ppdev:{place}/parport$node" if ports else f"emu:{place},node=$node") + (
            f",nodes={nodes}" if kind == "single" else ",channels=4")
        emulator = build / "hw" / "emulator" / f"collx-hwemu-{kind}"
        if not emulator.exists():
            raise Skip("no emulator: it needs verilator, Debian's package of that name")
        if ports and not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Skip("no right to /dev/fuse")
        if ports:
            place.mkdir()
        self.process = subprocess.Popen([emulator, f"--nodes={nodes}", place] + ["--ports"] * ports,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            why = self.process.communicate()[1]
            if ports:
                raise Skip(f"FUSE cannot mount here, or was not there to build the emulator: {why}")
            check(False, f"the emulator does not start: {why}")

    def stop(self):
        self.process.terminate()
        self.process.communicate()


@contextmanager
def running(build, kind, nodes, folder, ports=False):
    board = Board(build, kind, nodes, folder / "wires", ports)
    try:
        yield board
    finally:
        board.stop()


def world(err):
    """Where MPI_COMM_WORLD's leaders meet: the number of the channel, or None."""
    found = re.search(r"^collx: hwbarrier of barrier on MPI_COMM_WORLD: leaders of \d+ nodes meet at "
                      r"channel (\d+) of", err, re.M)
    return int(found[1]) if found else None
