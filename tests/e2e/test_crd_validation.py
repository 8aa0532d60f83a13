"""Reservation objects that the API server takes or refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from tests.e2e.cluster import Corner

GOOD: dict[str, Any] = {
    "owners": [{"pod": {"name": "owner"}}],
    "resources": {"cpu": "2"},
    "node": "nowhere",
}

WHOLE: dict[str, Any] = {
    "node": None,
    "resources": None,
    "owners": [{"selector": {"matchLabels": {"app": "web"}}}],
    "nodes": {"count": 1, "selector": {"pool": "gpu"}},
}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no owners": ({"owners": []}, "spec.owners", "at least 1 items"),
    "an owner that is nobody": ({"owners": [{}]}, "spec.owners[0]", "needs a pod, a controller"),
    "an owner without a name": ({"owners": [{"pod": {}}]}, "spec.owners[0].pod.name", "Required"),
    "no slots": ({"slots": 0}, "spec.slots", "greater than or equal to 1"),
    "too many slots": ({"slots": 100_001}, "spec.slots", "less than or equal to 100000"),
    "no resources": ({"resources": {}}, "spec.resources", "at least 1 properties"),
    "a negative text": ({"resources": {"cpu": "-1"}}, "spec.resources.cpu", "should match"),
    "a negative number": ({"resources": {"cpu": -1}}, "spec.resources.cpu", "or equal to 0"),
    "more than any node has": (
        {"resources": {"example.com/x": "9007199254740993e3"}},
        "spec.resources",
        "2^53",
    ),
    "cores of all slots": ({"resources": {"cpu": "1T"}, "slots": 10}, "spec.resources", "2^53"),
    "bytes of all slots": ({"resources": {"memory": "8Pi"}, "slots": 2}, "spec.resources", "2^53"),
    "absurd bytes": ({"resources": {"memory": "1e40"}}, "spec.resources", "2^53"),
    "no quantity": ({"resources": {"cpu": "1x"}}, "spec.resources.cpu", "should match"),
    "too many slots to retain": ({"retain": True, "slots": 1001}, "spec.slots", "1000 at most"),
    "a long description": ({"description": "x" * 513}, "spec.description", "512"),
    "days": ({"ttl": "1d"}, "spec.ttl", "should match"),
    "a ttl without a unit": ({"ttl": 60}, "spec.ttl", "less than or equal to 0"),
    "an end before the start": (
        {"startsAt": "2041-01-01T00:00:00Z", "expiresAt": "2040-01-01T00:00:00Z"},
        "spec.startsAt",
        "startsAt is not before expiresAt",
    ),
    "no time": ({"expiresAt": "tomorrow"}, "spec.expiresAt", "date-time"),
    "an unknown policy": ({"policy": "Maybe"}, "spec.policy", '"Prefer", "Require"'),
    "a priority for nothing": ({"priority": 3}, "spec.priority", "without preemptible"),
    "a node and a placement": (
        {"node": "a", "placement": {}},
        "spec.placement",
        "placement cannot be set together with node",
    ),
    "an unknown strategy": (
        {"node": None, "placement": {"strategy": "tight"}},
        "spec.placement.strategy",
        '"pack", "spread"',
    ),
    "a refill of one node": ({"refill": True}, "spec.refill", "together with node"),
    "a limit of no refill": ({"refillUpTo": 3}, "spec.refillUpTo", "without refill"),
    "a limit below the slots": (
        {"node": None, "refill": True, "slots": 3, "refillUpTo": 2},
        "spec.refillUpTo",
        "less than slots",
    ),
    "less than a minute": ({"releaseIfIdle": "59s"}, "spec.releaseIfIdle", "1m to 8760h"),
    "more than a year": ({"releaseIfIdle": "8761h"}, "spec.releaseIfIdle", "1m to 8760h"),
    "idle days": ({"releaseIfIdle": "7d"}, "spec.releaseIfIdle", "should match"),
    "nothing to hold": ({"resources": None}, "spec.resources", "whole nodes as nodes"),
    "whole nodes and resources": (
        {"node": None, "nodes": {"count": 1}},
        "spec.nodes",
        "together with resources",
    ),
    "whole nodes and a strategy": (
        {**WHOLE, "placement": {"strategy": "pack"}},
        "spec.placement",
        "as nodes.selector",
    ),
    "too many whole nodes": (
        {**WHOLE, "nodes": {"count": 501}},
        "spec.nodes.count",
        "less than or equal to 500",
    ),
    "a node without a name": ({"node": ""}, "spec.node", "at least 1 chars"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_refused_at_once_is_refused_with_the_name_of_the_field(
    corner: Corner, case: str
) -> None:
    changes, field, words = REFUSED[case]
    with pytest.raises(ApiException) as refusal:
        corner.write_object("bad", GOOD | changes)
    assert refusal.value.status == 422
    causes = json.loads(refusal.value.body or "")["details"]["causes"]
    assert field in [cause["field"] for cause in causes]
    assert any(words in cause["message"] for cause in causes if cause["field"] == field)


def test_what_is_right_is_taken_as_people_write_it(corner: Corner) -> None:
    owners = [{"pod": {"name": "a"}}, {"controller": {"kind": "ReplicaSet", "name": "web"}}]
    amounts = {"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "1e9"}
    good: list[dict[str, Any]] = [
        {"ttl": 0},
        {"ttl": "1h30m"},
        {"expiresAt": "2040-01-01T00:00:00+02:00", "startsAt": "2039-01-01T00:00:00Z"},
        {"owners": owners, "resources": amounts, "slots": 100_000},
        {"preemptible": True, "priority": -5},
        {"resources": {"memory": "8Pi", "cpu": "9007199254740992m", "example.com/x": 2**53}},
        {"resources": {"memory": "8Ti"}, "slots": 1024},
        {"node": None, "placement": {"nodeSelector": {"a": "b"}, "strategy": "spread"}},
        {"node": None},
        {"node": None, "refill": True, "slots": 3, "refillUpTo": 3},
        {"releaseIfIdle": "1m"},
        {"releaseIfIdle": "8760h"},
        WHOLE,
        {**WHOLE, "placement": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}},
    ]
    for number, changes in enumerate(good):
        corner.write_object(f"good-{number}", {**GOOD, **changes})
