"""PodGroups, whose pods kube-scheduler schedules together, and their reservations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.config import new_client_from_config

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import STORE, Corner
from tests.e2e.conftest import scheduling

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


def reserve(corner: Corner, node: str) -> None:
    """Hold two slots of two cores each for the gang."""
    owner = {"controller": {"kind": "PodGroup", "name": GANG, "namespace": corner.name}}
    spec = {"owners": [owner], "node": node, "slots": 2, "resources": {"cpu": "2"}}
    corner.patch_store(STORE, {f"{corner.name}.{node}": yaml.safe_dump(spec)})


def test_a_gang_takes_the_slots_that_are_held_for_it_and_nobody_else_does(tmp_path: Path) -> None:
    with ControlPlane(gates=("GenericWorkload",), apis=("/".join(API),)) as plane:
        api: Any = CoreV1Api(new_client_from_config(str(plane.kubeconfig)))
        api.create_namespace({"metadata": {"name": STORE[0]}})
        labels = {"reserver.io/store": "true"}
        api.create_namespaced_config_map(
            STORE[0], {"metadata": {"name": STORE[1], "labels": labels}}
        )
        with (
            ReserverProcess(plane.kubeconfig, tmp_path / "log") as reserver,
            scheduling(plane, reserver, SCHEDULER),
        ):
            corner = Corner(plane.kubeconfig, SCHEDULER, api)
            corner.open()
            nodes = corner.add_nodes(2, cpu="4")
            for node in nodes:
                reserve(corner, node)
                corner.wait_held(node)
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
