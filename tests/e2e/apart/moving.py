"""PodMoves of a corner of the cluster, and the seats that they hold."""

from __future__ import annotations

from typing import Any

from kubernetes.client import (
    CustomObjectsApi,
)

from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECTS

ENDED = {"Succeeded", "Failed", "Aborted"}


class Moving:
    """PodMoves of a corner of the cluster."""

    def __init__(self, corner: Corner) -> None:
        self.corner = corner
        self._objects: Any = CustomObjectsApi(corner.api.api_client)

    def move(self, name: str, pod: str | dict[str, str], **spec: Any) -> str:
        body = {
            "apiVersion": "/".join(OBJECTS),
            "kind": "PodMove",
            "metadata": {"name": name},
            "spec": {"pod": pod if isinstance(pod, dict) else {"name": pod}, **spec},
        }
        where = (*OBJECTS, self.corner.name, "podmoves")
        self._objects.create_namespaced_custom_object(*where, body)
        return name

    def declare(self, members: list[dict[str, str]]) -> None:
        """Create a PodMoveGroup of the corner's name."""
        body = {
            "apiVersion": "/".join(OBJECTS),
            "kind": "PodMoveGroup",
            "metadata": {"name": self.corner.name},
            "spec": {"members": members},
        }
        self._objects.create_cluster_custom_object(*OBJECTS, "podmovegroups", body)

    def declared(self) -> list[str]:
        """Return the names of all PodMoveGroups."""
        found = self._objects.list_cluster_custom_object(*OBJECTS, "podmovegroups")["items"]
        return [item["metadata"]["name"] for item in found]

    def status(self, name: str) -> dict[str, Any]:
        where = (*OBJECTS, self.corner.name, "podmoves", name)
        found: dict[str, Any] = self._objects.get_namespaced_custom_object(*where)
        status: dict[str, Any] = found.get("status", {})
        return status

    def wait_phase(
        self, name: str, *phases: str, reason: str = "", says: str = ""
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def has_come() -> bool:
            nonlocal found
            found = self.status(name)
            is_right = found.get("phase") in phases and reason in {"", found.get("reason")}
            is_right = is_right and says in found.get("message", "")
            return is_right or found.get("phase") in ENDED

        try:
            wait_for(has_come, f"{name} is {phases} {reason}")
        except TimeoutError as exc:
            raise AssertionError(f"{name}: {found}, seats {self.seats()}") from exc
        assert found["phase"] in phases, found
        assert reason in {"", found["reason"]}, found
        assert says in found["message"], found
        return found

    def written(self) -> list[dict[str, Any]]:
        where = (*OBJECTS, self.corner.name, "podmoves")
        found: list[dict[str, Any]] = self._objects.list_namespaced_custom_object(*where)["items"]
        return found

    def change(self, name: str, **spec: Any) -> None:
        where = (*OBJECTS, self.corner.name, "podmoves", name)
        self._objects.patch_namespaced_custom_object(*where, {"spec": spec})

    def exists(self, name: str) -> bool:
        return name in [item["metadata"]["name"] for item in self.written()]

    def delete(self, name: str) -> None:
        where = (*OBJECTS, self.corner.name, "podmoves", name)
        self._objects.delete_namespaced_custom_object(*where)

    def seats(self) -> dict[str, Any]:
        """Return the status of each seat, by its name."""
        where = (*OBJECTS, self.corner.name, "reservations")
        items = self._objects.list_namespaced_custom_object(*where)["items"]
        return {item["metadata"]["name"]: item.get("status") for item in items}

    def wait_released(self) -> None:
        wait_for(lambda: not self.seats(), "no seat is left")
