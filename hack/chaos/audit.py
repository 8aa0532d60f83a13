"""What the manager and reserver make of each other's work when all has settled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from hack.bed.api import Api
from hack.bed.replicas import Replicas
from hack.chaos.book import Book, Hold
from hack.chaos.group_audit import GroupRemains
from hack.chaos.groups import Groups
from hack.chaos.standing import standing


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
        entries: how many there are for pods that they name and that have not expired, others'
            included.
        held: how many reservations are active besides those for groups, says reserver.
        lost: owners whose reservation is gone though nothing ended it.
        leaked: owners who landed, but whose reservation still stands.
        forgotten: the same, where the pod is gone, and with it the claim that was on it.
        unseen: the same, where reserver may have seen the reservation only after they had landed.
        groups: of those for groups.
    """

    entries: int
    held: int
    lost: tuple[str, ...]
    leaked: tuple[str, ...]
    forgotten: tuple[str, ...]
    unseen: tuple[str, ...]
    groups: GroupRemains

    @classmethod
    def of(cls, api: Api, book: Book, groups: Groups, namespace: str, reserver: Replicas) -> Self:
        """Compares; call it when the manager writes no more."""
        found = list(standing(api))
        owners = [each.owner for each in found if each.owner]
        mine = {name for space, name in owners if space == namespace}
        now, holds = time.time(), {hold.terms.owner: hold for hold in book.written}
        expired = {name for name in mine if now >= holds[name].terms.expires}
        live = book.live()
        wanted = {hold.terms.owner for hold in live}
        missed = {hold.terms.owner for hold in live if hold.was_missed}
        kinds: dict[str, list[str]] = {"leaked": [], "forgotten": [], "unseen": []}
        for name in sorted(mine - wanted - expired):
            kinds[_kind(holds[name], book)].append(name)
        others = GroupRemains.of(found, book, groups, reserver.metric)
        active = reserver.metric('reserver_reservations{phase="Active"}')
        return cls(
            entries=len(owners) - len(expired),
            held=round(active) - others.active,
            lost=tuple(sorted(wanted - mine - missed)),
            groups=others,
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
        yield from self.groups.violations


def _kind(hold: Hold, book: Book) -> str:
    if hold.landed_on and not hold.was_seen:
        return "unseen"
    return "forgotten" if hold.landed_on and book.pod(hold.terms.owner) is None else "leaked"
