"""A wall clock that can be set wrong: for one process, by another.

Reserver reads the wall clock in one place, as `time.time`. The code from `runs_on` replaces that
before reserver is imported; nothing in the product knows of it.
"""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path

_OFFSET = struct.Struct("d")


class WallClock:
    """The error of a process's clock.

    Args:
        path: a file that both processes have open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set_wrong(0.0)

    def set_wrong(self, seconds: float) -> None:
        """Sets the clock so many seconds ahead; negative ones: behind."""
        if not self._path.exists():
            self._path.write_bytes(_OFFSET.pack(0.0))
        with self._path.open("r+b") as file:
            file.write(_OFFSET.pack(seconds))

    @property
    def code(self) -> str:
        """Python code that has a process run on this clock."""
        return f"from hack.bed.wall_clock import run_on\nrun_on({str(self._path)!r})"


def run_on(path: str) -> None:
    """Has this process run on the clock of a file."""
    with Path(path).open("r+b") as file:
        shared = mmap.mmap(file.fileno(), _OFFSET.size)
    right = time.time

    def wrong() -> float:
        offset: float = _OFFSET.unpack_from(shared)[0]
        return right() + offset

    time.time = wrong
