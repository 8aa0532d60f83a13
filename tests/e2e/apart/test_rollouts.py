"""A Deployment owns a reservation, whichever of its ReplicaSets makes the pods."""

from __future__ import annotations

import pytest

from hack.reserver_process import wait_for
from tests.e2e.apart.yard import Yard

pytestmark = pytest.mark.controlplane


def test_a_deployment_that_is_rolled_out_takes_the_next_of_its_slots(yard: Yard) -> None:
    corner, (held, full) = yard.corner, yard.nodes
    owner = {"controller": {"kind": "Deployment", "name": "web"}}
    resources = {"cpu": "2"}
    spec = {"owners": [owner], "node": held, "slots": 2, "resources": resources, "ttl": "1h"}
    corner.write_object("web", spec)
    wait_for(lambda: ((corner.object("web") or {}).get("status") or {}).get("phase"), "it holds")
    yard.deploy("filler", full, cpu="4")
    corner.create_pod("stranger", resources)
    corner.wait_refused("stranger")

    yard.apps.create_namespaced_deployment(corner.name, yard.workload("web"))
    yard.wait_on("web", held)
    (before,) = (pod.metadata.owner_references[0].name for pod in yard.pods("web"))
    assert corner.node_of("stranger") is None, "one slot is still held"
    yard.roll_out("web")

    def is_next() -> bool:
        found = [pod for pod in yard.pods("web") if pod.spec.node_name]
        sets = {pod.metadata.owner_references[0].name for pod in found}
        return bool(sets) and before not in sets

    wait_for(is_next, "the next ReplicaSet has taken over")
    assert yard.nodes_of("web") == [held]
