"""The MaintenanceWindows of one test, and the state of their nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from kubernetes.client import CustomObjectsApi

from hack.reserver_process import wait_for
from reserver.cluster.node import LIFECYCLE
from reserver.k8s.objects.nodes import MAINTENANCE_ANNOTATION
from tests.e2e.apart.yard import Yard
from tests.e2e.forms import OBJECTS

pytestmark = pytest.mark.controlplane

PLANNED, DRAINING, DRAINED, IN_PROGRESS = LIFECYCLE
WINDOWS = "maintenancewindows"


class Plan:
    """The windows of one test, and the state of their nodes."""

    def __init__(self, yard: Yard) -> None:
        self.yard, self.api = yard, yard.corner.api
        self.objects: Any = CustomObjectsApi(self.api.api_client)
        self.written: list[str] = []

    def window(self, *nodes: str, name: str = "", starts_in_s: float = 0, **spec: Any) -> str:
        """Write a window of an hour, whose nodes are emptied from now on."""
        name = f"{self.yard.corner.name}{name}"
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=starts_in_s)
        times = {"start": shown(start), "end": shown(start + timedelta(hours=1))}
        body = {
            "apiVersion": "/".join(OBJECTS),
            "kind": "MaintenanceWindow",
            "metadata": {"name": name},
            "spec": without_none({**times, "nodes": list(nodes), **spec}),
        }
        self.objects.create_cluster_custom_object(*OBJECTS, WINDOWS, body)
        self.written.append(name)
        return name

    def phases(self, name: str) -> dict[str, str]:
        return {each["name"]: each["phase"] for each in self.status(name).get("nodes", ())}

    def wait(self, name: str, **phases: str) -> None:
        def is_so() -> bool:
            found = self.phases(name)
            return all(found.get(node) == phase for node, phase in phases.items())

        try:
            wait_for(is_so, f"{name} is {phases}")
        except TimeoutError as exc:
            raise AssertionError(f"{self.phases(name)}, not {phases}") from exc

    def delete(self, name: str) -> None:
        self.objects.delete_cluster_custom_object(*OBJECTS, WINDOWS, name)
        self.written.remove(name)

    def change(self, name: str, **spec: Any) -> None:
        self.objects.patch_cluster_custom_object(*OBJECTS, WINDOWS, name, {"spec": spec})

    def status(self, name: str) -> dict[str, Any]:
        found = self.objects.get_cluster_custom_object(*OBJECTS, WINDOWS, name)
        status: dict[str, Any] = found.get("status", {})
        return status

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase"))

    def is_cordoned(self, node: str) -> bool:
        return bool(self.api.read_node(node).spec.unschedulable)

    def conditions(self, node: str) -> set[str]:
        found = self.api.read_node(node).status.conditions or ()
        return {each.type for each in found if each.type in LIFECYCLE and each.status == "True"}

    def wait_conditions(self, node: str, *kinds: str) -> None:
        """Wait for these conditions of a lifecycle and no others."""
        wait_for(lambda: self.conditions(node) == {*kinds}, f"{node} is {kinds}")

    def is_given_back(self, node: str) -> bool:
        found = self.api.read_node(node).metadata.annotations or {}
        is_marked = MAINTENANCE_ANNOTATION in found
        return not (is_marked or self.is_cordoned(node) or self.conditions(node))

    def wait_given_back(self, *nodes: str) -> None:
        for node in nodes:
            wait_for(partial(self.is_given_back, node), f"{node} is given back")

    def open_moves(self) -> list[str]:
        moves = self.yard.written()
        phases = (move.get("status", {}).get("phase", "Pending") for move in moves)
        return [phase for phase in phases if phase not in {"Succeeded", "Failed", "Aborted"}]


def without_none(spec: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in spec.items() if value is not None}


def shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
