"""Edits of one entry, which fail if somebody else has changed it.

In a ConfigMap each is a JSON patch (RFC 6902) whose ``test`` makes the API server refuse it if the
key has another value; a Reservation is deleted with its UID and resourceVersion as preconditions.
So the other edit wins, and Reserver's is made again or dropped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reserver.errors import InvalidInput
from reserver.k8s.objects.times import show_moment
from reserver.reservations.outcome import Ending
from reserver.reservations.placement import Parts
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, lifetime_codec, placement_codec
from reserver.stores.configmap import list_codec


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one data key.

    Attributes:
        ref: the key, `item` empty.
        seen: the value that the edit replaces.
        value: the new value; None to remove the key.
        reason: for the log.
        endings: what became of the reservations that it removes because they are over.
        labels: to set on its object, as well, and with None to take away; a key of a ConfigMap has
            none.
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
        path = _path(self.ref.key)
        test = {"op": "test", "path": path, "value": self.seen}
        if self.value is None:
            return [test, {"op": "remove", "path": path}]
        return [test, {"op": "replace", "path": path, "value": self.value}]


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of a Reservation that is over.

    Attributes:
        path: its path in the API.
        uid: its UID.
        version: the resourceVersion that it must still have.
        reason: for the log.
        endings: what became of it, if it is deleted because it is over.
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
    """Return edits grouped by request: those of one ConfigMap, or one deletion."""
    batches: dict[str, list[Edit | Deletion]] = {}
    for edit in edits:
        batches.setdefault(edit.path, []).append(edit)
    return list(batches.values())


def insertion(entries: Mapping[str, str], *, into_empty: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that adds keys to a ConfigMap, all of them or none.

    To the API server an absent path equals null (evanphx/json-patch v4), so the tests keep the
    patch from overwriting anything.
    """
    if into_empty:
        return [
            {"op": "test", "path": "/data", "value": None},
            {"op": "add", "path": "/data", "value": dict(entries)},
        ]
    tests = [{"op": "test", "path": _path(key), "value": None} for key in entries]
    adds = [{"op": "add", "path": _path(key), "value": text} for key, text in entries.items()]
    return [*tests, *adds]


def _path(key: str) -> str:
    return "/data/" + key.replace("~", "~0").replace("/", "~1")


MOST_REMOVED = 250
"""Items of a list that one edit removes: each is read once more, which takes a hundredth of a
second for as many. The rest goes with the next edit."""


def remove(ref: Ref, seen: str, over: Collection[Reservation]) -> Edit | None:
    """Return the edit that removes `MOST_REMOVED` reservations of a list at most; None without any.

    Everything else in the list is kept as it is, broken items included.
    """
    items, identities = document.split_list(seen), {each.ref.item: each.identity for each in over}
    left = [item for item in items if not _is_over(item, ref, identities)]
    if len(left) == len(items):
        return None
    value = f"[{', '.join(left)}]" if left else None
    return Edit(ref, seen, value, "over")


def complete(ref: Ref, seen: str, reservation: Reservation, placed: Parts) -> Edit | None:
    """Return the edit that completes an entry; None if it is complete.

    It adds when an entry with a ttl expires, and where one without a node is placed. Comments and
    layout of a YAML value are kept if the lines can simply be appended.
    """
    said = document.parse(seen)
    news: dict[str, str] = {}
    wanted = dict(said)
    if lifetime_codec.needs_stamp(said) and reservation.expires_at is not None:
        wanted["expiresAt"] = news["expiresAt"] = show_moment(reservation.expires_at)
    if placed != reservation.placed:
        wanted["placements"] = parts = placement_codec.show_parts(placed)
        news["placements"] = json.dumps(parts)
    if not news:
        return None
    reason = "placed" if "placements" in news else "stamp"
    if not seen.lstrip().startswith("{"):
        kept = [line for line in seen.rstrip().split("\n") if line.partition(":")[0] not in news]
        lines = [f"{name}: {text}" for name, text in news.items()]
        appended = "\n".join([*kept, *lines, ""])
        if _parse_or_none(appended) == wanted:
            return Edit(ref, seen, appended, reason)
    return Edit(ref, seen, json.dumps(wanted, ensure_ascii=False), reason)


def _is_over(item: str, ref: Ref, over: Mapping[str, str]) -> bool:
    name = list_codec.name_of(item)
    if name is not None and name not in over:
        return False  # Most are not, and to read one takes fifty times as long.
    try:
        reservation = list_codec.read_item(document.parse(item), ref)
    except InvalidInput:
        return False
    return over.get(reservation.ref.item) == reservation.identity


def _parse_or_none(text: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    try:
        return document.parse(text)
    except InvalidInput:
        return None
