"""ProvisioningRequests of hold.reserver.io on the real control plane."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import CustomObjectsApi

from hack.chaos.moving.deadly import Deadly
from hack.reserver_process import ReserverProcess, wait_for
from reserver.stores.object.codec import SET_LABEL, UNFINISHED_ANNOTATION
from tests.e2e.apart.yard import Yard
from tests.e2e.cluster import HELD
from tests.e2e.forms import OBJECTS

pytestmark = pytest.mark.controlplane

REQUESTS = ("autoscaling.x-k8s.io", "v1")
OF_REQUEST = {
    "autoscaling.x-k8s.io/consume-provisioning-request": "job",
    "autoscaling.x-k8s.io/provisioning-class-name": "hold.reserver.io",
}
IS_HELD = {"Accepted": "Accepted", "Provisioned": "CapacityIsFound"}


class Job:
    """A request for pods of four cores each, in podSets of so many."""

    def __init__(self, yard: Yard, **pod_sets: int) -> None:
        """Write it, and its PodTemplates."""
        corner = yard.corner
        self._objects: Any = CustomObjectsApi(corner.api.api_client)
        self._where = (*REQUESTS, corner.name, "provisioningrequests")
        for name in pod_sets:
            template = {"metadata": {"name": name}, "template": yard.template(name, cpu="4")}
            corner.api.create_namespaced_pod_template(corner.name, template)
        sets = [{"podTemplateRef": {"name": name}, "count": n} for name, n in pod_sets.items()]
        request = {
            "apiVersion": "/".join(REQUESTS),
            "kind": "ProvisioningRequest",
            "metadata": {"name": "job"},
            "spec": {"provisioningClassName": "hold.reserver.io", "podSets": sets},
        }
        self._objects.create_namespaced_custom_object(*self._where, request)

    def conditions(self) -> dict[str, str]:
        """Return the reasons of the conditions that are true."""
        found = self._objects.get_namespaced_custom_object(*self._where, "job")
        said = found.get("status", {}).get("conditions", ())
        return {each["type"]: each["reason"] for each in said if each["status"] == "True"}

    def wait_held(self) -> None:
        """Return once room is held for it."""
        wait_for(lambda: self.conditions() == IS_HELD, "room is held for the request")

    def delete(self) -> None:
        self._objects.delete_namespaced_custom_object(*self._where, "job")

    def reservations(self) -> list[dict[str, Any]]:
        """Return the metadata of the Reservations of its namespace."""
        where = (*OBJECTS, self._where[2], "reservations")
        found = self._objects.list_namespaced_custom_object(*where)["items"]
        return [item["metadata"] for item in found]


def test_pods_of_a_request_land_on_its_room_and_strangers_do_not_until_it_is_deleted(
    yard: Yard,
) -> None:
    corner, job = yard.corner, Job(yard, worker=2)
    job.wait_held()
    corner.create_pod("stranger", {"cpu": "4"})
    corner.wait_refused("stranger", HELD[0])
    spec = yard.template("worker", cpu="4")["spec"]
    worker = {"metadata": {"name": "worker", "annotations": OF_REQUEST}, "spec": spec}
    corner.api.create_namespaced_pod(corner.name, worker)
    landed = corner.wait_bound("worker")
    assert landed in yard.nodes
    assert job.conditions() == IS_HELD
    job.delete()
    assert {corner.wait_bound("stranger"), landed} == set(yard.nodes)
    yard.wait_released()


def test_reserver_that_is_killed_within_a_set_holds_all_of_it_after_and_nothing_else(
    yard: Yard, mover: ReserverProcess, mishaps: Deadly
) -> None:
    """Every write is in tests/unit/kube/provisioning; here the one that leaves a part of a set."""
    mishaps.arm(mover.process.kill, at="/reservations", is_done=True)
    job = Job(yard, driver=1, worker=1)
    mover.wait_ended()
    (half,) = job.reservations()
    assert half["annotations"][UNFINISHED_ANNOTATION] == "2"
    mover.start()
    job.wait_held()
    held = job.reservations()
    assert len(held) == 2
    assert half["uid"] not in {each["uid"] for each in held}
    assert len({each["labels"][SET_LABEL] for each in held}) == 1
    assert not any(UNFINISHED_ANNOTATION in each.get("annotations", {}) for each in held)
    job.delete()
    yard.wait_released()
