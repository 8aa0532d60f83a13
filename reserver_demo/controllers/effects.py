"""What a controller wants written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.store import Key


class Create(NamedTuple):
    """An object to create, in its namespace."""

    plural: str
    body: Json


class Delete(NamedTuple):
    """An object to delete, if it is still there."""

    plural: str
    key: Key


class Change(NamedTuple):
    """Top-level fields of an object to replace."""

    plural: str
    key: Key
    fields: Json
    subresource: str = ""


Effect = Create | Delete | Change


def key_of(content: Json) -> Key:
    """Return the key of an object."""
    return Key(content["metadata"].get("namespace", ""), content["metadata"]["name"])


def with_conditions(old: Json, wanted: Iterable[Json], now: str) -> list[Json]:
    """Return conditions with the time since which each has its status; `old` is the old status."""
    before = {each["type"]: each for each in old.get("conditions", ())}
    said = []
    for each in wanted:
        was = before.get(each["type"], {})
        since = was.get("lastTransitionTime", now) if was.get("status") == each["status"] else now
        said.append({"lastTransitionTime": since, **each})
    return said
