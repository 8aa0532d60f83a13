"""Queries of the ledger about holds, their nodes and their owners."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from types import MappingProxyType

from reserver.cluster.guests import guests_on
from reserver.cluster.headroom import Int64s
from reserver.cluster.lending import Loan
from reserver.cluster.node import NODES
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.quantity import total
from reserver.reservations.account import Account
from reserver.reservations.enums import Policy
from reserver.reservations.node_holds import Hold
from reserver.reservations.owner import ReplacementStanding
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.reservation_view import OVER, ReservationView

Slot = tuple[str, str]
"""A slot: the identity of its reservation, and its node."""

NONE_SPENT: Mapping[Slot, int] = MappingProxyType({})


class LedgerView(ReservationView):
    """The read-only view of all holds at this instant (`ledger.Ledger` changes them)."""

    def may_concern(self, pod: Pod) -> bool:
        """Return whether a pod may have seats or wait for one; a cheap test."""
        return self._register.may_concern(pod)

    def naming(self, pod: PodName) -> tuple[Reservation, ...]:
        """Return the unfinished reservations that name a pod, oldest first, each once."""
        accounts = self._register.naming(pod)
        return tuple(each.reservation for each in accounts if self._phase(each) not in OVER)

    def seats(
        self, pod: Pod, among: Collection[str] | None = None, spent: Mapping[Slot, int] = NONE_SPENT
    ) -> tuple[Reservation, ...]:
        """Return the reservations that hold capacity for a pod now, oldest first.

        A reservation on several nodes is returned as one part for each node. A pod claims all that
        name it; of the others that it matches, it claims one: on each node the oldest whose slot
        covers its request, or else the oldest.

        Args:
            among: the nodes to look at; None for all.
            spent: the number of slots that count as claimed.
        """
        naming = [each for each in self._register.naming(pod.name) if each.is_holding]
        if naming:
            return tuple(_seats(naming, among, spent))
        if among is not None and len(among) == 1:
            # Only holds of that node: evaluating all rules of a pod cost a gang half a second.
            here = self._holdings.reservations_on(*among)
            matching = self._register.matching_of((self._register[r.ref] for r in here), pod)
        else:
            matching = self._register.matching(pod)
        on_node: dict[str, Reservation] = {}
        for reservation in _seats(matching, among, spent):
            known = on_node.setdefault(reservation.node, reservation)
            if not known.covers(pod.requests) and reservation.covers(pod.requests):
                on_node[reservation.node] = reservation
        return tuple(on_node.values())

    def required(self, pod: Pod, spent: Mapping[Slot, int] = NONE_SPENT) -> Reservation | None:
        """Return a seat of a pod that may land on its seats only; None if it may land elsewhere.

        A seat that `seats` leaves out, next to another on its node, binds the pod as well: else
        the pod could land elsewhere until the other seat is claimed, but not afterwards.
        """
        naming = [each for each in self._register.naming(pod.name) if each.is_holding]
        seats = _seats(naming or self._register.matching(pod), None, spent)
        return next((seat for seat in seats if seat.policy is Policy.REQUIRE), None)

    def keeper(self, pod: Pod) -> Reservation | None:
        """Return the reservation for whose seats a pod waits: a required one first.

        A reservation without a place counts only while the pod has no seat, as in Filter and Bind.
        """
        seat = self.required(pod) or next(iter(self.seats(pod)), None)
        return seat or self.awaited_by(pod)

    def keeps(self, kept_by: Reservation) -> bool:
        """Return whether a `keeper` is unchanged, and holds or waits for a place."""
        account = self._register.get(kept_by.ref)
        if account is None or account.reservation.digest != kept_by.digest:
            return False
        return self._is_unplaced(account) or account.is_holding

    def asked_on(self, node: str) -> int:
        """Return the number of owner rules to evaluate for a pod's seats on a node."""
        return sum(max(1, len(each.rules)) for each in self._holdings.reservations_on(node))

    def awaited_by(self, pod: Pod) -> Reservation | None:
        """Return the `Require` reservation for which a pod has to wait; None without one.

        Either the reservation has no place yet, or a watch has yet to show whether the pod is the
        replacement that it is for.
        """
        for account in (*self._register.naming(pod.name), *self._register.matching(pod)):
            if account.reservation.policy is Policy.REQUIRE and self._is_unplaced(account):
                return account.reservation
        for account in self._register.matching(pod, ReplacementStanding.UNKNOWN):
            if account.reservation.policy is Policy.REQUIRE and self._is_active(account):
                return account.reservation
        return None

    def claimable_by(self, pod: Pod) -> Iterator[Reservation]:
        """Yield the reservations that a pod may claim, holding or not, oldest first."""
        for account in self._register.matching(pod):
            yield account.reservation

    def owned_by(self, pod: Pod) -> frozenset[Ref]:
        """Return the refs of the reservations that a pod may claim, holding or not."""
        return frozenset(ref for each in self._register.matching(pod) for ref in each.refs)

    def held_on(self, node: str) -> Mapping[str, int]:
        """Return the total held amounts of a node, exactly."""
        return self._holdings.on(node)

    def holding_on(self, node: str) -> Iterator[Reservation]:
        """Yield the reservations that hold capacity on a node now, oldest first."""
        return self._holdings.reservations_on(node)

    def held_after(self, node: str, seat: Reservation) -> dict[str, int]:
        """Return the amounts that are held on a node behind a reservation, of its resources."""
        hold = self._register[seat.ref].hold_on(node)
        return self._holdings.after(hold) if hold is not None else {}

    def later(
        self, node: str, seats: Iterable[Reservation], requests: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the held amounts of a node that do not count against a pod with seats there.

        See `NodeHolds.later`.
        """
        return self._holdings.later(node, self._holds(node, seats), requests)

    def _holds(self, node: str, seats: Iterable[Reservation]) -> list[Hold]:
        holds = (self._register[seat.ref].hold_on(node) for seat in seats)
        return [hold for hold in holds if hold is not None]

    def yielding(self, pod: Pod, nodes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the amounts of others' holds that a pod may take or borrow, by node."""
        borrows = pod.constraints.tolerates_recall
        if not (borrows or self._holdings.yields):
            return {}
        own = self.owned_by(pod)
        yielding = self._holdings.yielding(pod.priority, own, nodes)
        lending = self._snapshot.lending
        lent = lending.left(pod.priority, nodes, self._now) if borrows else {}
        # The pod's own lent slots come back to it: neither they nor their borrowers count as left.
        seats = self.seats(pod, lent) if lent and own else ()
        slots = [
            (s.node, Loan(s.lends_below, s.resources)) for s in seats if s.lends_below is not None
        ]
        for node, amounts in lent.items():
            repaid = [loan for there, loan in slots if there == node]
            left = lending.left_beside(pod.priority, node, repaid) if repaid else amounts
            yielding[node] = total((yielding.get(node, {}), left))
        return yielding

    def conceded(self, pod: Pod) -> Int64s | None:
        """Return the amounts of holds that a pod may take or borrow, on all nodes, or None."""
        borrows = pod.constraints.tolerates_recall
        return self._holdings.concessions.of(pod.priority, self._now, borrows=borrows)

    def conceding_to_owner(self, pod: Pod) -> set[str]:
        """Return the nodes where a reservation that a pod may claim yields or lends to others."""
        return {
            hold.reservation.node
            for account in self._register.matching(pod)
            for hold in account.holds
            if hold.amounts and hold.concedes
        }

    def loans(self, node: str, but: Container[Ref] = ()) -> list[Loan]:
        """Return the loans of a node's holds, except those of some reservations."""
        return self._holdings.loans(node, but)

    def returned(
        self, node: str, seats: Iterable[Reservation] = (), gone: Collection[str] = ()
    ) -> dict[str, int]:
        """Return the decrease of the borrowed amounts of a node once slots are claimed there.

        Args:
            seats: the reservations of the slots, one slot each.
            gone: the UIDs of pods that are gone by then.
        """
        lending = self._snapshot.lending
        borrowed = lending.borrowed(node)
        if not borrowed:
            return {}
        slots = [
            Loan(each.lends_below, each.resources) for each in seats if each.lends_below is not None
        ]
        then = lending.borrowed(node, gone, slots)
        return {name: n - then.get(name, 0) for name, n in borrowed.items()}

    def is_offered(self, resource: str) -> bool:
        """Return whether any node offers a resource, or has offered it lately."""
        return resource in self._snapshot.columns

    def recall(self, node: str, until: float) -> None:
        """Stop lending on a node until a moment (unix seconds): its holds need the room."""
        self._snapshot.lending.recall(node, until)

    def holding(self, ref: Ref) -> dict[str, Mapping[str, int]]:
        """Return the held amounts by node; empty if not the first ref of its reservation."""
        account = self._register.get(ref)
        if account is None or account.reservation.ref != ref:
            return {}
        return {hold.reservation.node: hold.amounts for hold in account.holds}

    def kept(self, ref: Ref) -> dict[str, Mapping[str, int]]:
        """Return `holding`, with the free resources of each whole node added."""
        left_on = self._snapshot.left_on
        return {
            node: {**amounts, **left_on(node)} if NODES in amounts else amounts
            for node, amounts in self.holding(ref).items()
        }

    def owners_on(self, whole: Reservation) -> dict[str, list[Pod]]:
        """Return the owners on whole nodes, also owners that were there before."""
        nodes = [part.node for part in whole.placed] if whole.is_whole else []
        found: dict[str, list[Pod]] = {}
        for each in guests_on(nodes, self._snapshot) if nodes else ():
            if whole.is_owned_by(each.pod):
                found.setdefault(each.node, []).append(each.pod)
        return found

    def _idle_since(self, account: Account) -> float:
        """Return since when a reservation is idle, unix seconds; 0 if in use or not holding."""
        may_hold = self._is_active(account) or self._now >= account.idle_until
        is_used = self._claims.is_used(account) or bool(self.owners_on(account.reservation))
        if not (may_hold and account.holds) or is_used:
            return 0.0
        return account.idle_since or float(math.ceil(self._now))


def _seats(
    accounts: Iterable[Account], among: Collection[str] | None, spent: Mapping[Slot, int]
) -> Iterator[Reservation]:
    for account in accounts:
        holds: Iterable[Hold] = account.holds
        if among is not None and len(among) < len(account.holds):
            holds = filter(None, map(account.hold_on, among))
        for hold in holds:
            node = hold.reservation.node
            if not hold.amounts or (among is not None and node not in among):
                continue
            if not spent or spent.get((account.identity, node), 0) < hold.takers:
                yield hold.reservation
