"""The commands of README and docs do what the pages say, on the demo's cluster.

Those that it does not take run on a real control plane (test_pages_cluster.py), and those of
docs/cli.md in tests/e2e/test_cli.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.programs import started
from tests.pages import Reader
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
"""What there is before the first command of a page."""
_CLEAN_UP = (
    "reserver release --all --yes",
    "kubectl delete pods,reservations,reservationquotas --all -n shop --grace-period=0 --force",
)


@pytest.fixture(scope="module")
def demo(tools: str) -> Iterator[str]:
    """The demo, played; what it says that one types in another terminal first."""
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
