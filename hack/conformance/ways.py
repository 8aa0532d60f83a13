"""The ways in which the specs are run: kube-scheduler alone, with Reserver, and with room held."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.bed.bed import scheduling
from hack.bed.install import install
from hack.conformance.specs import SuiteFault, read
from hack.conformance.suite import Suite
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.nodes import create_nodes
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.programs import started
from hack.reserver_process import ReserverProcess, wait_for

KUBELET = Path(__file__).with_name("kubelet.yaml")
NODES = 4
HELD = {"cpu": "500m", "memory": "1Gi"}
"""Resources held on each node: less than the specs leave free on a filled node."""

_DEFAULT = "default-scheduler"
_BOUND = 'reserver_extender_calls_total{outcome="bound",verb="bind"}'
_NAMESPACE = "reserver-system"
_SYSTEM = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
"""requiredPerNodePods in test/e2e/framework/node/wait.go."""

_ATTEMPTS = 2
"""Of a spec that fails, as in upstream's own jobs."""

_LONGEST_S = 3600


@dataclass(frozen=True)
class Way:
    """A way of scheduling.

    Attributes:
        name: its name in the table.
        has_reserver: kube-scheduler calls Reserver.
        has_holds: and each node has a reservation in force, for pods that never come.
    """

    name: str
    has_reserver: bool = False
    has_holds: bool = False


ALONE = Way("kube-scheduler alone")
WAYS = (
    ALONE,
    Way("with Reserver", has_reserver=True),
    Way("with Reserver, room held on each node", has_reserver=True, has_holds=True),
)


def run(program: Path, suite: Suite, way: Way, folder: Path) -> dict[str, str]:
    """Run a suite on a control plane of its own; return the outcomes.

    Args:
        program: upstream's tests.
        suite: which of them.
        way: how pods are scheduled.
        folder: for logs and the report.

    Raises:
        SuiteFault: the specs were not run as the way says.
    """
    with ControlPlane(gates=suite.gates, apis=suite.apis, kubelet=KUBELET) as plane:
        nodes = create_nodes(plane.kubeconfig, NODES, extended={"ephemeral-storage": "100Gi"})
        _create(plane.kubeconfig, folder / "system.json", map(_system_pod, nodes))
        with _scheduled(plane, way, nodes, folder):
            return _run(program, suite, plane.kubeconfig, folder)


@contextmanager
def _scheduled(plane: ControlPlane, way: Way, nodes: Sequence[str], folder: Path) -> Iterator[None]:
    if not way.has_reserver:
        config = plane.folder / "scheduler.yaml"
        config.write_text(render_scheduler_config(PLAIN_SCHEDULER, kubeconfig=plane.kubeconfig))
        plane.start_scheduler(config)
        yield
        return
    account = install(plane.kubeconfig, plane.folder)
    with (
        ReserverProcess(account, folder / "reserver.log") as reserver,
        scheduling(plane, reserver.port, _DEFAULT),
    ):
        if way.has_holds:
            _create(plane.kubeconfig, folder / "reservations.json", map(_reservation, nodes))
            _await_backed(plane.kubeconfig)
        yield
        if not reserver.metric(_BOUND):
            raise SuiteFault("Reserver has bound no pod")
        if way.has_holds:
            _await_backed(plane.kubeconfig)


def _create(kubeconfig: Path, manifest: Path, items: Iterable[Mapping[str, Any]]) -> None:
    """Create objects, repeatedly: a new namespace has no service account at first.

    Raises:
        SuiteFault: no attempt succeeds within a minute; the message has the API server's.
    """
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items]}))
    said = ""

    def is_done() -> bool:
        nonlocal said
        try:
            kubectl(kubeconfig, "apply", "-f", str(manifest))
        except subprocess.CalledProcessError as error:
            said = error.stderr
            return False
        return True

    try:
        wait_for(is_done, f"{manifest.name} is applied", 60)
    except TimeoutError as error:
        raise SuiteFault(f"{error}: {said}") from error


def _system_pod(node: str) -> dict[str, Any]:
    """Return a pod of the names that specs await on each node, each of them for a minute."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "-".join((*_SYSTEM, node)), "namespace": "kube-system"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "none", "image": "none"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _reservation(node: str) -> dict[str, Any]:
    return {
        "apiVersion": "reserver.io/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": f"held-on-{node}", "namespace": _NAMESPACE},
        "spec": {
            "owners": [{"pod": {"namespace": "default", "name": f"owner-of-{node}"}}],
            "node": node,
            "resources": HELD,
            "ttl": "0",
        },
    }


def _await_backed(kubeconfig: Path) -> None:
    """Return once all holds are in force.

    Raises:
        SuiteFault: one is not, within a minute.
    """
    wait = ("wait", "--for=condition=Backed", "--timeout=60s", "reservations.reserver.io", "--all")
    try:
        kubectl(kubeconfig, f"--namespace={_NAMESPACE}", *wait)
    except subprocess.CalledProcessError as error:
        raise SuiteFault(f"not all holds are in force: {error.stderr}") from error


def _run(program: Path, suite: Suite, kubeconfig: Path, folder: Path) -> dict[str, str]:
    report = folder / "report.json"
    command = [
        *(str(program), "--provider=skeleton", f"--kubeconfig={kubeconfig}"),
        f"--ginkgo.focus={suite.focus}",
        *("--ginkgo.no-color", "--ginkgo.v", f"--ginkgo.flake-attempts={_ATTEMPTS}"),
        *(f"--ginkgo.json-report={report}", f"--ginkgo.timeout={_LONGEST_S}s"),
    ]
    with (
        (folder / "e2e.log").open("wb") as log,
        started(*command, stdout=log, stderr=log, cwd=folder) as process,
    ):
        process.wait(_LONGEST_S + 60)
    if not report.is_file():
        raise SuiteFault(f"upstream's tests ended with {process.returncode} and without a report")
    return read(report.read_text())
