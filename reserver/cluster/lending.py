"""The room that holds lend on each node while their owners are away, and its borrowers.

A borrower counts against lent room first, even where it would fit next to the holds: so its request
leaves free room to other pods, and the amount to return to an owner is the same in any order. What
it has in a slot of its own that comes back is not borrowed: an owner would gain nothing by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import chain, starmap
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total

MOST_BORROWERS = 500
"""Most borrowers of one node: more than kubelets run. A tenant that creates pods with a node name
chooses their number, and an owner's call reads each of them."""

MOST_CLOSED_S = 300.0
"""Longest recall of a node, in seconds; a later end was set before the clock was set back."""

_NOTHING: Mapping[str, int] = MappingProxyType({})

_NO_SLOTS: Mapping[str, Mapping[str, int]] = MappingProxyType({})


class Loan(NamedTuple):
    """The room that one hold lends on a node.

    Attributes:
        below: pods of a lower priority than this may borrow.
        amounts: millicores of cpu, base units of other resources.
    """

    below: int
    amounts: Mapping[str, int]


class _Asking(NamedTuple):
    """A borrower, and the amounts that it requests beyond its own slots."""

    pod: Pod
    amounts: Mapping[str, int]


class _Lent(NamedTuple):
    """The loans of a node, the borrowed room, and the remaining loans, one for each priority."""

    loans: Sequence[Loan]
    borrowed: Mapping[str, int]
    left: Sequence[Loan]


