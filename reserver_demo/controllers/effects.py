"""The writes of controllers."""

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
    """An object to delete, if it still exists."""

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


def with_conditions(old: Json, conditions: Iterable[Json], now: str) -> list[Json]:
    """Return conditions with their lastTransitionTime; `old` is the former status."""
    before = {each["type"]: each for each in old.get("conditions", ())}
    timed = []
    for each in conditions:
        was = before.get(each["type"], {})
        since = was.get("lastTransitionTime", now) if was.get("status") == each["status"] else now
        timed.append({"lastTransitionTime": since, **each})
    return timed
