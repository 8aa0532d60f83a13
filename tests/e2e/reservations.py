"""Reservations as their owners write them: objects, and entries of ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import yaml
from kubernetes.client import CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from tests.e2e.forms import OBJECTS, Form


class WrittenReservations:
    """The Reservations of a namespace, and the entries of stores that name it.

    Attributes:
        api: core API of the cluster.
        name: of the namespace.
    """

    api: Any
    name: str

    @property
    def _objects(self) -> Any:
        return CustomObjectsApi(self.api.api_client)

    def write_object(
        self, name: str, spec: Mapping[str, Any], namespace: str | None = None, **metadata: Any
    ) -> str:
        """Create a Reservation, or change its spec; return its name."""
        body = {
            "apiVersion": "/".join(OBJECTS),
            "kind": "Reservation",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        where = (*OBJECTS, namespace or self.name, "reservations")
        try:
            self._objects.create_namespaced_custom_object(*where, body)
        except ApiException as exc:
            if exc.status != HTTPStatus.CONFLICT:
                raise
            self._objects.patch_namespaced_custom_object(*where, name, body)
        return name

    def write_object_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Change fields of a Reservation's status."""
        where = (*OBJECTS, self.name, "reservations", name)
        body = {"status": status}
        self._objects.patch_namespaced_custom_object_status(*where, body)

    def object(self, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """Return a Reservation, None when there is none."""
        where = (*OBJECTS, namespace or self.name, "reservations", name)
        try:
            found: dict[str, Any] = self._objects.get_namespaced_custom_object(*where)
        except ApiException as exc:
            if exc.status != HTTPStatus.NOT_FOUND:
                raise
            return None
        return found

    def delete_object(self, name: str, namespace: str | None = None) -> None:
        where = (*OBJECTS, namespace or self.name, "reservations", name)
        self._objects.delete_namespaced_custom_object(*where)

    def _delete_objects(self, namespace: str) -> None:
        """Delete this test's Reservations in a namespace that all tests use."""
        where = (*OBJECTS, namespace, "reservations")
        items = self._objects.list_namespaced_custom_object(*where)["items"]
        for name in (item["metadata"]["name"] for item in items):
            if self.name in name:
                with suppress(ApiException):  # Reserver may have been faster.
                    self.delete_object(name, namespace)

    def texts(self, form: Form) -> dict[str, str]:
        """Return the entries of a form's store, by data key or by the object's name."""
        if not form.is_object:
            return self.keys(form.store)
        where = (*OBJECTS, self.name, "reservations")
        items = self._objects.list_namespaced_custom_object(*where)["items"]
        return {item["metadata"]["name"]: yaml.safe_dump(item["spec"]) for item in items}

    def entries_for(self, form: Form, pod: str) -> list[str]:
        """Return the entries of a store that hold something for a pod of this namespace."""
        keys = self.texts(form)
        return [key for key, text in keys.items() if self.name in text and pod in text]

    def patch_store(
        self, store: tuple[str, str], data: Mapping[str, str | None], version: str | None = None
    ) -> None:
        patch: dict[str, Any] = {"data": data}
        if version:
            patch["metadata"] = {"resourceVersion": version}
        self.api.patch_namespaced_config_map(store[1], store[0], patch)

    def keys(self, store: tuple[str, str]) -> dict[str, str]:
        return self.api.read_namespaced_config_map(store[1], store[0]).data or {}
