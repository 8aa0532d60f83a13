"""One program of the control plane: started, watched until it is ready, stopped."""

import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

POLL = 0.05  # seconds between two looks at a condition
TAIL_LINES = 20

_LEASH = Path(__file__).with_name("leash.py")
_ENVIRONMENT = {"GOGC": "400"} | os.environ
"""The heaps are small and the cores few: Go programs had spent a fifth of their time collecting."""

_Started = TypeVar("_Started")


class StartError(Exception):
    """A part of the control plane did not come up; the message holds the tail of its log."""


class Process:
    """A running program in a process group of its own, its output in a log file.

    The kernel kills it when the thread that started it ends, so nothing outlives a killed test run.
    Start it from a thread that lives as long as it is needed.
    """

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.log = log
        leash: list[str | Path] = [sys.executable, "-IS", _LEASH, str(os.getpid())]
        with log.open("ab") as out:
            self._popen = subprocess.Popen(
                [*leash, *command],
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # a Ctrl-C in the terminal is ours to handle, in order
            )

    @property
    def name(self) -> str:
        """What messages call it: the name of its log."""
        return self.log.stem

    @property
    def pid(self) -> int:
        """Its process id, which is its process group too."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Returns as soon as `ready()` holds.

        Raises:
            StartError: the program ended, or `seconds` passed, before that.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                message = f"{self.name} ended with {self._popen.returncode}:\n{self.tail()}"
                raise StartError(message)
            if time.monotonic() > deadline:
                message = f"{self.name} is not ready after {seconds:g} s:\n{self.tail()}"
                raise StartError(message)
            time.sleep(POLL)

    def tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its whole process group, if it still runs."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait(self, seconds: float) -> None:
        """Waits for its end, and kills it after `seconds`."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._popen.wait()


def stop(processes: Iterable[Process], grace: float = 5) -> None:
    """Terminates `processes` together and kills those that still run after `grace` seconds."""
    asked = list(processes)
    for process in asked:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace
    for process in asked:
        process.wait(max(0.0, deadline - time.monotonic()))


class HeldPort:
    """A free TCP port of the loopback interface that nobody else is given until it is closed.

    Whoever is given its number may listen there, end, and listen again. On Linux a socket that is
    bound and does not listen keeps others from the port, but not those who name it (SO_REUSEADDR).

    Attributes:
        number: of the port.
    """

    def __init__(self) -> None:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        self.number: int = bound.getsockname()[1]
        self.close = weakref.finalize(self, os.close, bound.detach())
        if sys.platform != "linux":
            self.close()  # There it would keep everybody from it.


def start_on_free_port(start: Callable[[int], _Started]) -> _Started:
    """Calls `start` with a port that is free until it returns."""
    held = HeldPort()
    try:
        return start(held.number)
    finally:
        held.close()


def answers(
    port: int, path: str, *, context: ssl.SSLContext | None = None, token: str = ""
) -> bool:
    """Whether a GET of `path` on loopback `port` (TLS with a `context`) is answered with 200."""
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
        if context
        else http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
