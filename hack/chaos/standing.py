"""What stands in the stores."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import yaml

from hack.bed.api import Api, ApiFault
from hack.bed.install import LIST_STORE, SPEC_STORE
from hack.chaos.forms import OBJECT_STORE
from hack.chaos.groups import Groups
from hack.chaos.store import Ref, objects_path, owner_of, path_of

_PAUSE = 0.5  # seconds


@dataclass(frozen=True)
class Standing:
    """One entry.

    Attributes:
        ref: where.
        owner: namespace and name of the pod that it names first; None if it begins with others.
        placed: slots by node, if reserver has placed it.
        claimants: UIDs of the pods of which it is written down that they took slots for good.
    """

    ref: Ref
    owner: tuple[str, str] | None
    placed: dict[str, int] = field(default_factory=dict)
    claimants: frozenset[str] = frozenset()


def standing(api: Api) -> Iterator[Standing]:
    """Yields all entries of the storm's stores; ApiFault if they cannot be read."""
    said = _said(api)
    for store in (SPEC_STORE, LIST_STORE):
        for key, text in (api.get(path_of(store)).get("data") or {}).items():
            if text.startswith("["):
                for item in json.loads(text):
                    namespace, name = owner_of(item).split("/")
                    yield Standing(Ref(store, key, owner_of(item)), (namespace, name))
            else:
                spec = _spec(text)
                claims = json.loads(said.get(key, "{}")).get("claims") or ()
                yield _read(Ref(store, key), spec, spec.get("placements"), claims)
    for item in api.get(objects_path(OBJECT_STORE[0]))["items"]:
        status = item.get("status") or {}
        claims = (claim["uid"] for claim in status.get("claims") or ())
        ref = Ref(OBJECT_STORE, item["metadata"]["name"])
        yield _read(ref, item["spec"], status.get("placements"), claims)


def _said(api: Api) -> dict[str, str]:
    """Returns what the companion of the store says, by key."""
    try:
        said: dict[str, str] = api.get(f"{path_of(SPEC_STORE)}-status").get("data") or {}
    except ApiFault as fault:
        if fault.status != HTTPStatus.NOT_FOUND:
            raise
        return {}
    return said


def follow(api: Api, groups: Groups, stop: threading.Event) -> None:
    """Has groups know where reserver has placed their reservations, until stopped."""
    while not stop.is_set():
        with suppress(ApiFault):
            groups.placed({str(each.ref): each.placed for each in standing(api)})
        stop.wait(_PAUSE)


@lru_cache(4096)
def _spec(text: str) -> dict[str, Any]:
    """Reads an entry; each is seen again and again, and YAML takes its time."""
    spec: dict[str, Any] = yaml.safe_load(text)
    return spec


def _read(
    ref: Ref,
    spec: dict[str, Any],
    placements: list[dict[str, Any]] | None,
    claims: Iterable[str],
) -> Standing:
    first = spec["owners"][0]
    is_named = first.keys() == {"pod"} and len(spec["owners"]) == 1
    owner = (first["pod"]["namespace"], first["pod"]["name"]) if is_named else None
    placed = {part["node"]: part["slots"] for part in placements or ()}
    return Standing(ref, owner, placed, frozenset(claims))
