"""Edits of Reservation objects: what is sent to create, replace and complete them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref
from reserver.stores.configmap.entry_edits import Deletion, Edit
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
    """Return a Reservation to be created.

    Args:
        text: its spec, as JSON.
        labels: that somebody asks for; may be empty.
        set_id: the set that it is a member of, ``NAMESPACE/ID``; empty if it stands alone.
        size: of the set, if this one leads it; else 0.
        owner: its owner reference: it goes with that object; None for nobody's.
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
    """Return the JSON patch that replaces an object's spec, if it is still the one seen.

    It is sent back byte by byte, since the API server compares numbers and strings so
    (evanphx/json-patch v4). A status that was written meanwhile does not matter, nor do labels that
    are not set here.

    Args:
        of: metadata of the object, as it was seen.
        seen: its spec.
        text: the new spec, as JSON.
        labels: to set, and with None to take away; all others stay.
    """
    return [
        {"op": "test", "path": "/metadata/uid", "value": of.uid},
        {"op": "test", "path": "/spec", "value": msgspec.Raw(seen)},
        {"op": "replace", "path": "/spec", "value": msgspec.Raw(text.encode())},
        *_labelling(labels, of.labels or {}),
    ]


def _labelling(
    labels: Mapping[str, str | None], seen: Mapping[str, str]
) -> list[dict[str, object]]:
    path = "/metadata/labels"
    if labels and not seen:  # To the API server null is what is not there, as in `edits.insertion`.
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
    """Return the JSON patch that marks a set as complete, if nobody has abandoned it meanwhile."""
    return [*_as_seen(first), {"op": "remove", "path": _UNFINISHED}]


@dataclass(frozen=True, slots=True)
class Abandonment:
    """The write after which a set can be finished no more, on its first member.

    It fails if the set has been finished meanwhile. Only what it has been made for is deleted.

    Attributes:
        ref: of the first member.
        path: its path in the API.
        first: its metadata, as they were seen.
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


Tidying = Edit | Deletion | Abandonment
"""A write of the cleaner."""


def _as_seen(first: ObjectMetadata) -> list[dict[str, object]]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": first.uid},
        {"op": "test", "path": _UNFINISHED, "value": first.unfinished},
    ]
