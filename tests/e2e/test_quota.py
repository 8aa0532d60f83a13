"""Limits of a team, on the real API server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from kubernetes.client import CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT, OBJECTS
from tests.e2e.test_status import wait_status


def test_what_exceeds_a_quota_waits_and_holds_once_there_is_room(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    quotas: Any = CustomObjectsApi(corner.api.api_client)
    where = (*OBJECTS, corner.name, "reservationquotas")

    def write(verb: Callable[..., Any], *name: str, cpu: str) -> None:
        quota = {"metadata": {"name": "team"}, "spec": {"hard": {"held.cpu": cpu}}}
        kind = {"apiVersion": "/".join(OBJECTS), "kind": "ReservationQuota"}
        verb(*where, *name, {**kind, **quota})

    def used() -> str:
        found = quotas.get_namespaced_custom_object(*where, "team")
        return str(found.get("status", {}).get("used", {}).get("held.cpu"))

    write(quotas.create_namespaced_custom_object, cpu="3")
    wait_for(lambda: used() == "0", "the quota is seen")
    first = corner.reserve(OBJECT, node, "first", cpu="2")
    wait_status(corner, OBJECT, first, phase="Active", backed=True)
    second = corner.reserve(OBJECT, node, "second", cpu="2")
    wait_status(corner, OBJECT, second, phase="Pending")
    wait_for(lambda: used() == "2", "what is held is told")
    corner.create_pod("stranger", {"cpu": "2"})
    assert corner.wait_bound("stranger") == node  # Nothing is held from it.
    write(quotas.patch_namespaced_custom_object, "team", cpu="4")
    wait_status(corner, OBJECT, second, phase="Active", backed=False)
    wait_for(lambda: used() == "4", "what is held is told")


def test_out_of_the_box_a_team_cannot_keep_the_cluster_from_others(corner: Corner) -> None:
    nodes = corner.add_nodes(2, cpu="4")
    owners = [{"pod": {"name": "owner"}}]
    for node in nodes:
        greedy = {"owners": owners, "node": node, "resources": {"cpu": 1000}, "slots": 1000}
        corner.write_object(f"greedy-{node}", {**greedy, "ttl": "0"})
    for node in nodes:
        told = partial(_message, corner, f"greedy-{node}")
        assert "exceeded quota: default" in wait_for(told, "the quota is exceeded")
    corner.create_pod("stranger", {"cpu": "100m"})
    corner.wait_bound("stranger")


def _message(corner: Corner, name: str) -> str:
    conditions = (corner.object(name) or {}).get("status", {}).get("conditions", ())
    return "".join(c["message"] for c in conditions if c["reason"] == "QuotaExceeded")


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"hard": {"cpu": "1"}}, "spec.hard"),
        ({"hard": {"held.cpu": "-1"}}, "spec.hard.held.cpu"),
        ({"maxTTL": "0"}, "spec.maxTTL"),
        ({"nodeNames": "No"}, "spec.nodeNames"),
    ],
)
def test_what_is_no_quota_is_refused(corner: Corner, bad: dict[str, Any], field: str) -> None:
    quotas: Any = CustomObjectsApi(corner.api.api_client)
    kind = {"apiVersion": "/".join(OBJECTS), "kind": "ReservationQuota"}
    where = (*OBJECTS, corner.name, "reservationquotas")
    body = {**kind, "metadata": {"name": "bad"}, "spec": bad}
    with pytest.raises(ApiException) as refusal:
        quotas.create_namespaced_custom_object(*where, body)
    assert refusal.value.status == 422
    assert field in str(refusal.value.body)