class Lending:
    """The loans and the borrowers of all nodes.

    Attributes:
        is_on: whether holds lend at all, which needs a recaller that may delete borrowers.
        on_change: called with a node whose remaining lent room has changed.
        on_reopened: called with a node that lends again after a recall.
        own_slots: called with a node and the borrowers there, by UID; returns by UID the amounts of
            their own slots that are held again once they are gone.
    """

    def __init__(self) -> None:
        """Begin without loans."""
        self.is_on = False
        self.on_change: Callable[[str], None] = lambda _: None
        self.on_reopened: Callable[[str], None] = lambda _: None
        self.own_slots: Callable[[str, Mapping[str, Pod]], Mapping[str, Mapping[str, int]]] = (
            lambda _, __: _NO_SLOTS
        )
        self._held: dict[str, Mapping[str, int]] = {}
        self._loans: dict[str, Sequence[Loan]] = {}
        self._borrowers: dict[str, dict[str, Pod]] = {}
        self._recalled: dict[str, float] = {}
        self._reopens_at = inf
        self._lent: dict[str, _Lent] = {}
        self._asking: dict[str, Sequence[_Asking]] = {}
        self._in_own_slots: set[str] = set()

    def set(self, node: str, held: Mapping[str, int], loans: Sequence[Loan]) -> None:
        """Set the held amounts of a node, and the loans of its holds."""
        if node in self._loans:
            self.changed(node, only_loans=True)
        if loans and self.is_on:
            self._loans[node] = loans  # An edit sets them several times: they are summed later.
            self._held[node] = held
        else:
            self._loans.pop(node, None)
            self._held.pop(node, None)

    def held(self, node: str) -> Mapping[str, int]:
        """Return the held minus the borrowed amounts of a node; empty if the node lends none."""
        held = self._held.get(node, _NOTHING)
        borrowed = self.borrowed(node)
        return {name: amount - borrowed.get(name, 0) for name, amount in held.items()}

    def add(self, node: str, pod: Pod) -> None:
        """Add a borrower to a node; beyond `MOST_BORROWERS` it counts as an ordinary pod."""
        pods = self._borrowers.setdefault(node, {})
        if pod.uid in pods or len(pods) < MOST_BORROWERS:
            pods[pod.uid] = pod
        self.changed(node)

    def remove(self, node: str, pod_uid: str) -> None:
        """Remove a borrower from a node."""
        pods = self._borrowers.get(node, {})
        pods.pop(pod_uid, None)
        if not pods:
            self._borrowers.pop(node, None)
        self.changed(node)

    def lends(self, node: str) -> bool:
        """Return whether holds of a node lend room."""
        return node in self._loans

    def has_borrowers(self, node: str) -> bool:
        """Return whether `borrowers` returns pods of a node."""
        return node in self._borrowers and bool(self._asking_on(node))

    def borrowers(self, node: str) -> Sequence[Pod]:
        """Return the pods on a node that may be borrowers, but for those in slots of their own."""
        return [each.pod for each in self._asking_on(node)]

    def lenders(self) -> Collection[str]:
        """Return the nodes whose holds lend room."""
        return self._loans.keys()

    def nodes(self) -> Collection[str]:
        """Return the nodes with pods that may be borrowers, slots of their own aside."""
        return self._borrowers.keys()

    def recall(self, node: str, until: float) -> None:
        """Stop lending on a node until a moment (unix seconds): its holds need the room.

        A later end of an earlier recall stays, unless it is further away than `MOST_CLOSED_S`.
        """
        before = self._recalled.get(node, until)
        self._recalled[node] = before if until < before < until + MOST_CLOSED_S else until
        self._reopens_at = min(self._reopens_at, until)
        self.on_change(node)

    def reopen(self, now: float) -> None:
        """Lend again on the nodes whose recall has ended at `now` (unix seconds)."""
        if self._reopens_at - MOST_CLOSED_S <= now < self._reopens_at:
            return
        over = [
            node
            for node, until in self._recalled.items()
            if not until - MOST_CLOSED_S <= now < until
        ]
        for node in over:
            del self._recalled[node]
            self.on_change(node)
            self.on_reopened(node)
        self._reopens_at = min(self._recalled.values(), default=inf)

    def borrowed(
        self, node: str, gone: Collection[str] = (), repaid: Sequence[Loan] = ()
    ) -> Mapping[str, int]:
        """Return the borrowed amounts of a node.

        Args:
            gone: UIDs of borrowers that are not counted.
            repaid: loans, or parts of them, that are not lent any more.
        """
        if node not in self._loans or node not in self._borrowers:
            return _NOTHING
        if not (gone or repaid):
            return self._lent_on(node).borrowed
        loans = _less(self._lent_on(node).loans, repaid)
        leaving = frozenset(gone)
        asking = [each for each in self._asking_on(node) if each.pod.uid not in leaving]
        return total(taken for _, taken in _matched(loans, asking))

    def left(self, priority: int, nodes: Iterable[str], now: float) -> dict[str, Mapping[str, int]]:
        """Return the amounts that a pod of a priority may still borrow at `now` (unix seconds).

        A node lends nothing during a recall, while a borrower is terminating, and with
        `MOST_BORROWERS` borrowers.
        """
        self.reopen(now)
        found: dict[str, Mapping[str, int]] = {}
        for node in (self._loans.keys() & nodes) - self._recalled.keys():
            amounts = [loan.amounts for loan in self._lent_on(node).left if priority < loan.below]
            if amounts:
                found[node] = amounts[0] if len(amounts) == 1 else total(amounts)
        return found

    def left_beside(self, priority: int, node: str, repaid: Sequence[Loan]) -> Mapping[str, int]:
        """Return the amounts that a pod may borrow on a node after it has repaid loans."""
        matched = _matched(_less(self._lent_on(node).loans, repaid), self._asking_on(node))
        return total(
            _minus(loan.amounts, taken) for loan, taken in matched if priority < loan.below
        )

    def changed(self, node: str, *, only_loans: bool = False) -> None:
        """Note that loans, borrowers or their own slots on a node have changed."""
        self._lent.pop(node, None)
        if not only_loans:
            self._asking.pop(node, None)
        self.on_change(node)

    def slots_changed(self, node: str, claimants: KeysView[str] | None) -> None:
        """Note that slots of these pods (UIDs), or of any, on a node with borrowers differ."""
        is_other = claimants is not None and claimants.isdisjoint(self._borrowers[node].keys())
        self.changed(node, only_loans=is_other and node not in self._in_own_slots)

    def _asking_on(self, node: str) -> Sequence[_Asking]:
        """Return what the borrowers of a node may have borrowed, cached until it changes."""
        asking = self._asking.get(node)
        if asking is None:
            pods = self._borrowers.get(node, {})
            own = self.own_slots(node, pods) if pods else _NO_SLOTS
            (self._in_own_slots.add if own else self._in_own_slots.discard)(node)
            found = (_Asking(pod, _beyond(pod, own.get(uid))) for uid, pod in pods.items())
            asking = self._asking[node] = [each for each in found if each.amounts]
        return asking

    def _lent_on(self, node: str) -> _Lent:
        """Return the borrowed and the remaining lent room of a node, cached until it changes.

        Each call of a borrower reads all nodes that lend.
        """
        lent = self._lent.get(node)
        if lent is None:
            asking = self._asking_on(node)
            is_leaving = any(pod.terminating and not pod.lingers for pod, _ in asking)
            is_closed = is_leaving or len(self._borrowers.get(node, ())) >= MOST_BORROWERS
            loans = [*starmap(Loan, sorted(_by_priority(self._loans[node]).items()))]
            matched = [*_matched(loans, asking)]
            borrowed = total(taken for _, taken in matched)
            left = [Loan(loan.below, _minus(loan.amounts, taken)) for loan, taken in matched]
            lent = self._lent[node] = _Lent(loans, borrowed, () if is_closed else left)
        return lent


