"""Limits of a team, on the real API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubernetes.client import CustomObjectsApi

from hack.reserver_process import wait_for
from tests.e2e.cluster import OBJECT, OBJECTS, Corner
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
