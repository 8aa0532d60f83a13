"""The holds of each node, and their order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from types import MappingProxyType

from reserver.cluster.lending import Loan
from reserver.cluster.quantity import exchange, is_less
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.concessions import Concessions
from reserver.reservations.listener import Listener
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, Reservation, Written

_REMEMBERED = 256
"""Most nodes whose sums of ordered holds are cached."""

_FEW = 64
"""Most holds that are summed at each call for an owner: faster than sorting them."""

NOTHING: Mapping[str, int] = MappingProxyType({})
"""The amounts of a reservation that holds nothing."""


@dataclass(slots=True, eq=False)
class Hold:
    """The hold of a reservation on one node."""

    reservation: Reservation
    """The reservation's part on that node."""
    since: Written
    """The hold's turn in the order of the node's holds."""
    amounts: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    """The amounts that the hold adds to the node's row of the matrix."""
    slots: int = 0
    """The number of slots in `amounts`."""
    returning: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    """The amounts that it holds again once pods go: reusable claimed slots, and loans."""
    is_placed: bool = False
    """Whether Reserver chose the node."""
    is_counted: bool = False
    """Whether the ceiling of all tenants counts it."""

    @property
    def yields(self) -> bool:
        """Whether it is preemptible; then it comes behind all holds that are not."""
        return self.reservation.yields_above is not None

    @property
    def concedes(self) -> bool:
        """Whether some pods may take or borrow its amounts."""
        return self.yields or self.reservation.lends_below is not None

    @property
    def takers(self) -> float:
        """The number of pods that may still claim it; infinite for a whole node."""
        return inf if self.reservation.is_whole else self.slots

    @property
    def standing(self) -> tuple[bool, float, float]:
        """The sort key for the holds of one owner, the first turn first."""
        return (self.yields, self.since.last, self.since.first)


class _Behind:
    """Decides whether holds of a node come behind a set of seats.

    Attributes:
        since: the turn after which a hold is behind all seats, by whether the hold yields.
    """

    def __init__(self, seats: Iterable[Hold]) -> None:
        """Compare holds with these seats."""
        last: dict[bool, float] = {}
        for seat in seats:
            last[seat.yields] = max(seat.since.last, last.get(seat.yields, 0))
        # Among yielding, or firm, holds the order counts; a firm hold is behind no yielding one.
        first = inf if True in last else last.get(False, -1)
        self.since = {False: first, True: last.get(True, -1)}

    def has(self, hold: Hold) -> bool:
        """Return whether a hold is certainly behind all seats."""
        return hold.since.first > self.since[hold.yields]


class _Row:
    """The sums of a node's holds in order, so that the sum behind a hold is a look-up."""

    def __init__(self, holds: Iterable[Hold]) -> None:
        """Sum the amounts of holds, by whether they yield and by resource."""
        parts: dict[tuple[bool, str], list[tuple[float, int]]] = {}
        for hold in sorted(holds, key=lambda hold: hold.since.first):
            yields, first = hold.yields, hold.since.first
            for resource, amount in hold.amounts.items():
                parts.setdefault((yields, resource), []).append((first, amount))
        self._sums = {
            key: ([first for first, _ in row], [*accumulate((n for _, n in row), initial=0)])
            for key, row in parts.items()
        }

    def behind(self, others: _Behind, resource: str) -> int:
        """Return the amount of a resource that is held certainly behind a set of seats."""
        total = 0
        for yields, last in others.since.items():
            firsts, sums = self._sums.get((yields, resource), ((), (0,)))
            total += sums[-1] - sums[bisect_right(firsts, last)]
        return total


