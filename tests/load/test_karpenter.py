"""Reservations with a real autoscaler: Karpenter, with nodes of KWOK for its cloud.

It runs in `make release-check`: Karpenter takes half a minute to see that a node is empty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.config import new_client_from_config
from kubernetes.utils import create_from_dict

from hack.bed.bed import scheduling
from hack.controlplane.cluster import ControlPlane
from hack.karpenter.running import crds, provisioning
from hack.reserver_process import ReserverProcess, wait_for
from reserver.k8s.objects.nodes import KEPT

ROOT = Path(__file__).parents[2]
SCHEDULER = "reserver-scheduler"
ROUNDS_S = 45.0
"""Longer than Karpenter takes from one look at empty nodes to the next, in seconds."""


class Cluster:
    """A cluster whose nodes are all added by Karpenter, of four cores each."""

    def __init__(self, kubeconfig: Path) -> None:
        self.api: Any = CoreV1Api(new_client_from_config(str(kubeconfig)))
        self.custom: Any = CustomObjectsApi(self.api.api_client)

    def reserve(self, name: str) -> None:
        spec = {"owners": [{"pod": {"name": name}}], "resources": {"cpu": "3"}, "ttl": "1h"}
        kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
        body = {**kind, "metadata": {"name": name}, "spec": spec}
        where = ("reserver.io", "v1alpha1", "default", "reservations")
        self.custom.create_namespaced_custom_object(*where, body)

    def release(self, name: str) -> None:
        where = ("reserver.io", "v1alpha1", "default", "reservations", name)
        self.custom.delete_namespaced_custom_object(*where)

    def clear(self) -> None:
        """Delete all pods and reservations, which count in the default quota of their namespace."""
        where = ("reserver.io", "v1alpha1", "default", "reservations")
        self.custom.delete_collection_namespaced_custom_object(*where)
        self.api.delete_collection_namespaced_pod("default", grace_period_seconds=0)

    def node_of(self, name: str) -> str:
        where = ("reserver.io", "v1alpha1", "default", "reservations", name)
        status = self.custom.get_namespaced_custom_object(*where).get("status", {})
        nodes = [each["node"] for each in status.get("placements", ())]
        return nodes[0] if status.get("phase") == "Active" and nodes else ""

    def wait_placed(self, name: str) -> str:
        node: str = wait_for(lambda: self.node_of(name), f"{name} has a place")
        return node

    def run_pods(self, *names: str) -> list[str]:
        """Create pods that take a node each; return the nodes where they are bound."""
        resources = {"requests": {"cpu": "3"}}
        containers = [{"name": "main", "image": "none", "resources": resources}]
        spec = {"schedulerName": SCHEDULER, "containers": containers}
        for name in names:
            self.api.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})
        return [wait_for(partial(self.pod_node, name), f"{name} is bound", 90) for name in names]

    def pod_node(self, name: str) -> str:
        return self.api.read_namespaced_pod(name, "default").spec.node_name or ""

    def nodes(self) -> set[str]:
        return {each.metadata.name for each in self.api.list_node().items}

    def is_kept(self, node: str) -> bool:
        return KEPT in (self.api.read_node(node).metadata.annotations or {})

    def buffers(self) -> list[str]:
        where = ("autoscaling.x-k8s.io", "v1beta1", "default", "capacitybuffers")
        found = self.custom.list_namespaced_custom_object(*where)["items"]
        return [each["metadata"]["name"] for each in found]

    def wait_settled(self) -> None:
        wait_for(lambda: not self.buffers(), "nothing waits any more")

    def remains(self, nodes: set[str]) -> None:
        """Look on for as long as Karpenter would need to add or remove a node."""
        end = time.monotonic() + ROUNDS_S
        while time.monotonic() < end:
            assert self.nodes() == nodes
            time.sleep(1)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("karpenter")
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane())
        made = Cluster(plane.kubeconfig)
        own = [ROOT / "scheduler-config/core" / name for name in ("crd.yaml", "crd-quota.yaml")]
        for file in (*own, *crds()):
            create_from_dict(made.api.api_client, yaml.safe_load(file.read_text()))
        made.api.create_namespace({"metadata": {"name": "reserver-system"}})
        wait_for(lambda: made.buffers() == [], "CapacityBuffers are served")
        flags = ("--keep-held-nodes", "--capacity-buffers")
        reserver = ReserverProcess(plane.kubeconfig, folder / "reserver.log", *flags)
        stack.enter_context(reserver)
        stack.enter_context(scheduling(plane, reserver.port, SCHEDULER))
        stack.enter_context(provisioning(plane.kubeconfig, folder / "karpenter.log"))
        yield made


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.clear()


def test_a_node_comes_for_each_reservation_and_stays_for_as_long_as_it_is_held(
    cluster: Cluster,
) -> None:
    cluster.reserve("first")
    first = cluster.wait_placed("first")
    cluster.wait_settled()
    assert cluster.nodes() == {first}
    # The first node looks empty, and three of its four cores are held.
    cluster.reserve("second")
    second = cluster.wait_placed("second")
    cluster.wait_settled()
    assert cluster.nodes() == {first, second}
    assert cluster.is_kept(first)
    assert cluster.is_kept(second)
    # Two that only holds keep out bring a node each, although they fit as far as Karpenter can see,
    # and stay there, although it would remove the nodes of pods that fit elsewhere.
    third, fourth = cluster.run_pods("stranger", "other")
    assert {third, fourth}.isdisjoint({first, second})
    cluster.wait_settled()
    wait_for(lambda: all(map(cluster.is_kept, (third, fourth))), "their nodes are kept")
    cluster.remains({first, second, third, fourth})
    # What nobody holds any more goes; what somebody does stays.
    cluster.release("first")
    wait_for(lambda: first not in cluster.nodes(), "the first node is removed", 180)
    assert cluster.nodes() == {second, third, fourth}
    # Nothing looks free that is held, so Karpenter is right about the pods: it may do as it likes.
    cluster.release("second")
    wait_for(lambda: not any(map(cluster.is_kept, cluster.nodes())), "all nodes are let go")
    cluster.clear()
    wait_for(lambda: not cluster.nodes(), "all nodes are removed", 180)


def test_one_that_somebody_else_protects_stays_protected(cluster: Cluster) -> None:
    cluster.reserve("third")
    node = cluster.wait_placed("third")
    cluster.wait_settled()
    theirs = "karpenter.sh/do-not-disrupt"
    patch = {"metadata": {"annotations": {theirs: "team-a"}}}
    cluster.api.patch_node(node, patch)
    cluster.release("third")
    wait_for(lambda: not cluster.is_kept(node), "Reserver lets it go")
    assert cluster.api.read_node(node).metadata.annotations[theirs] == "team-a"
