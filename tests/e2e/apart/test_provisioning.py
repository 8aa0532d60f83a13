"""ProvisioningRequests of hold.reserver.io on the real control plane."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import CustomObjectsApi

from hack.reserver_process import wait_for
from tests.e2e.apart.yard import Yard
from tests.e2e.cluster import HELD

pytestmark = pytest.mark.controlplane

REQUESTS = ("autoscaling.x-k8s.io", "v1")
OF_REQUEST = {
    "autoscaling.x-k8s.io/consume-provisioning-request": "job",
    "autoscaling.x-k8s.io/provisioning-class-name": "hold.reserver.io",
}


def test_pods_of_a_request_land_on_its_room_and_strangers_do_not_until_it_is_deleted(
    yard: Yard,
) -> None:
    corner, objects = yard.corner, CustomObjectsApi(yard.corner.api.api_client)
    where = (*REQUESTS, corner.name, "provisioningrequests")
    template = yard.template("worker", cpu="4")
    corner.api.create_namespaced_pod_template(
        corner.name, {"metadata": {"name": "worker"}, "template": template}
    )
    pod_set = {"podTemplateRef": {"name": "worker"}, "count": 2}
    spec = {"provisioningClassName": "hold.reserver.io", "podSets": [pod_set]}
    request = {
        "apiVersion": "/".join(REQUESTS),
        "kind": "ProvisioningRequest",
        "metadata": {"name": "job"},
        "spec": spec,
    }
    objects.create_namespaced_custom_object(*where, request)

    def conditions() -> dict[str, str]:
        found: Any = objects.get_namespaced_custom_object(*where, "job")
        said = found.get("status", {}).get("conditions", ())
        return {each["type"]: each["reason"] for each in said if each["status"] == "True"}

    held = {"Accepted": "Accepted", "Provisioned": "CapacityIsFound"}
    wait_for(lambda: conditions() == held, "room is held for the request")
    corner.create_pod("stranger", {"cpu": "4"})
    corner.wait_refused("stranger", HELD[0])
    worker = {"metadata": {"name": "worker", "annotations": OF_REQUEST}, "spec": template["spec"]}
    corner.api.create_namespaced_pod(corner.name, worker)
    landed = corner.wait_bound("worker")
    assert landed in yard.nodes
    assert conditions() == held
    objects.delete_namespaced_custom_object(*where, "job")
    assert {corner.wait_bound("stranger"), landed} == set(yard.nodes)
    yard.wait_released()
