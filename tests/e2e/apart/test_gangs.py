"""PodGroups, whose pods kube-scheduler schedules together, and their reservations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.config import new_client_from_config

from hack.bed.bed import scheduling
from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import STORE

pytestmark = pytest.mark.controlplane

API = ("scheduling.k8s.io", "v1beta1")
GANG, SCHEDULER = "training", "gangs"


def create_gang(corner: Corner, members: int) -> None:
    objects: Any = CustomObjectsApi(corner.api.api_client)
    policy = {"gang": {"minCount": members}}
    body = {
        "apiVersion": "/".join(API),
        "kind": "PodGroup",
        "metadata": {"name": GANG},
        "spec": {"schedulingPolicy": policy},
    }
    objects.create_namespaced_custom_object(*API, corner.name, "podgroups", body)


def create_member(corner: Corner, name: str) -> None:
    corner.create_pod(name, {"cpu": "2"}, schedulingGroup={"podGroupName": GANG})


def reserve(corner: Corner, nodes: list[str], slots: int = 2) -> None:
    """Hold slots of two cores each for the gang on each of some nodes."""
    owner = {"controller": {"kind": "PodGroup", "name": GANG, "namespace": corner.name}}
    spec = {"owners": [owner], "slots": slots, "resources": {"cpu": "2"}}
    entries = {f"{corner.name}.{node}": yaml.safe_dump(spec | {"node": node}) for node in nodes}
    corner.patch_store(STORE, entries)
    for node in nodes:
        corner.wait_held(node)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ControlPlane]]:
    """A control plane with PodGroups, and a kube-scheduler that asks Reserver."""
    with ControlPlane(gates=("GenericWorkload",), apis=("/".join(API),)) as plane:
        api: Any = CoreV1Api(new_client_from_config(str(plane.kubeconfig)))
        api.create_namespace({"metadata": {"name": STORE[0]}})
        labels = {"reserver.io/store": "true"}
        metadata = {"name": STORE[1], "labels": labels}
        api.create_namespaced_config_map(STORE[0], {"metadata": metadata})
        log = tmp_path_factory.mktemp("gangs") / "log"
        with (
            ReserverProcess(plane.kubeconfig, log, "--no-crd") as reserver,
            scheduling(plane, reserver.port, SCHEDULER),
        ):
            yield api, plane


@pytest.fixture
def corner(cluster: tuple[Any, ControlPlane]) -> Corner:
    api, plane = cluster
    corner = Corner(plane.kubeconfig, SCHEDULER, api)
    corner.open()
    return corner


def test_a_gang_takes_the_slots_that_are_held_for_it_and_nobody_else_does(corner: Corner) -> None:
    nodes = corner.add_nodes(2, cpu="4")
    reserve(corner, nodes)
    corner.create_pod("stranger", {"cpu": "1"})
    corner.wait_refused("stranger", "held")
    create_gang(corner, 4)
    members = [f"member-{number}" for number in range(4)]
    for name in members[:3]:
        create_member(corner, name)
    wait_for(lambda: len(corner.pod_names()) == 4, "three members and the stranger")
    assert all(corner.node_of(name) is None for name in members[:3])
    create_member(corner, members[3])
    landed = sorted(corner.wait_bound(name) for name in members)
    assert landed == sorted(nodes * 2)
    assert corner.node_of("stranger") is None


def test_a_gang_with_too_few_slots_is_refused_as_a_whole(corner: Corner) -> None:
    """kube-scheduler sees room for each pod alone; one pod of the group would be bound."""
    (node,) = corner.add_nodes(1, cpu="4")
    entry = {"owners": [{"pod": {"name": "other", "namespace": corner.name}}], "node": node}
    text = yaml.safe_dump(entry | {"resources": {"cpu": "2"}})
    corner.patch_store(STORE, {f"{corner.name}.other": text})
    reserve(corner, [node], slots=1)
    create_gang(corner, 2)
    for name in ("a", "b"):
        create_member(corner, name)
    for name in ("a", "b"):
        corner.wait_refused(name)
    assert corner.node_of("a") is corner.node_of("b") is None
    corner.patch_store(STORE, {f"{corner.name}.other": None})
    assert {corner.wait_bound("a"), corner.wait_bound("b")} == {node}


def test_a_gang_finds_its_seats_among_more_nodes_than_kube_scheduler_looks_at(
    corner: Corner,
) -> None:
    nodes = corner.add_nodes(150, cpu="2")
    seats = nodes[::25]  # It looks at a hundred of them for each pod.
    reserve(corner, seats, slots=1)
    create_gang(corner, len(seats))
    members = [f"member-{number}" for number in range(len(seats))]
    for name in members:
        create_member(corner, name)
    assert sorted(corner.wait_bound(name) for name in members) == sorted(seats)