class NodeHolds:
    """The holds of all nodes; changes are written into the snapshot's matrix."""

    def __init__(self, snapshot: Snapshot, listener: Listener, quotas: Quotas) -> None:
        """Begin without holds; `listener` is notified of each node on which less is held."""
        self._snapshot = snapshot
        self._listener = listener
        self._quotas = quotas
        self._by_node: dict[str, dict[Hold, None]] = {}
        self._yielding: dict[str, dict[Hold, None]] = {}
        self._lending: dict[str, dict[Hold, None]] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._returning: dict[str, dict[str, int]] = {}
        self._rows: dict[str, _Row] = {}
        self.concessions = Concessions(snapshot, self.yielding, self._yielding.keys())
        snapshot.lending.on_reopened = listener.on_capacity_freed

    def on(self, node: str) -> Mapping[str, int]:
        """Return the total held amounts of a node, exactly."""
        return self._held.get(node, {})

    def reservations_on(self, node: str) -> Iterator[Reservation]:
        """Yield the reservations that hold capacity on a node now, oldest first."""
        return (hold.reservation for hold in self._by_node.get(node, ()))

    def after(self, hold: Hold) -> dict[str, int]:
        """Return the amounts behind a hold on its node, of the hold's resources.

        Holds behind it were certainly written after it, or are preemptible while it is not.
        """
        # Called for each hold of a node that is short of room.
        row, this = self._row(hold.reservation.node), _Behind((hold,))
        held = ((resource, row.behind(this, resource)) for resource in hold.reservation.resources)
        return {resource: amount for resource, amount in held if amount}

    def _row(self, node: str) -> _Row:
        """Return the sums of a node's holds, cached until they change."""
        row = self._rows.get(node)
        if row is None:
            if len(self._rows) == _REMEMBERED:
                self._rows.clear()
            row = self._rows[node] = _Row(self._by_node.get(node, ()))
        return row

    def reorder(self, holds: Iterable[Hold]) -> None:
        """Drop the cached sums of holds whose turns may have changed."""
        for hold in holds if self._rows else ():
            self._rows.pop(hold.reservation.node, None)

    def later(
        self, node: str, seats: Iterable[Hold], requests: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the held amounts of a node that do not count against an owner's seats there.

        For each resource these are the amounts behind the fewest seats, oldest first, that cover
        the request, less one slot of each younger seat: a younger seat costs the owner nothing.
        Resources that all seats together do not cover are left out.
        """
        row = sorted(seats, key=lambda seat: seat.standing)
        covering: dict[int, list[str]] = {}
        for resource, amount in requests.items():
            slots = accumulate(seat.reservation.resources.get(resource, 0) for seat in row)
            enough = next((n for n, slot in enumerate(slots, start=1) if slot >= amount), 0)
            if amount and enough:
                covering.setdefault(enough, []).append(resource)
        totals: dict[str, int] = {}
        for enough, resources in covering.items():
            behind = _Behind(row[:enough])
            for resource in resources:
                totals[resource] = self._held_behind(behind, node, resource) - sum(
                    seat.reservation.resources.get(resource, 0)
                    for seat in row[enough:]
                    if behind.has(seat)
                )
        return totals

    def _held_behind(self, others: _Behind, node: str, resource: str) -> int:
        """Return the amount of a resource that is held on a node certainly behind seats."""
        holds = self._by_node.get(node, {})
        if len(holds) > _FEW:
            return self._row(node).behind(others, resource)
        return sum(hold.amounts.get(resource, 0) for hold in holds if others.has(hold))

    @property
    def yields(self) -> bool:
        """Whether any hold is preemptible."""
        return bool(self._yielding)

    def yielding(
        self, priority: int, own: Container[Ref], nodes: Iterable[str]
    ) -> dict[str, dict[str, int]]:
        """Return the amounts of others' preemptible holds that a priority may take, by node.

        Args:
            own: the reservations that the pod may claim.
            nodes: the nodes to look at.
        """
        yielding: dict[str, dict[str, int]] = {}
        for node in self._yielding.keys() & nodes:
            totals: dict[str, int] = {}
            for hold in self._yielding[node]:
                reservation = hold.reservation
                if reservation.yields_to(priority) and reservation.ref not in own:
                    for resource, amount in hold.amounts.items():
                        totals[resource] = totals.get(resource, 0) + amount
            if totals:
                yielding[node] = totals
        return yielding

    def hold(
        self,
        hold: Hold,
        claimants: KeysView[str],
        amounts: Mapping[str, int] = NOTHING,
        returning: Mapping[str, int] = NOTHING,
    ) -> None:
        """Set the held amounts of a hold, and the amounts that come back later.

        Args:
            claimants: the UIDs of the pods in slots of its reservation.
        """
        node = hold.reservation.node
        # Once a slot has come back, an owner may wait for it.
        is_freed = is_less(hold.amounts, amounts) or is_less(hold.returning, returning)
        if returning != hold.returning:
            came = exchange(self._returning, node, hold.returning, returning)
            hold.returning = returning
            self._snapshot.set_returning(node, came, claimants)
        if amounts != hold.amounts:
            self._rows.pop(node, None)
            totals = exchange(self._held, node, hold.amounts, amounts)
            if hold.is_placed:
                self._count(hold, amounts)
            hold.amounts = amounts
            self._index(node, hold)
            if hold.concedes:
                self.concessions.changed(node)
            self._snapshot.set_held(node, totals, self.loans(node))
            if hold.concedes:  # Its row may be new, or gone.
                self.concessions.changed(node)
        if is_freed:
            self._listener.on_capacity_freed(node)

    def recount_borrowers(self, holds: Iterable[Hold], claimants: KeysView[str]) -> None:
        """Count anew what borrowers take on the nodes of some holds, as claims have changed."""
        for hold in holds if claimants else ():
            self._snapshot.recount_borrowed(hold.reservation.node, claimants)

    def _index(self, node: str, hold: Hold) -> None:
        """Update the indexes of a node for a hold."""
        _put(self._by_node, node, hold)
        if hold.yields:
            _put(self._yielding, node, hold)
        if hold.reservation.lends_below is not None:
            _put(self._lending, node, hold)

    def loans(self, node: str, but: Container[Ref] = ()) -> list[Loan]:
        """Return the loans of a node's holds, except those of some reservations."""
        return [
            Loan(below, hold.amounts)
            for hold in self._lending.get(node, ())
            if (below := hold.reservation.lends_below) is not None
            and hold.reservation.ref not in but
        ]

    def _count(self, hold: Hold, amounts: Mapping[str, int]) -> None:
        """Count a tenant's hold with its new amounts in the ceiling."""
        before = hold.amounts if hold.is_counted else NOTHING
        hold.is_counted = self._quotas.is_below_ceiling(hold.reservation.ref.namespace)
        after = amounts if hold.is_counted else NOTHING
        self._quotas.ceiling.count_placed(hold.reservation.node, before, after)


def _put(index: dict[str, dict[Hold, None]], node: str, hold: Hold) -> None:
    """Add a hold with amounts to an index by node; remove a hold without."""
    if hold.amounts:
        index.setdefault(node, {})[hold] = None
    elif node in index:
        index[node].pop(hold, None)
        if not index[node]:
            del index[node]
