"""The commands of README and docs have the effects on their pages, on the demo's cluster.

The others run on a real control plane (test_pages_cluster.py); tests/e2e/test_cli.py has
docs/cli.md.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from hack.programs import started
from hack.reserver_process import wait_for
from tests.e2e.apart.rolling import pipe
from tests.pages import ROOT, Reader, blocks
from tests.unit.test_pages import ON_THE_DEMO, REAL, TASKS

pytestmark = pytest.mark.controlplane  # for its kubectl

HELD = """\
apiVersion: reserver.io/v1alpha1
kind: Reservation
metadata: {{name: {name}, namespace: shop}}
spec:
  owners: [{{selector: {{matchLabels: {{app: web}}}}}}]
  node: {node}
  resources: {{cpu: {cpu}{more}}}
  slots: {slots}
  ttl: 1h
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop}}
spec:
  containers: [{{name: main, image: none, resources: {{requests: {{cpu: 100m}}}}}}]
"""
FILES = {
    "held.yaml": "".join(
        HELD.format(name=f"held-{node}", node=node, cpu=20, more=", memory: 40Gi", slots=1)
        for node in ("worker-1", "worker-2", "worker-3")
    )
    + HELD.format(name="web", node="worker-3", cpu=2, more="", slots=4),
    "web-0.yaml": POD.format(name="web-0"),
    "stranger.yaml": POD.format(name="stranger"),
}
"""Three that use 60 CPUs and 120 GiB of a quota, and one more; an owner; another pod."""
SET_UPS = {
    "docs/quotas.md": ("kubectl apply -f examples/quota.yaml", "kubectl create -f held.yaml"),
    "docs/reservations.md": (
        "reserver create web-move-1 --node worker-3 --owner pod/web-0 -n shop --cpu 100m",
        "kubectl create -f web-0.yaml",
    ),
    "PACKAGE.md": (
        "kubectl create -f stranger.yaml",
        "mkdir reservations && cp examples/reservation.yaml reservations",
    ),
}
"""Commands to run before the first command of a page."""
_CLEAN_UP = (
    "reserver release --all --yes",
    "kubectl delete pods,reservations,reservationquotas --all -n shop --grace-period=0 --force",
)


@pytest.fixture(scope="module")
def demo(tools: str) -> Iterator[str]:
    """The demo after its scenario; the line that it prints for another terminal."""
    command = [str(Path(sys.executable).with_name("reserver")), "demo"]
    environment = {**os.environ, "PATH": tools}
    pipe = subprocess.PIPE
    with started(*command, grace_s=30, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout
        said = ""
        while "reserver demo --tour" not in said:  # the last line of its pages
            said += (line := process.stdout.readline())
            assert line, said
        yield re.findall(r"^  (\. \S+/env)$", said, re.MULTILINE)[0]


@pytest.mark.parametrize("page", [*TASKS, *ON_THE_DEMO])
def test_the_page_shows_what_happens(demo: str, tools: str, page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path, {"PATH": tools}, demo)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for line in SET_UPS.get(page, ()):
        reader.has(line)
    try:
        reader.follow(page, but=() if page in TASKS else REAL)
    finally:
        for line in _CLEAN_UP:
            reader.has(line)


class Wire:
    """A forwarder to the gRPC API whose connections a test can break, as a context manager."""

    def __init__(self, address: str) -> None:
        self._target = address.rpartition(":")[0], int(address.rpartition(":")[2])
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._door.close()
        self.breaks()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._door.getsockname()[1]}"

    def breaks(self) -> int:
        """Close all connections; return how many there were."""
        broken, self._open = self._open, []
        for each in broken:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(broken)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                self._open.append(near)
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(self._target) as far:
            back = threading.Thread(target=pipe, args=(far, near), daemon=True)
            back.start()
            pipe(near, far)
            back.join()


@pytest.mark.parametrize("language", ["python", "go"])
def test_a_manager_survives(demo: str, tools: str, language: str, tmp_path: Path) -> None:
    """An edit of its reservation, its own death, and a connection that breaks below its watch."""
    reader = Reader(tmp_path, {"PATH": tools}, demo)
    launcher, worker = (ROOT / "examples/manager-go/jobs.yaml").read_text().split("---\n")
    (tmp_path / "jobs.yaml").write_text(launcher)
    (tmp_path / "worker.yaml").write_text(worker)
    name, program = next(each for each in blocks("docs/manager.md") if isinstance(each, tuple))
    for old, new in (("minutes=5", "seconds=3"), ("examples/manager-go/", ""), ("(4)", "(6)")):
        assert old in program
        program = program.replace(old, new)
    (tmp_path / name).write_text(program)
    run = f"python -u {name} survives-python"
    if language == "go":
        reader.has(f"cd examples/manager-go && go generate && go build -o {tmp_path}/manager")
        run = "./manager -run survives-go -lease 3s -prepare 6s -jobs jobs.yaml"
    address = reader.run("echo $RESERVER_ADDRESS")[1].strip()
    with Wire(address) as wire:
        command = f"{demo}; export RESERVER_ADDRESS={wire.address}; exec {run} >>said 2>&1"
        shell = ("bash", "-c", command)
        options: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "PATH": tools}}
        said = tmp_path / "said"
        with started(*shell, **options):
            wait_for(lambda: "in force" in _text(said), "the room is in force")
        with started(*shell, **options) as process:  # The first has been killed.
            wait_for(lambda: _text(said).count("in force") == 2, "it has its room again")
            reader.has("reserver extend shop/launcher --ttl 1h")
            wait_for(lambda: "launcher was edited" in _text(said), "it sees the edit")
            wait_for(lambda: "launcher has landed" in _text(said), "the launcher has landed")
            assert wire.breaks()
            reader.has("kubectl apply -f worker.yaml")
            with suppress(TimeoutError):
                wait_for(lambda: process.poll() is not None, "it ends")
            assert process.poll() == 0, _text(said) + reader.run(_SEEN)[1]
    assert "worker has landed" in _text(said)
    reader.has("kubectl delete -f jobs.yaml -f worker.yaml")
    assert "launcher" not in reader.run("reserver get -A")[1]


_SEEN = "kubectl get pods,jobs -n shop -o yaml; kubectl get events -A; reserver get -A -o yaml"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