def _by_priority(loans: Iterable[Loan]) -> dict[int, Mapping[str, int]]:
    """Return the total amounts of loans by priority: one owner may have a hundred on a node."""
    parts: dict[int, list[Mapping[str, int]]] = {}
    for loan in loans:
        parts.setdefault(loan.below, []).append(loan.amounts)
    return {below: total(each) for below, each in parts.items()}


def _less(loans: Sequence[Loan], repaid: Sequence[Loan]) -> Sequence[Loan]:
    """Return loans minus the repaid amounts of the same priority."""
    owed = _by_priority(repaid)
    return [Loan(below, _minus(lent, owed.get(below, _NOTHING))) for below, lent in loans]


def _minus(amounts: Mapping[str, int], less: Mapping[str, int]) -> Mapping[str, int]:
    """Return amounts reduced by others, to nothing at least."""
    return {name: amount - min(amount, less.get(name, 0)) for name, amount in amounts.items()}


def _beyond(pod: Pod, own: Mapping[str, int] | None) -> Mapping[str, int]:
    """Return what a pod requests beyond slots of its own."""
    if own is None:
        return pod.requests
    beyond = ((name, amount - own.get(name, 0)) for name, amount in pod.requests.items())
    return {name: amount for name, amount in beyond if amount > 0}


def _matched(
    loans: Sequence[Loan], asking: Sequence[_Asking]
) -> Iterator[tuple[Loan, Mapping[str, int]]]:
    """Yield each loan with the amounts borrowed from it, as large as possible.

    A pod that may borrow from one loan may borrow from every loan for higher priorities. So the
    loans for the lowest priorities are used up first, which leaves most to other pods.

    Args:
        loans: in ascending order of priority.
    """
    waiting = sorted(asking, key=lambda each: each.pod.priority, reverse=True)
    # A borrower chooses the number of its other resources.
    lent = frozenset(chain.from_iterable(loan.amounts for loan in loans))
    asked: dict[str, int] = {}
    for loan in loans:
        while waiting and waiting[-1].pod.priority < loan.below:
            requests = waiting.pop().amounts
            for name in lent & requests.keys():
                asked[name] = asked.get(name, 0) + requests[name]
        taken = {
            name: min(amount, asked.get(name, 0))
            for name, amount in loan.amounts.items()
            if asked.get(name, 0) > 0
        }
        for name, amount in taken.items():
            asked[name] -= amount
        yield loan, taken
