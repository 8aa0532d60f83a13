"""What the manager and reserver make of each other's work when all has settled."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import yaml

from hack.chaos.api import Api
from hack.chaos.book import Book, Hold
from hack.chaos.forms import LIST_STORE, OBJECT_STORE, SPEC_STORE
from hack.chaos.replicas import Replicas
from hack.chaos.store import objects_path, owner_of, path_of


@dataclass(frozen=True)
class Landings:
    """What became of owners whose reservation lived until they were bound, or to the end.

    Attributes:
        lived: how many there were.
        missed: one line for each that is not on its seat.
        waiting: how many of these are bound nowhere.
    """

    lived: int
    missed: tuple[str, ...]
    waiting: int

    @classmethod
    def of(cls, book: Book) -> Self:
        """Counts them; call it when nothing moves any more."""
        now = time.time()
        lived = [
            hold
            for hold in book.written
            if hold.was_awaited and hold.had_room and (hold.landed_on or hold.holds(now))
        ]
        missed = [hold for hold in lived if hold.landed_on != hold.terms.node]
        waiting = sum(not hold.landed_on for hold in missed)
        return cls(len(lived), tuple(_tell(hold) for hold in missed), waiting)


def _tell(hold: Hold) -> str:
    terms = hold.terms
    what = f"{terms.item} ({terms.cpu}m, {hold.form.name}, {terms.policy})"
    return f"{what}: seat on {terms.node}, {hold.landed_on or 'still pending'}"


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What stands in the stores against what the manager wants to stand there.

    Attributes:
        entries: how many there are that have not expired, others' included.
        held: how many reservations are active, says reserver.
        lost: owners whose reservation is gone though nothing ended it.
        leaked: owners who landed, but whose reservation still stands.
        forgotten: the same, where the pod is gone, and with it the claim that was on it.
        unseen: the same, where reserver may have seen the reservation only after they had landed.
    """

    entries: int
    held: int
    lost: tuple[str, ...]
    leaked: tuple[str, ...]
    forgotten: tuple[str, ...]
    unseen: tuple[str, ...]

    @classmethod
    def of(cls, api: Api, book: Book, namespace: str, reserver: Replicas) -> Self:
        """Compares; call it when the manager writes no more."""
        found = list(_owners(api))
        mine = {name for space, name in found if space == namespace}
        now, holds = time.time(), {hold.terms.owner: hold for hold in book.written}
        expired = {name for name in mine if now >= holds[name].terms.expires}
        wanted = {hold.terms.owner for hold in book.live()}
        kinds: dict[str, list[str]] = {"leaked": [], "forgotten": [], "unseen": []}
        for name in sorted(mine - wanted - expired):
            kinds[_kind(holds[name], book)].append(name)
        return cls(
            entries=len(found) - len(expired),
            held=round(reserver.metric('reserver_reservations{phase="Active"}')),
            lost=tuple(sorted(wanted - mine)),
            **{kind: tuple(names) for kind, names in kinds.items()},
        )

    def violations(self) -> Iterator[str]:
        """Yields what must not be."""
        for what in ("lost", "leaked"):
            if names := getattr(self, what):
                yield f"reservations {what}: {', '.join(names)}"
        for what in ("forgotten", "unseen"):
            if names := getattr(self, what):
                yield f"claims {what}: {', '.join(names)}"
        if self.held != self.entries:
            yield f"reserver holds {self.held} reservations, the stores say {self.entries}"


def _kind(hold: Hold, book: Book) -> str:
    if hold.landed_on and not hold.was_seen:
        return "unseen"
    return "forgotten" if hold.landed_on and book.pod(hold.terms.owner) is None else "leaked"


def _owners(api: Api) -> Iterator[tuple[str, str]]:
    """Yields namespace and name of the owner of each entry in the stores."""
    for store in (SPEC_STORE, LIST_STORE):
        for text in (api.get(path_of(store)).get("data") or {}).values():
            if text.startswith("["):
                for item in json.loads(text):
                    namespace, name = owner_of(item).split("/")
                    yield namespace, name
            else:
                pod: dict[str, Any] = yaml.safe_load(text)["owners"][0]["pod"]
                yield pod["namespace"], pod["name"]
    for item in api.get(objects_path(OBJECT_STORE[0]))["items"]:
        pod = item["spec"]["owners"][0]["pod"]
        yield pod["namespace"], pod["name"]
