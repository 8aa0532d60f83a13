"""The entries of the stores."""

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
        ref: its ref.
        owner: namespace and name of its only owner; None for other owners.
        placed: slots by node, from Reserver's placement.
        claimants: UIDs of the pods whose claims are in its status.
    """

    ref: Ref
    owner: tuple[str, str] | None
    placed: dict[str, int] = field(default_factory=dict)
    claimants: frozenset[str] = frozenset()


def standing(api: Api) -> Iterator[Standing]:
    """Yield all entries of the storm's stores; ApiFault if they cannot be read."""
    statuses = _statuses(api)
    for store in (SPEC_STORE, LIST_STORE):
        for key, text in (api.get(path_of(store)).get("data") or {}).items():
            if text.startswith("["):
                for item in json.loads(text):
                    namespace, name = owner_of(item).split("/")
                    yield Standing(Ref(store, key, owner_of(item)), (namespace, name))
            else:
                spec = _spec(text)
                claims = json.loads(statuses.get(key, "{}")).get("claims") or ()
                yield _read(Ref(store, key), spec, spec.get("placements"), claims)
    for item in api.get(objects_path(OBJECT_STORE[0]))["items"]:
        status = item.get("status") or {}
        claims = (claim["uid"] for claim in status.get("claims") or ())
        ref = Ref(OBJECT_STORE, item["metadata"]["name"])
        yield _read(ref, item["spec"], status.get("placements"), claims)


def _statuses(api: Api) -> dict[str, str]:
    """Return the statuses in the store's companion ConfigMap, by key."""
    try:
        statuses: dict[str, str] = api.get(f"{path_of(SPEC_STORE)}-status").get("data") or {}
    except ApiFault as fault:
        if fault.status != HTTPStatus.NOT_FOUND:
            raise
        return {}
    return statuses


def follow(api: Api, groups: Groups, stop: threading.Event) -> None:
    """Update groups with the placements of their reservations, until stopped."""
    while not stop.is_set():
        with suppress(ApiFault):
            groups.placed({str(each.ref): each.placed for each in standing(api)})
        stop.wait(_PAUSE)


@lru_cache(4096)
def _spec(text: str) -> dict[str, Any]:
    """Parse an entry, cached as YAML is slow and each entry is read repeatedly."""
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
