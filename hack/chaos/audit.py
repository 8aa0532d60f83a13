"""Comparison of the manager's book with Reserver's state, once all has settled."""

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
    """The landings of owners whose reservation lived until they were bound, or to the end.

    Attributes:
        lived: number of these owners.
        missed: one line for each owner that is not on its seat.
        waiting: number of missed owners without a node.
    """

    lived: int
    missed: tuple[str, ...]
    waiting: int

    @classmethod
    def of(cls, book: Book) -> Self:
        """Count the landings of a book in which nothing changes any more."""
        now = time.time()
        lived = [
            hold
            for hold in book.written
            if hold.was_awaited and hold.had_room and (hold.landed_on or hold.holds(now))
        ]
        missed = [hold for hold in lived if hold.landed_on != hold.terms.node]
        waiting = sum(not hold.landed_on for hold in missed)
        return cls(len(lived), tuple(_line(hold) for hold in missed), waiting)


def _line(hold: Hold) -> str:
    terms = hold.terms
    what = f"{terms.item} ({terms.cpu}m, {hold.form.name}, {terms.policy})"
    return f"{what}: seat on {terms.node}, {hold.landed_on or 'still pending'}"


@dataclass(frozen=True, kw_only=True)
class Remains:
    """The entries of the stores, compared with those that the manager expects.

    Attributes:
        entries: entries for named pods that have not expired, including other managers'.
        held: active reservations without those for groups, by Reserver's metric.
        lost: owners whose reservation is gone although nothing ended it.
        leaked: owners that landed, but whose reservation still exists.
        forgotten: leaked owners whose pod is gone, and with it the record of the claim.
        unseen: leaked owners that landed before Reserver must have seen the reservation.
        groups: the comparison for groups.
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
        """Compare; call it when the manager does not write any more."""
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
        """Yield the violations."""
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
