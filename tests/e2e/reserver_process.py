"""`reserver serve` as a process of its own, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

_DEADLINE_S = 90.0
"""After an API server restart its clients come back at their own pace: half a minute and more."""


class ReserverProcess:
    """`reserver serve` on a free port, as a context manager.

    Attributes:
        url: base URL of the extender.
        log: file that its log is written to.
    """

    def __init__(self, kubeconfig: Path, log: Path, *flags: str, wait_ready: bool = True) -> None:
        self._command = [sys.executable, "-m", "reserver", "serve", "--kubeconfig", str(kubeconfig)]
        self._command += ["--log-level", "debug", *flags]
        self._port = "0"
        self._wait_ready = wait_ready
        self.log = log
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def prepare(self, code: str) -> None:
        """Have Python code run before reserver, to measure it with something changed."""
        code += "\nimport sys\nfrom reserver.cli.main import main\nsys.exit(main())"
        self._command[1:3] = ["-c", code]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def start(self) -> None:
        """Start it, on the port that it had before if it had one."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command, "--http-port", self._port],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("extender"):
                self.url = line.split()[1]
                self._port = str(self.port)
                break
        else:
            raise AssertionError(f"reserver did not start: {self.log.read_text()[-2000:]}")
        if self._wait_ready:
            self.wait_ready()

    def stop(self) -> tuple[int, str]:
        """End it as Kubernetes does; return its exit status and what it printed last."""
        self.process.terminate()
        output, _ = self.process.communicate(timeout=_DEADLINE_S)
        return self.process.returncode, output

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.communicate()

    def wait_ready(self) -> None:
        wait_for(lambda: self.get("/readyz")[0] == 200, "reserver is ready")

    def get(self, path: str) -> tuple[int, str]:
        return self._request(urllib.request.Request(self.url + path))

    def post(self, path: str, body: bytes) -> tuple[int, Any]:
        status, text = self._request(urllib.request.Request(self.url + path, data=body))
        return status, json.loads(text)

    def metric(self, name: str) -> float:
        """Return the value of a metric, its labels written as Prometheus does; 0 if absent."""
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(f"{name} "):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    @staticmethod
    def _request(request: urllib.request.Request) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=_DEADLINE_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def wait_for(condition: Callable[[], Any], what: str, seconds: float = _DEADLINE_S) -> Any:
    """Return what the condition gives once it is true.

    Raises:
        AssertionError: it has not come true in time.
    """
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        pause.wait(0.02)
    return result
