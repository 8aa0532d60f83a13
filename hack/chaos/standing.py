"""What stands in the stores."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from hack.chaos.api import Api, ApiFault
from hack.chaos.forms import LIST_STORE, OBJECT_STORE, SPEC_STORE
from hack.chaos.groups import Groups
from hack.chaos.store import Place, objects_path, owner_of, path_of

_PAUSE = 0.5  # seconds


@dataclass(frozen=True)
class Standing:
    """One entry.

    Attributes:
        place: where.
        owner: namespace and name of the pod that it names first; None if it begins with others.
        placed: slots by node, if reserver has placed it.
    """

    place: Place
    owner: tuple[str, str] | None
    placed: dict[str, int] = field(default_factory=dict)


def standing(api: Api) -> Iterator[Standing]:
    """Yields all entries of the storm's stores; ApiFault if they cannot be read."""
    for store in (SPEC_STORE, LIST_STORE):
        for key, text in (api.get(path_of(store)).get("data") or {}).items():
            if text.startswith("["):
                for item in json.loads(text):
                    namespace, name = owner_of(item).split("/")
                    yield Standing(Place(store, key, owner_of(item)), (namespace, name))
            else:
                spec = _spec(text)
                yield _read(Place(store, key), spec, spec.get("placements"))
    for item in api.get(objects_path(OBJECT_STORE[0]))["items"]:
        placements = (item.get("status") or {}).get("placements")
        yield _read(Place(OBJECT_STORE, item["metadata"]["name"]), item["spec"], placements)


def follow(api: Api, groups: Groups, stop: threading.Event) -> None:
    """Has groups know where reserver has placed their reservations, until stopped."""
    while not stop.is_set():
        with suppress(ApiFault):
            groups.placed({str(each.place): each.placed for each in standing(api)})
        stop.wait(_PAUSE)


@lru_cache(4096)
def _spec(text: str) -> dict[str, Any]:
    """Reads an entry; each is seen again and again, and YAML takes its time."""
    spec: dict[str, Any] = yaml.safe_load(text)
    return spec


def _read(place: Place, spec: dict[str, Any], placements: list[dict[str, Any]] | None) -> Standing:
    first = spec["owners"][0]
    is_named = first.keys() == {"pod"} and len(spec["owners"]) == 1
    owner = (first["pod"]["namespace"], first["pod"]["name"]) if is_named else None
    return Standing(place, owner, {part["node"]: part["slots"] for part in placements or ()})
