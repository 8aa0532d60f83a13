"""A node is written as it was decided on, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.k8s.objects.nodes import MAINTENANCE_ANNOTATION
from reserver.maintenance.decide import NodeGoal, NodeLifecycle
from reserver.maintenance.model import ObservedNode, WindowUse, show_uses
from reserver.maintenance.node_writes import write_node
from tests.unit.k8s.fakes import ScriptedClient

KEPT = {"w.u": WindowUse.CORDONED}
BEFORE = show_uses(KEPT)
GOAL = NodeGoal({}, cordon=False, lifecycle=NodeLifecycle())
SEEN = ObservedNode(name="a", is_cordoned=True, uses=KEPT)


def written(annotation: str, *, cordoned: bool) -> dict[str, Any]:
    metadata = {
        "name": "a",
        "resourceVersion": "7",
        "annotations": {MAINTENANCE_ANNOTATION: annotation},
    }
    return {"metadata": metadata, "spec": {"unschedulable": cordoned}, "status": {}}


@pytest.mark.parametrize(
    "now",
    [
        written("w.u=done", cordoned=True),
        written("", cordoned=True),
        written(BEFORE, cordoned=False),
    ],
    ids=["another use", "no use", "uncordoned"],
)
async def test_a_node_that_somebody_has_written_since_is_left_alone(now: dict[str, Any]) -> None:
    client = ScriptedClient(now)
    assert not await write_node(client, SEEN, GOAL, BEFORE, 0.0)
    assert [request.verb for request in client.requests] == ["get"]


async def test_annotation_and_cordon_are_one_write_with_the_version_that_was_read() -> None:
    node = written(BEFORE, cordoned=True)
    client = ScriptedClient(node, node)
    assert await write_node(client, SEEN, GOAL, BEFORE, 0.0)
    _, patch = client.requests
    assert patch.body == {
        "metadata": {"resourceVersion": "7", "annotations": {MAINTENANCE_ANNOTATION: None}},
        "spec": {"unschedulable": None},
    }
