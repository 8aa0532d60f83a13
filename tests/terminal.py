"""A command in a real terminal (a pty), as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hack.programs import end

_PATIENCE_S = 60.0
_LOOK_S = 0.1


class Terminal:
    """A running command, its output, and keys for it."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._written = b""
        self._read_to = 0

    @property
    def written(self) -> str:
        """All that it has written, control sequences included."""
        return self._written.decode(errors="replace")

    def press(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read_until(self, words: str, press: str = "") -> None:
        """Read on until it has written this; press keys in the meantime."""
        deadline = time.monotonic() + _PATIENCE_S
        while (found := self._written.find(words.encode(), self._read_to)) < 0:
            assert time.monotonic() < deadline, f"no {words!r} in:\n{self.written}"
            if press:
                self.press(press)
            assert self._read(), f"it ended without {words!r}:\n{self.written}"
        self._read_to = found + len(words.encode())

    def end(self) -> int:
        """Read until it ends; return its exit status."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._read():
            assert time.monotonic() < deadline, f"it has not ended:\n{self.written}"
        return self.process.wait(_PATIENCE_S)

    def _read(self) -> bool:
        """Read what there is, or wait a little; return whether there may be more."""
        if not select.select([self._descriptor], [], [], _LOOK_S)[0]:
            return True
        try:
            some = os.read(self._descriptor, 65536)
        except OSError:  # So Linux tells that nobody has the other end any more.
            return False
        self._written += some
        return bool(some)


@contextmanager
def terminal(
    *command: str, width: int = 80, height: int = 24, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run a command in a terminal; it is ended with the block."""
    own, its = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
    for name in ("COLUMNS", "LINES"):
        variables.pop(name, None)
    process = subprocess.Popen(
        ["setsid", "--ctty", *command], stdin=its, stdout=its, stderr=its, env=variables
    )
    os.close(its)
    opened = Terminal(process, own)
    opened.resize(width, height)
    try:
        yield opened
    finally:
        end(process)
        os.close(own)
