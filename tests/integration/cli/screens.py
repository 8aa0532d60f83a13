"""A terminal of a number of columns, or a pipe, and commands that run in it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from hack.programs import end
from tests.integration.cli.child import END

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_MARK = re.compile(f"{END}(\\d+){END}")
_ROWS = 24


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of a command.

    Attributes:
        status: the exit status.
        raw: the output, including escape sequences.
    """

    status: int
    raw: str

    @property
    def text(self) -> str:
        """The visible text."""
        return _ESCAPES.sub("", self.raw)

    @property
    def words(self) -> str:
        """The same without line breaks, wherever the terminal's width has put them."""
        return " ".join(self.text.split())


class Screen:
    """A process with a terminal of so many columns; without any, with pipes.

    Args:
        columns: how wide the terminal is; 0 for pipes.
        address: of Reserver.
        more: variables of its environment.
    """

    def __init__(self, columns: int, address: str, **more: str) -> None:
        self.columns = columns
        orders, self._orders = os.pipe()
        environment = {**os.environ, "RESERVER_ADDRESS": address, "TERM": "xterm-256color"}
        environment |= more
        environment.pop("COLUMNS", None)
        environment.pop("NO_COLOR", None)
        command = [sys.executable, "-m", "tests.integration.cli.child", str(orders)]
        if columns:
            self._master, slave = pty.openpty()
            size = struct.pack("HHHH", _ROWS, columns, 0, 0)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        else:
            self._master, slave = os.pipe()
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=[orders],
            start_new_session=True,
            stdin=slave if columns else subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        os.close(orders)
        self._seen = ""
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._orders)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        end(self._process)
        self._reader.join(30)
        os.close(self._master)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # What a terminal says once nobody has it any more.
                data = b""
            with self._more:
                self._seen += data.decode(errors="replace")
                self._more.notify_all()
            if not data:
                return

    def run(self, *arguments: str, typed: str = "") -> Shown:
        """Run a command, and type something while it runs."""
        with self._more:
            self._seen = ""
        os.write(self._orders, f"{json.dumps(arguments)}\n".encode())
        if typed:
            os.write(self._master, typed.encode())
        with self._more:
            ended = self._more.wait_for(lambda: len(_MARK.findall(self._seen)) > 1, timeout=60)
            assert ended, self._seen
            return Shown(int(_MARK.findall(self._seen)[0]), _MARK.sub("", self._seen))
