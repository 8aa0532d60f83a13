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

POLL = 0.05  # seconds between two checks of a condition
TAIL_LINES = 20

_LEASH = Path(__file__).with_name("leash.py")
_ENVIRONMENT = {"GOGC": "400"} | os.environ
"""Heaps are small and cores few: Go programs had spent a fifth of their time in collections."""

_Started = TypeVar("_Started")


class StartError(Exception):
    """A program did not become ready; the message has the tail of its log."""


class Process:
    """A running program in its own process group, with its output in a log file.

    The kernel kills it when the thread that started it ends, so nothing outlives a killed test run.
    Start it from a thread that lives as long as the program is needed.
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
                start_new_session=True,  # only this process handles a Ctrl-C of the terminal
            )

    @property
    def name(self) -> str:
        """Its name in messages: the name of its log."""
        return self.log.stem

    @property
    def pid(self) -> int:
        """Its process id, and id of its process group."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Return as soon as `ready()` is true.

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
        """Return the last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its whole process group, if it still runs."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait(self, seconds: float) -> None:
        """Wait for its end, and kill it after `seconds`."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._popen.wait()


def stop(processes: Iterable[Process], grace: float = 5) -> None:
    """Terminate `processes` together and kill those that still run after `grace` seconds."""
    asked = list(processes)
    for process in asked:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace
    for process in asked:
        process.wait(max(0.0, deadline - time.monotonic()))


class HeldPort:
    """A free TCP port of the loopback interface, reserved until it is closed.

    A program with its number may listen there, end, and listen again. On Linux a socket that is
    bound and does not listen reserves the port, except for programs that name it (SO_REUSEADDR).

    Attributes:
        number: number of the port.
    """

    def __init__(self) -> None:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        self.number: int = bound.getsockname()[1]
        self.close = weakref.finalize(self, os.close, bound.detach())
        if sys.platform != "linux":
            self.close()  # On other systems it would keep the program from the port too.


def start_on_free_port(start: Callable[[int], _Started]) -> _Started:
    """Call `start` with a port that is reserved until it returns."""
    held = HeldPort()
    try:
        return start(held.number)
    finally:
        held.close()


def answers(
    port: int, path: str, *, context: ssl.SSLContext | None = None, token: str = ""
) -> bool:
    """Return whether a GET on a loopback port (TLS with a `context`) is answered with 200."""
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
