"""Reserver that moves pods, with the shipped rights; the programs that a user has installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import AppsV1Api

from hack.bed.bed import scheduling
from hack.bed.proxy import Proxy
from hack.chaos.moving.deadly import Deadly
from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.go_tool import GRPCURL, HELM
from hack.karpenter.running import source
from hack.reserver_process import ReserverProcess
from tests.e2e.apart.crowding import Shop
from tests.e2e.apart.yard import Yard, opened
from tests.e2e.cluster import Corner
from tests.e2e.conftest import MOVES, ROOT, account, install_crd
from tests.rights.audit import AUTOSCALERS, BUFFERS, MAINTENANCE, PROVISIONING, SURGE

SCHEDULER = "with-moves"
REQUESTS = ROOT / "tests/e2e/crd-provisioning.yaml"
"""The CRD of ProvisioningRequests, which others install."""

CAPACITY_BUFFERS = "capacitybuffers.autoscaling.x-k8s.io"
ACCOUNT = "mover"
"""The end of its service account's name; its rights without moves are tested elsewhere."""


@pytest.fixture(scope="session")
def capacity_buffers(api: Any) -> str:
    """The CRD of CapacityBuffers, which an autoscaler installs."""
    crd = source() / "kwok/charts/crds/autoscaling.x-k8s.io_capacitybuffers.yaml"
    install_crd(api.api_client, CAPACITY_BUFFERS, crd)
    return CAPACITY_BUFFERS


@pytest.fixture(scope="session")
def mover_kubeconfig(
    kubeconfig: Path,
    api: Any,
    reserver_kubeconfig: Path,
    capacity_buffers: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A service account with the rights of Reserver and of these components, and no others."""
    assert reserver_kubeconfig.exists()  # Its roles are there.
    assert capacity_buffers
    path = tmp_path_factory.mktemp("mover") / "kubeconfig"
    components = (MOVES / "rbac.yaml", SURGE, AUTOSCALERS, BUFFERS, MAINTENANCE, PROVISIONING)
    install_crd(api.api_client, "provisioningrequests.autoscaling.x-k8s.io", REQUESTS)
    return account(api, kubeconfig, ACCOUNT, path, *components)


@pytest.fixture(scope="session")
def mishaps() -> Deadly:
    """The faults of writes of moves."""
    return Deadly()


@pytest.fixture(scope="module")
def mover(
    control_plane: ControlPlane,
    mover_kubeconfig: Path,
    mishaps: Deadly,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReserverProcess]:
    """Reserver with all that these components are for, and a kube-scheduler that asks it.

    No other runs beside it, nor it beside the others in other files: what one acknowledges, another
    may not have read yet.
    """
    folder = tmp_path_factory.mktemp("mover")
    with ReserverProcess.all_down(), Proxy(mover_kubeconfig, mishaps) as proxy:
        proxy.write_kubeconfig(folder / "kubeconfig")
        with (
            ReserverProcess(
                folder / "kubeconfig",
                folder / "log",
                "--pod-moves",
                "--surge-moves",
                "--maintenance-windows",
                "--keep-held-nodes",
                "--provisioning-requests",
                "--capacity-buffers",
                "--grpc-address=127.0.0.1:0",
            ) as process,
            scheduling(control_plane, process.port, SCHEDULER),
        ):
            yield process


@pytest.fixture
def yard(kubeconfig: Path, api: Any, mover: ReserverProcess) -> Iterator[Yard]:
    assert mover.is_ready()
    with opened(kubeconfig, SCHEDULER, api, mover) as made:
        yield made


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PATH of a user who has reserver, kubectl and grpcurl."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "grpcurl").symlink_to(GRPCURL.build())
    return f"{Path(sys.executable).parent}:{bin_dir()}:{folder}:{os.environ['PATH']}"


@pytest.fixture(scope="session")
def helm() -> Path:
    """The path of Helm, which is built once."""
    return HELM.build()


@pytest.fixture
def shop(corner: Corner, rebalance_kubeconfig: Path, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(corner, rebalance_kubeconfig, tmp_path)
    yield made
    apps: Any = AppsV1Api(corner.api.api_client)
    apps.delete_collection_namespaced_deployment(corner.name)
