"""One pass of the placer over the reservations without a place."""

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
"""Most failed searches of one namespace in a pass; its other reservations wait for the next pass.
So a thousand reservations that fit nowhere do not delay other namespaces."""

PART_S = 1.0
"""Seconds of searches for one namespace's objects in a pass; its other objects wait for the next
pass. Slots that depend on each other take up to two seconds a search, and the pause after a pass is
three times its length. Managers' ConfigMaps are trusted, and have no such limit."""


class Notice(NamedTuple):
    """An Event on a reservation.

    Attributes:
        ref: the ref of the reservation.
        reason: the reason of the Event.
        is_warning: whether it is a warning: the reservation has no place.
    """

    ref: Ref
    reason: str
    message: str
    is_warning: bool


@dataclass(slots=True)
class Unplaced:
    """A reservation without a place.

    Attributes:
        pod: the pod that stands for one slot.
        rules: its owner rules.
        shape: equal for reservations that fit on the same nodes.
        digest: the digest of its spec.
        is_new: its present spec was not tried yet.
        put_off: the number of passes in a row that ended for its namespace before its turn.
        said_at: the last report of its obstacle, unix seconds.
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
    """The results of a pass so far.

    Attributes:
        changed: the nodes that have changed since the last pass.
        helped: whether these may help reservations of a shape.
        hopeless: the failed search for each shape and number of slots.
        allowed_nodes: the cache of nodes that constraints allow.
        pacer: yields to other work.
    """

    changed: list[str]
    pacer: Pacer
    helped: dict[object, bool] = field(default_factory=dict)
    hopeless: dict[object, Placed] = field(default_factory=dict)
    allowed_nodes: AllowedNodes = field(default_factory=AllowedNodes)
    _failures: Counter[str] = field(default_factory=Counter)
    _searched_s: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))

    def failed(self, namespace: str, key: object, found: Placed) -> None:
        """Record a namespace's failed search for a shape and number of slots."""
        if key not in self.hopeless:
            self._failures[namespace] += 1
            self.hopeless[key] = found

    def is_used_up_for(self, ref: Ref) -> bool:
        """Return whether the namespace of a reservation has used up its share of this pass."""
        has_searched = self._searched_s[ref.namespace] >= PART_S
        is_late = has_searched and ref.kind is StoreKind.OBJECT
        return is_late or self._failures[ref.namespace] >= MOST_FAILED

    def may_help(self, wish: Unplaced, state: State) -> bool:
        """Return whether a slot may fit on a changed node."""
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
        """Find nodes for slots, yielding to other work."""
        search = placing(reservation, slots, state, self.allowed_nodes)
        found = await self._searched(reservation.ref, search)
        if reservation.placement.constraints.are_about_neighbours:
            self.allowed_nodes.clear()  # Other work may have changed them.
        return found

    async def elsewhere(
        self, meanings: Sequence[Reservation], leaving: Nodes, state: State
    ) -> Placed:
        """Find another place for a placed reservation, yielding to other work.

        Args:
            meanings: its versions to place, in order of preference.
            leaving: the nodes that it has to leave; its slots on other nodes may stay.
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
        """Run a search, yielding to other work; charge its time to the namespace."""
        before_s = self.pacer.worked_s
        try:
            return await self.pacer.run(search)
        finally:
            self._searched_s[ref.namespace] += self.pacer.worked_s - before_s


def shape_of(
    reservation: Reservation, pod: Pod, state: State, *, is_anywhere: bool
) -> tuple[object, ...]:
    """Return a key that is equal for reservations that fit on the same nodes.

    Args:
        pod: the pod that stands for one slot.
        is_anywhere: whether its placement is replaced by its pod's own constraints.
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
