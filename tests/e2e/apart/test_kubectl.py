"""kubectl on the embedded cluster, as the demo, README and docs/reservations.md have it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from hack import dist
from hack.controlplane.build import bin_dir
from reserver_demo.cluster import EmbeddedCluster
from tests import krew

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[3]
Kubectl = Callable[..., Awaitable[str]]


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    """The kubectl that belongs to the control plane, on an embedded cluster."""
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        variables = os.environ | {
            "PATH": f"{bin_dir()}:{os.environ['PATH']}",
            "KUBECONFIG": str(tmp_path / "kubeconfig"),
            "EDITOR": "sed -i s/1h/5h/",
        }

        async def run(line: str, first: str = "") -> str:
            done = await asyncio.to_thread(
                subprocess.run,
                ["bash", "-c", f"{first} kubectl {line} 2>&1"],
                cwd=ROOT,
                env=variables,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            return done.stdout.strip()

        yield run


async def test_the_plug_in_that_krew_installs_runs_as_a_subcommand(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    """Krew links the program of the archive into a folder of PATH; `reserver` is installed."""
    wheel = tmp_path / "kube_reserver-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"not needed where reserver is installed")
    dist.write_plug_in(tmp_path, dist.version(), wheel)
    program = krew.install(tmp_path, tmp_path / "store", "linux")
    folder = tmp_path / "krew-bin"
    folder.mkdir()
    (folder / "kubectl-reserver").symlink_to(program)
    path = f"PATH={folder}:$(dirname {sys.executable}):$PATH"
    assert str(folder / "kubectl-reserver") in await kubectl("plugin list", path)
    assert await kubectl("reserver --version", path) == f"reserver {dist.version()}"
    assert "there is no" not in await kubectl("reserver validate -f examples", path)


async def test_what_kubectl_encodes_in_protobuf_is_created(kubectl: Kubectl) -> None:
    assert await kubectl("create namespace shop") == "namespace/shop created"
    line = "create configmap seats -n shop --from-literal a=b"
    assert await kubectl(line) == "configmap/seats created"
    assert await kubectl("get configmap seats -n shop -o jsonpath={.data.a}") == "b"


async def test_reservations_are_applied_edited_compared_and_explained(kubectl: Kubectl) -> None:
    seat = "reservation.reserver.io/web-0-seat"
    file = "-f examples/reservation.yaml"
    assert await kubectl(f"apply {file}") == f"{seat} created"
    assert await kubectl(f"apply {file}") == f"{seat} unchanged"
    assert await kubectl("edit rsv web-0-seat") == f"{seat} edited"
    assert "-  ttl: 5h\n+  ttl: 1h" in await kubectl(f"diff {file}")
    assert await kubectl(f"apply {file}") == f"{seat} configured"
    assert "The pods that may claim it." in await kubectl("explain rsv.spec.owners")
    invalid = 'patch rsv web-0-seat --type merge -p \'{"spec": {"slots": 0}}\''
    assert "spec.slots in body should be greater than or equal to 1" in await kubectl(invalid)


async def test_reservations_are_applied_server_side(kubectl: Kubectl) -> None:
    apply = "apply --server-side -f examples/reservation.yaml"
    assert "serverside-applied" in await kubectl(apply)
    assert "edited" in await kubectl("edit rsv web-0-seat")
    assert 'conflict with "kubectl-edit"' in await kubectl(apply)
    assert "serverside-applied" in await kubectl(f"{apply} --force-conflicts")
    assert await kubectl("get rsv web-0-seat -o jsonpath={.spec.ttl}") == "1h"
