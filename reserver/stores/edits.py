"""Edits of one entry, which fail if another client has changed the entry.

In a ConfigMap an edit is a JSON patch (RFC 6902) whose ``test`` makes the API server refuse the
patch if the key has another value; the deletion of a Reservation has UID and resourceVersion as
preconditions. So the other edit wins, and Reserver repeats or drops its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref


class Patch(Protocol):
    """A change of one object of a store by a JSON patch."""

    @property
    def ref(self) -> Ref:
        """The ref of the changed entry."""

    @property
    def path(self) -> str:
        """The path of the object in the API."""

    @property
    def reason(self) -> str:
        """The reason for the log."""

    @property
    def endings(self) -> tuple[Ending, ...]:
        """The endings of the ended reservations that the change removes."""

    def patch(self) -> Sequence[Mapping[str, object]]:
        """Return the JSON patch."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one data key.

    Attributes:
        ref: the key, `item` empty.
        seen: the value that the edit replaces.
        value: the new value; None to remove the key.
        reason: the reason for the log.
        endings: the endings of the ended reservations that the edit removes.
        labels: labels to set on the object, or with None to remove; empty for a ConfigMap.
    """

    ref: Ref
    seen: str
    value: str | None
    reason: str
    endings: tuple[Ending, ...] = field(default=(), compare=False)
    labels: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    @property
    def path(self) -> str:
        """The ConfigMap's path in the API."""
        return f"/api/v1/namespaces/{self.ref.namespace}/configmaps/{self.ref.configmap}"

    def patch(self) -> list[dict[str, str]]:
        """Return the JSON patch."""
        path = data_path(self.ref.key)
        test = {"op": "test", "path": path, "value": self.seen}
        if self.value is None:
            return [test, {"op": "remove", "path": path}]
        return [test, {"op": "replace", "path": path, "value": self.value}]


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of a Reservation.

    Attributes:
        path: the path of the object in the API.
        uid: the UID of the object, as a precondition.
        version: its resourceVersion, as a precondition.
        reason: the reason for the log.
        endings: its ending, if the reservation has ended.
    """

    ref: Ref
    path: str
    uid: str
    version: str
    reason: str
    endings: tuple[Ending, ...] = field(default=(), compare=False)

    def options(self) -> dict[str, object]:
        """Return the DeleteOptions."""
        return {"preconditions": {"uid": self.uid, "resourceVersion": self.version}}


def together(edits: Iterable[Edit | Deletion]) -> list[list[Edit | Deletion]]:
    """Return edits grouped by request: all edits of one ConfigMap, or one deletion."""
    batches: dict[str, list[Edit | Deletion]] = {}
    for edit in edits:
        batches.setdefault(edit.path, []).append(edit)
    return list(batches.values())


Tidying = Patch | Deletion
"""A write of the cleaner."""


def data_path(key: str) -> str:
    """Return the JSON pointer (RFC 6901) to a data key of a ConfigMap."""
    return "/data/" + key.replace("~", "~0").replace("/", "~1")
