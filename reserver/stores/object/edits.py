"""The request bodies that create, replace and complete Reservation objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref
from reserver.stores.object.codec import (
    ABANDONED,
    API_VERSION,
    KIND,
    SET_LABEL,
    UNFINISHED_ANNOTATION,
    ObjectMetadata,
)

_UNFINISHED = "/metadata/annotations/" + UNFINISHED_ANNOTATION.replace("/", "~1")


def manifest(
    ref: Ref,
    text: str,
    labels: Mapping[str, str],
    set_id: str = "",
    size: int = 0,
    owner: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return a Reservation to create.

    Args:
        text: the spec, as JSON.
        labels: the labels of the request; may be empty.
        set_id: the set of the object, ``NAMESPACE/ID``; empty without a set.
        size: the number of members, for the first member of a set; else 0.
        owner: the owner reference, for garbage collection; None without an owner.
    """
    metadata: dict[str, object] = {"name": ref.key, "namespace": ref.namespace}
    of_set = {SET_LABEL: set_id.rpartition("/")[2]} if set_id else {}
    if labels or of_set:
        metadata["labels"] = {**labels, **of_set}
    if size:
        metadata["annotations"] = {UNFINISHED_ANNOTATION: str(size)}
    if owner:
        metadata["ownerReferences"] = [owner]
    spec = msgspec.Raw(text.encode())
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def replacement(
    of: ObjectMetadata, seen: bytes, text: str, labels: Mapping[str, str | None]
) -> list[dict[str, object]]:
    """Return the JSON patch that replaces an object's spec, if the spec is still `seen`.

    The seen spec is sent back unmodified, as the API server compares numbers and strings by bytes
    (evanphx/json-patch v4). Concurrent changes of the status and of other labels do not matter.

    Args:
        of: the cached metadata of the object.
        seen: the cached spec; empty if it is not kept: then the whole object must be unchanged.
        text: the new spec, as JSON.
        labels: labels to set, or with None to remove; other labels stay.
    """
    unchanged: dict[str, object] = {"path": "/spec", "value": msgspec.Raw(seen)}
    if not seen:
        unchanged = {"path": "/metadata/resourceVersion", "value": of.resource_version}
    return [
        {"op": "test", "path": "/metadata/uid", "value": of.uid},
        {"op": "test", **unchanged},
        {"op": "replace", "path": "/spec", "value": msgspec.Raw(text.encode())},
        *_labelling(labels, of.labels or {}),
    ]


def _labelling(
    labels: Mapping[str, str | None], seen: Mapping[str, str]
) -> list[dict[str, object]]:
    path = "/metadata/labels"
    if labels and not seen:  # To the API server an absent path equals null, as in `insertion`.
        return [
            {"op": "test", "path": path, "value": None},
            {"op": "add", "path": path, "value": dict(labels)},
        ]
    patch: list[dict[str, object]] = []
    for key, value in labels.items():
        where = f"{path}/{key.replace('/', '~1')}"
        if value is None:
            patch.append({"op": "remove", "path": where})
        else:
            patch.append({"op": "add", "path": where, "value": value})
    return patch


def completion(first: ObjectMetadata) -> list[dict[str, object]]:
    """Return the JSON patch that marks a set as complete; it fails if the set was abandoned."""
    return [*_as_seen(first), {"op": "remove", "path": _UNFINISHED}]


@dataclass(frozen=True, slots=True)
class Abandonment:
    """The write that marks the first member of a set as abandoned, so that no writer finishes it.

    It fails if the set was finished meanwhile. Members are deleted only after this write.

    Attributes:
        ref: the ref of the first member.
        path: the path of the first member in the API.
        first: the cached metadata of the first member.
    """

    ref: Ref
    path: str
    first: ObjectMetadata

    reason: ClassVar[str] = "Unfinished"
    endings: ClassVar[tuple[Ending, ...]] = ()

    def patch(self) -> list[dict[str, object]]:
        """Return the JSON patch."""
        return [
            *_as_seen(self.first),
            {"op": "replace", "path": _UNFINISHED, "value": ABANDONED},
        ]


def _as_seen(first: ObjectMetadata) -> list[dict[str, object]]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": first.uid},
        {"op": "test", "path": _UNFINISHED, "value": first.unfinished},
    ]
