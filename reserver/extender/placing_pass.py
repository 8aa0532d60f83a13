"""One pass of the placer over the reservations that have no place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod
from reserver.reservations.enums import StoreKind
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.closures import Nodes
from reserver.scheduling.placement import AllowedNodes, Placed, placing, room_for
from reserver.scheduling.state import State
from reserver.scheduling.suitability import moving_off
from reserver.scheduling.what_if import without

MOST_FAILED = 50
"""How many searches of one namespace may fail in a pass; what is left of it waits for the next. So
a namespace with a thousand reservations that fit nowhere does not keep the others waiting."""

PART_S = 1.0
"""For how long the searches for objects of one namespace work in a pass, in seconds; what is left
of it waits for the next. Slots that are judged beside each other take up to two seconds a search,
and the rest after a pass is three times as long. Managers' ConfigMaps are trusted with more."""


class Notice(NamedTuple):
    """An Event on a reservation.

    Attributes:
        ref: its place in the store.
        reason: in one word, as Events have it.
        is_warning: it has no place.
    """

    ref: Ref
    reason: str
    message: str
    is_warning: bool


@dataclass(slots=True)
class Unplaced:
    """A reservation without a place.

    Attributes:
        pod: what a slot of it is judged as.
        rules: which pods are its owners.
        shape: equal for those of which one fits where another one does.
        digest: of what it asks for.
        is_new: it was not tried as it is now.
        put_off: how many passes in a row ended for its namespace before its turn.
        said_at: when it was said why it has no place, unix seconds.
    """

    pod: Pod
    rules: tuple[OwnerRule, ...]
    shape: object
    digest: str
    is_new: bool = True
    put_off: int = 0
    said_at: float = 0.0


@dataclass(slots=True)
class PlacingPass:
    """What one pass has found so far.

    Attributes:
        changed: the nodes that have changed since the last one.
        helped: whether that may help reservations of a shape.
        hopeless: why so many slots of a shape have no place.
        allowed_nodes: where constraints let slots go.
        pacer: lets other work have its turn.
    """

    changed: list[str]
    pacer: Pacer
    helped: dict[object, bool] = field(default_factory=dict)
    hopeless: dict[object, Placed] = field(default_factory=dict)
    allowed_nodes: AllowedNodes = field(default_factory=AllowedNodes)
    _failures: Counter[str] = field(default_factory=Counter)
    _searched_s: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))

    def failed(self, namespace: str, key: object, found: Placed) -> None:
        """Note that so many slots of a shape have no place, which a namespace asked for."""
        if key not in self.hopeless:
            self._failures[namespace] += 1
            self.hopeless[key] = found

    def is_used_up_for(self, ref: Ref) -> bool:
        """Return whether the namespace of a reservation has had its part of this pass."""
        has_searched = self._searched_s[ref.namespace] >= PART_S
        is_late = has_searched and ref.kind is StoreKind.OBJECT
        return is_late or self._failures[ref.namespace] >= MOST_FAILED

    def may_help(self, wish: Unplaced, state: State) -> bool:
        """Return whether a slot fits on a changed node, or whether that cannot be told."""
        if not self.changed:
            return False
        helped = self.helped.get(wish.shape)
        if helped is None:
            rows = state.snapshot.rows([n for n in self.changed if state.snapshot.has_node(n)])
            helped = wish.pod.constraints.are_about_neighbours or bool(
                room_for(wish.pod, state, rows, wish.rules).any()
            )
            self.helped[wish.shape] = helped
        return helped

    async def find(self, reservation: Reservation, slots: int, state: State) -> Placed:
        """Find where slots go, giving way."""
        search = placing(reservation, slots, state, self.allowed_nodes)
        found = await self._searched(reservation.ref, search)
        if reservation.placement.constraints.are_about_neighbours:
            self.allowed_nodes.forget()  # Others may have had their turn.
        return found

    async def elsewhere(
        self, meanings: Sequence[Reservation], leaving: Nodes, state: State
    ) -> Placed:
        """Find another place for a reservation that has one, giving way.

        Args:
            meanings: what it asks for, one after the other, until there is a place.
            leaving: the nodes that it is to leave; others may keep its slots then.
        """
        ref = meanings[0].ref
        aside = partial(without, ref, state)
        for meant in meanings:
            search = placing(meant, meant.slots, state, aside=aside)
            search = moving_off(meant, leaving, state) if leaving else search
            found = await self._searched(ref, search)
            if found.parts:
                return found
        self.failed(ref.namespace, ref, found)
        return found

    async def _searched(self, ref: Ref, search: Generator[None, None, Placed]) -> Placed:
        """Return what a search finds, giving way; its work counts for the namespace."""
        before_s = self.pacer.worked_s
        try:
            return await self.pacer.run(search)
        finally:
            self._searched_s[ref.namespace] += self.pacer.worked_s - before_s


def shape_of(
    reservation: Reservation, pod: Pod, state: State, *, is_anywhere: bool
) -> tuple[object, ...]:
    """Return what is equal for reservations of which one fits where another one does.

    Args:
        pod: what a slot of it is judged as.
        is_anywhere: it may be elsewhere than its placement says.
    """
    return (
        pod.name.namespace,
        tuple(sorted(pod.labels.items())),
        tuple(sorted(pod.requests.items())),
        reservation.placement.text,
        reservation.is_seat,
        reservation.volume_claims,
        reservation.rules if reservation.is_whole else (),
        state.ledger.quotas.is_below_ceiling(reservation.ref.namespace),
        is_anywhere,
    )
