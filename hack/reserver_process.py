"""`reserver serve` as a process of its own, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from hack.controlplane.process import HeldPort
from hack.programs import end

_DEADLINE_S = 90.0
"""After an API server restart its clients come back at their own pace: half a minute and more."""

_LATER, _SOONEST_S, _LATEST_S = 0.1, 0.005, 0.1
"""The next look at a condition comes a tenth of the time later that has passed, within bounds."""

CEILING = "--tenant-ceiling-cluster"
"""None is given unless a caller asks for one: most tests hold the whole of few small nodes."""

T = TypeVar("T")


class ReserverProcess:
    """`reserver serve` on a port of its own, as a context manager.

    Attributes:
        running: the open instances of this Python process.
        url: base URL of the extender.
        health_url: base URL of health and metrics; empty if the extender's port serves them.
        grpc_address: address of its gRPC API; empty without one.
        webhook_url: base URL of its webhooks; empty without them.
        log: its log file.
    """

    running: ClassVar[list[ReserverProcess]] = []

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *flags: str,
        wait_ready: bool = True,
        logs_addresses: bool = True,
        program: Sequence[str] = (sys.executable, "-m", "reserver"),
        as_shipped: bool = False,
    ) -> None:
        """Prepare one.

        `logs_addresses` is False for programs of before 0.2, which print them. `as_shipped` leaves
        the ceiling of tenants at its default.
        """
        self._command = [*program, "serve", "--kubeconfig", str(kubeconfig)]
        self._command += ["--log-level", "debug", *flags]
        if (
            logs_addresses
            and not as_shipped
            and not any(flag.startswith(CEILING) for flag in flags)
        ):
            self._command.append(f"{CEILING}=none")
        self._held = HeldPort()
        self._wait_ready = wait_ready
        self._logs_addresses = logs_addresses
        self.log = log
        self.url = f"http://127.0.0.1:{self._held.number}"
        self.health_url = ""
        self.grpc_address = ""
        self.webhook_url = ""

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        self.running.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.running.remove(self)
        self.stop()

    def prepare(self, code: str) -> None:
        """Have Python code run before reserver, to measure it with something changed."""
        code += "\nimport sys\nfrom reserver.cli.entry import main\nsys.exit(main())"
        self._command[1:3] = ["-c", code]

    def stand_in_for(self, other: ReserverProcess) -> None:
        """Have it serve on the port of another one, which is down as long as this one runs."""
        self._held, self.url = other._held, other.url

    @property
    def port(self) -> int:
        """The extender's port, on loopback."""
        return int(self.url.rsplit(":", 1)[1])

    def start(self) -> None:
        """Start it, on the port that it had before.

        Raises:
            RuntimeError: it ended before it listened.
        """
        with self.log.open("ab") as log:
            before = log.tell()
            self.process = subprocess.Popen(
                [*self._command, f"--http-port={self._held.number}"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            self._await_start(before)
        except BaseException:
            end(self.process)
            raise

    def _await_start(self, before: int) -> None:
        """Return once it has logged its addresses after `before`, a length of the log."""

        def said() -> dict[str, Any] | None:
            has_ended = self.process.poll() is not None
            with self.log.open("rb") as log:
                log.seek(before)
                lines = log.readlines()
            for line in lines:
                if line.startswith(b"{") and line.endswith(b"\n"):
                    found: dict[str, Any] = json.loads(line)
                    if found["event"] == "serving":
                        return found
            if has_ended:
                raise RuntimeError(f"reserver did not start: {self.log.read_text()[-2000:]}")
            return None

        served = (
            wait_for(said, "reserver serves") if self._logs_addresses else {"extender": self.url}
        )
        self.url = served["extender"]
        self.health_url = served.get("health", "")
        self.grpc_address = served.get("grpc", "")
        self.webhook_url = served.get("webhooks", "")
        if self._wait_ready:
            self.wait_ready()

    def stop(self) -> tuple[int, str]:
        """End it as Kubernetes does; return its exit status and its output."""
        self.process.terminate()
        try:
            output, _ = self.process.communicate(timeout=_DEADLINE_S)
        finally:
            end(self.process)
        return self.process.returncode, output

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.communicate()

    def restart(self) -> None:
        """Crash it and start it again."""
        with self.down():
            pass

    @contextmanager
    def down(self) -> Iterator[None]:
        """Crash it, and start it again at the end, whatever happens meanwhile."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    @classmethod
    @contextmanager
    def all_down(cls) -> Iterator[None]:
        """Crash all instances of this Python process; another one would write for a crashed one."""
        with ExitStack() as stack:
            for each in tuple(cls.running):
                stack.enter_context(each.down())
            yield

    def wait_ended(self) -> int:
        """Return its exit status once it has ended by itself."""
        self.process.communicate(timeout=_DEADLINE_S)
        return self.process.returncode

    def log_tail(self, lines: int) -> str:
        """Return the last lines of its log, without those for debugging."""
        said = self.log.read_text().splitlines()
        return "\n".join([line for line in said if '"level": "debug"' not in line][-lines:])

    def is_ready(self) -> bool:
        """Whether it says that it answers calls; False too if it says nothing."""
        try:
            return self.get("/readyz")[0] == HTTPStatus.OK
        except OSError:
            return False

    def wait_ready(self) -> None:
        """Return once it is ready."""
        wait_for(self.is_ready, "reserver is ready")

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a GET."""
        return self._request(path)

    def post(self, path: str, body: bytes) -> tuple[int, Any]:
        """Return status and the JSON of the answer to a POST."""
        status, text = self._request(path, body)
        return status, json.loads(text)

    def metric(self, name: str) -> float:
        """Return the value of a metric, its labels written as Prometheus does; 0 if absent."""
        status, text = self.get("/metrics")
        return metrics(text).get(name, 0.0) if status == HTTPStatus.OK else 0.0

    def _request(self, path: str, body: bytes | None = None) -> tuple[int, str]:
        headers = {"Content-Type": "application/json"} if body else {}
        request = urllib.request.Request(self.url + path, body, headers)  # noqa: S310 - our own URL
        try:
            with urllib.request.urlopen(request, timeout=_DEADLINE_S) as response:  # noqa: S310
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def metrics(exposition: str) -> dict[str, float]:
    """Return the values of metrics, by name and labels as Prometheus writes them."""
    lines = (line for line in exposition.splitlines() if line[:1] != "#")
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def wait_for(condition: Callable[[], T | None], what: str, seconds: float = _DEADLINE_S) -> T:
    """Return the value of a condition once the value is true.

    Checks become less frequent, because they take CPU from the programs that the caller waits for.

    Raises:
        TimeoutError: the condition was not true in time.
    """
    began = time.monotonic()
    pause = threading.Event()
    while not (result := condition()):
        waited = time.monotonic() - began
        if waited > seconds:
            raise TimeoutError(f"not within {seconds} s: {what}")
        pause.wait(min(max(waited * _LATER, _SOONEST_S), _LATEST_S))
    return result
