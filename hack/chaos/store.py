"""A careful manager's writes: read, change one entry, write unless another client did."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from hack.bed.api import Api, ApiFault
from hack.chaos.forms import Form, Terms

Write = Callable[[str | None], None]
"""Writes the text of a ref, None to remove it."""

_PAUSE = 0.2  # seconds, after a request without an answer


@dataclass(frozen=True)
class Ref:
    """The place of a reservation; `item` is empty if it has its own key."""

    store: tuple[str, str]
    key: str
    item: str = ""

    def __str__(self) -> str:
        """Return the ref in the form of claims."""
        item = f"[{self.item}]" if self.item else ""
        return "/".join(filter(None, (*self.store, self.key))) + item

    @property
    def is_object(self) -> bool:
        """Whether it is a Reservation object, named by the key."""
        return not self.store[1]

    @classmethod
    def of(cls, form: Form, terms: Terms) -> Ref:
        """Return the ref of a reservation in a form."""
        if form.is_list:
            return cls(form.store, terms.node, terms.item)
        return cls(form.store, f"{terms.node}.{terms.owner}")


class Journal:
    """All writes that the API server has confirmed, as lines of JSON."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def write(self, ref: Ref, text: str | None) -> None:
        """Record the new text of an entry; None for a removal."""
        line: dict[str, Any] = {"at": time.time(), "op": "remove" if text is None else "put"}
        line |= {"configmap": "/".join(filter(None, ref.store)), "key": ref.key}
        if ref.item:
            line["item"] = ref.item
        if text is not None:
            line["value"] = text
        with self._lock:
            self._file.write(json.dumps(line) + "\n")


class StoreHand:
    """Writes entries, with a journal; all methods return only when the outcome is known.

    Attributes:
        stop: set to end all work.
    """

    def __init__(self, api: Api, journal: Journal, stop: threading.Event) -> None:
        self._api = api
        self._journal = journal
        self.stop = stop

    def put(self, ref: Ref, text: str) -> None:
        """Write an entry, new or in place of another."""
        self._change(ref, lambda _: text)

    def replace(self, ref: Ref, text: str) -> bool:
        """Write an entry in place of an existing one; return False without one."""
        return self._change(ref, lambda before: None if before is None else text)

    def remove(self, ref: Ref) -> bool:
        """Remove an entry; return False without one."""
        return self._change(ref, lambda _: None)

    def _change(self, ref: Ref, edit: Callable[[str | None], str | None]) -> bool:
        is_open = False  # a request without an answer may have been carried out
        while True:
            try:
                before, write = self._object(ref) if ref.is_object else self._key(ref)
                after = edit(before)
                if before != after:
                    write(after)
                elif not is_open:
                    return after is not None
                self._journal.write(ref, after)
            except ApiFault as fault:
                if fault.status == HTTPStatus.CONFLICT:
                    continue
                if fault.is_definite:
                    raise
                is_open = True
                self.stop.wait(_PAUSE)
            else:
                return True

    def _key(self, ref: Ref) -> tuple[str | None, Write]:
        """Return the text of an entry of a ConfigMap, and a function that writes it."""
        path = path_of(ref.store)
        configmap = self._api.get(path)
        value = (configmap.get("data") or {}).get(ref.key)

        def write(after: str | None) -> None:
            patch = {
                "metadata": {"resourceVersion": configmap["metadata"]["resourceVersion"]},
                "data": {ref.key: _value(ref, value, after)},
            }
            self._api.patch(path, patch)

        return _entry(ref, value), write

    def _object(self, ref: Ref) -> tuple[str | None, Write]:
        """Return the spec of a Reservation, and a function that creates, edits or deletes it."""
        path = f"{objects_path(ref.store[0])}/{ref.key}"
        try:
            item = self._api.get(path)
        except ApiFault as fault:
            if fault.status != HTTPStatus.NOT_FOUND:
                raise
            item = None

        def write(after: str | None) -> None:
            if item is None:
                kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
                said = {"metadata": {"name": ref.key}, "spec": json.loads(after or "")}
                self._api.create(objects_path(ref.store[0]), kind | said)
            elif after is None:
                self._api.delete(path, uid=item["metadata"]["uid"])
            else:
                version = {"resourceVersion": item["metadata"]["resourceVersion"]}
                self._api.patch(path, {"metadata": version, "spec": json.loads(after)})

        return json.dumps(item["spec"], sort_keys=True) if item else None, write


def objects_path(namespace: str) -> str:
    """Return the API server's path of a namespace's Reservations."""
    return f"/apis/reserver.io/v1alpha1/namespaces/{namespace}/reservations"


def path_of(store: tuple[str, str]) -> str:
    """Return the API server's path of a ConfigMap, given its namespace and name."""
    namespace, name = store
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def _entry(ref: Ref, value: str | None) -> str | None:
    """Return the text at a ref in a key's value."""
    if value is None or not ref.item:
        return value
    found = [item for item in json.loads(value) if owner_of(item) == ref.item]
    return json.dumps(found[0]) if found else None


def _value(ref: Ref, value: str | None, entry: str | None) -> str | None:
    """Return the key's value with another text at a ref, other items unchanged."""
    if not ref.item:
        return entry
    items = [item for item in json.loads(value or "[]") if owner_of(item) != ref.item]
    if entry is not None:
        items.append(json.loads(entry))
    return json.dumps(items) if items else None


def owner_of(item: dict[str, Any]) -> str:
    """Return the owner of a list's item, as namespace/name."""
    if "reservingPod" in item:
        return f"{item['reservingPodNamespace']}/{item['reservingPod']}"
    return f"{item['namespace']}/{item['pod']}"
