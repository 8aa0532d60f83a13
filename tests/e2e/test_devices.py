"""Devices of ResourceClaims (DRA): kube-scheduler allocates them, next to seats without devices.

No driver runs: one only publishes what its node has, which is written here, and readies devices for
containers, which a kubelet asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from kubernetes import client

from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT


class Devices:
    """Nodes with one device each, and pods that claim one."""

    def __init__(self, corner: Corner) -> None:
        self._corner = corner
        self._api: Any = client.ResourceV1Api(corner.api.api_client)
        self._driver = f"{corner.name}.example.com"
        self._slices: list[str] = []

    def offer(self, nodes: list[str]) -> None:
        """Write that each node has a device, as the driver on it would."""
        selector = {"cel": {"expression": f"device.driver == '{self._driver}'"}}
        metadata = {"name": self._driver}
        self._api.create_device_class({"metadata": metadata, "spec": {"selectors": [selector]}})
        for node in nodes:
            spec = {
                "driver": self._driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            }
            self._api.create_resource_slice({"metadata": {"name": node}, "spec": spec})
            self._slices.append(node)

    def withdraw(self) -> None:
        """Delete the cluster-scoped objects of the test."""
        for name in self._slices:
            self._api.delete_resource_slice(name)
        self._api.delete_device_class(self._driver)

    def create_pod(self, name: str, cpu: str) -> None:
        """Create a pod that claims a device."""
        request = {"name": "gpu", "exactly": {"deviceClassName": self._driver}}
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        self._api.create_namespaced_resource_claim(self._corner.name, claim)
        claims = [{"name": "gpu", "resourceClaimName": name}]
        self._corner.create_pod(name, {"cpu": cpu}, resourceClaims=claims)

    def node_of(self, pod: str) -> str:
        """Return whose device kube-scheduler has allocated to a pod."""
        status = self._api.read_namespaced_resource_claim(pod, self._corner.name).status
        assert [each.name for each in status.reserved_for] == [pod]
        (result,) = status.allocation.devices.results
        return str(result.pool)


@pytest.fixture
def devices(corner: Corner) -> Iterator[Devices]:
    made = Devices(corner)
    yield made
    made.withdraw()


def test_kube_scheduler_allocates_devices_beside_seats_and_their_owners_are_told(
    corner: Corner, devices: Devices
) -> None:
    held, *others = corner.add_nodes(3, cpu="4")
    devices.offer([held, *others])
    corner.reserve(OBJECT, held, "owner", cpu="2")
    corner.wait_held(held, cpu="3")

    devices.create_pod("stranger", "3")
    taken = corner.wait_bound("stranger")
    assert taken in others
    assert devices.node_of("stranger") == taken

    devices.create_pod("owner", "2")
    assert corner.wait_bound("owner") == held
    assert devices.node_of("owner") == held
    (told,) = wait_for(partial(corner.events, "DevicesNotHeld"), "the owner is told")
    assert f"holds its resources on {held}, but no devices" in told

    # The only device there is taken, so the next seat on the node is worth nothing.
    corner.reserve(OBJECT, held, "late", cpu="1")
    corner.wait_held(held, cpu="1500m")
    devices.create_pod("late", "1")
    assert corner.wait_bound("late") == devices.node_of("late")
    assert corner.node_of("late") in {*others} - {taken}
    (refused,) = wait_for(partial(corner.events, "SeatRefused"), "it is told of its seat")
    assert "perhaps the devices of its ResourceClaims, which no reservation holds" in refused
