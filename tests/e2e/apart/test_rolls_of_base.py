"""A second kube-scheduler is rolled out with an image that does not start, and goes on.

The real controllers make and end the pods of `base`. In each of them a Reserver and the real
kube-scheduler that calls it run; the tests do the kubelet's work: start the sidecar, then
kube-scheduler, and neither of an image that cannot be pulled.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AppsV1Api
from kubernetes.client.exceptions import ApiException

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.rolling import BOOTSTRAP, HOME, ROLE, TYPO, bootstrap
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

MANIFESTS = Path(__file__).parents[3] / "scheduler-config/base"
NAME = "reserver-scheduler"
PROFILE = "rolled-base"


class Pods:
    """The pods of the Deployment; a turn does the work of a kubelet."""

    def __init__(
        self, plane: ControlPlane, api: Any, start: Callable[[str], ReserverProcess]
    ) -> None:
        self._plane, self._api, self._start = plane, api, start
        self.sidecars: dict[str, ReserverProcess] = {}
        self.schedulers: set[str] = set()

    def turn(self) -> dict[str, bool]:
        """Start, probe and end pods; return the readiness of each pod that stays."""
        selector = "app.kubernetes.io/name=reserver,!app.kubernetes.io/component"
        pods = self._api.list_namespaced_pod(HOME, label_selector=selector).items
        staying = {}
        for pod in pods:
            name = pod.metadata.name
            if pod.metadata.deletion_timestamp:
                self.end(name)
            elif pod.spec.node_name:
                self._run(pod)
                staying[name] = self._judge(pod)
        return staying

    def _run(self, pod: Any) -> None:
        name = pod.metadata.name
        if name not in self.sidecars and pod.spec.init_containers[0].image != TYPO:
            self.sidecars[name] = self._start(name)
        has_started = name in self.sidecars and self._gets(name, "/healthz")
        is_due = has_started and pod.spec.containers[0].image != TYPO
        if is_due and name not in self.schedulers:
            config = self._plane.folder / f"{name}.yaml"
            shipped = MANIFESTS / "kube-scheduler.yaml"
            port, kubeconfig = self.sidecars[name].port, self._plane.kubeconfig
            config.write_text(
                render_scheduler_config(
                    shipped, kubeconfig=kubeconfig, port=port, scheduler_name=PROFILE
                )
            )
            self._plane.start_scheduler(config, name, leader_elect=True)
            self.schedulers.add(name)

    def _gets(self, name: str, path: str) -> bool:
        try:
            return self.sidecars[name].get(path)[0] == 200
        except OSError:
            return False

    def _judge(self, pod: Any) -> bool:
        name = pod.metadata.name
        is_ready = name in self.schedulers and self._gets(name, "/readyz")
        condition = {"type": "Ready", "status": str(is_ready)}
        # It became ready long enough ago to be available at once.
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"phase": "Running", "conditions": [condition]}
        with suppress(ApiException):
            self._api.patch_namespaced_pod_status(name, HOME, {"status": status})
        return is_ready

    def end(self, name: str) -> None:
        """End a pod: kube-scheduler first, as of a pod with a sidecar."""
        if name in self.schedulers:
            self.schedulers.remove(name)
            self._plane.stop_scheduler(name)
        if name in self.sidecars:
            self.sidecars.pop(name).stop()
        with suppress(ApiException):
            self._api.delete_namespaced_pod(name, HOME, grace_period_seconds=0)


class Rolled:
    """A cluster with a second kube-scheduler, as a Deployment."""

    def __init__(self, corner: Corner, pods: Pods) -> None:
        self.corner, self.pods = corner, pods
        self.apps: Any = AppsV1Api(corner.api.api_client)
        self._strangers = (f"stranger-{number}" for number in itertools.count())

    def deploy(self) -> str:
        """Create the shipped objects; return the pod once it is ready."""
        deployment = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text())
        pod = deployment["spec"]["template"]["spec"]
        pod |= {"nodeSelector": ROLE, "tolerations": [{"operator": "Exists"}]}
        pod["schedulerName"] = BOOTSTRAP  # There is no default-scheduler here.
        self.apps.create_namespaced_deployment(HOME, deployment)
        return wait_for(self.only, "its pod is ready")

    def only(self) -> str | None:
        """Return the pod, if there is but one, and ready."""
        staying = self.pods.turn()
        return next(iter(staying)) if [*staying.values()] == [True] else None

    def change(self, container: str, image: str) -> None:
        kind = "initContainers" if container == "reserver" else "containers"
        containers = [{"name": container, "image": image}]
        template = {"spec": {kind: containers}}
        body = {"spec": {"template": template}}
        self.apps.patch_namespaced_deployment(NAME, HOME, body)

    def image(self, container: str) -> str:
        spec = self.apps.read_namespaced_deployment(NAME, HOME).spec.template.spec
        (found,) = (
            each.image
            for each in (*spec.init_containers, *spec.containers)
            if each.name == container
        )
        return str(found)

    def is_kept(self) -> bool:
        """Try to get in, at each call."""
        self.corner.create_pod(next(self._strangers), {"cpu": "2"})
        return not any(
            each.spec.node_name
            for each in self.corner.api.list_namespaced_pod(self.corner.name).items
            if each.metadata.name.startswith("stranger-")
        )

    def remove(self) -> None:
        with suppress(ApiException):
            self.apps.delete_namespaced_deployment(NAME, HOME, propagation_policy="Background")
        wait_for(lambda: not self.apps.list_namespaced_replica_set(HOME).items, "it is deleted")
        for name in [*self.pods.sidecars]:
            self.pods.end(name)
        wait_for(lambda: not self.pods.turn(), "its pods are gone")


@pytest.fixture
def rolled(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> Iterator[Rolled]:
    corner = Corner(control_plane.kubeconfig, PROFILE, api)
    corner.open()
    corner.add_nodes(1, cpu="4")
    room = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    status = {"allocatable": room, "capacity": room}
    api.create_node({"metadata": {"name": "own-1", "labels": ROLE}, "status": status})
    corner.nodes.append("own-1")

    def start(name: str) -> ReserverProcess:
        log = tmp_path / f"{name}.log"
        process = ReserverProcess(
            reserver_kubeconfig, log, f"--exempt-namespace={HOME}", wait_ready=False
        )
        process.start()
        return process

    world = Rolled(corner, Pods(control_plane, api, start))
    try:
        with bootstrap(control_plane):
            yield world
    finally:
        world.remove()
        corner.close()


@pytest.mark.parametrize("container", ["reserver", "kube-scheduler"])
def test_a_mistyped_image_of_a_second_kube_scheduler_stops_nothing(
    rolled: Rolled, control_plane: ControlPlane, container: str
) -> None:
    first = rolled.deploy()
    node = rolled.corner.nodes[0]
    rolled.corner.reserve(SPEC, node, "owner", cpu="3")
    rolled.corner.wait_held(node)
    good = rolled.image(container)
    rolled.change(container, TYPO)
    wait_for(lambda: len(rolled.pods.turn()) == 2, "a new pod is there, and does not start")
    for _ in range(5):
        staying = rolled.pods.turn()
        assert (len(staying), staying[first]) == (2, True)
        assert [*rolled.pods.schedulers] == [first]
        assert rolled.is_kept()
    rolled.corner.create_pod("owner", {"cpu": "3"})
    assert rolled.corner.wait_bound("owner") == node
    rolled.change(container, good)
    wait_for(lambda: rolled.only() == first, "the roll-out is undone")
    said = (control_plane.logs_dir / f"{first}.log").read_text()
    assert "connection refused" not in said
