"""What holds lend on each node while their owners are away, and to which pods.

A borrower counts against what is lent first, wherever it would fit beside the holds as well: so
what it takes is free for others, and what an owner has to get back is the same in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total

MOST_BORROWERS = 500
"""So many pods of one node may borrow: more than kubelets run. Whoever creates pods that name their
node chooses how many there are, and an owner's call asks about each of them."""

MOST_CLOSED_S = 300.0
"""For how long a node lends nothing at most, in seconds: what is longer, a clock that has been set
back since has made so."""

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Loan(NamedTuple):
    """What one hold lends on a node.

    Attributes:
        below: pods of a lower priority than this may borrow.
        amounts: millicores of cpu, base units of all else.
    """

    below: int
    amounts: Mapping[str, int]


class _Lent(NamedTuple):
    """What is borrowed on a node, and what is not."""

    borrowed: Mapping[str, int]
    left: Sequence[Loan]
    """By priority, one for each; none where nothing is lent as long as a borrower leaves."""


class Lending:
    """The loans and the borrowers of all nodes.

    Attributes:
        is_on: whether holds lend: somebody has to be there who may delete borrowers.
        on_change: called with a node where something else is left to borrow than before.
        on_reopened: called with a node that lends again after an owner waited there.
    """

    def __init__(self) -> None:
        """Begin with nothing lent."""
        self.is_on = False
        self.on_change: Callable[[str], None] = lambda _: None
        self.on_reopened: Callable[[str], None] = lambda _: None
        self._held: dict[str, Mapping[str, int]] = {}
        self._loans: dict[str, tuple[Loan, ...]] = {}
        self._borrowers: dict[str, dict[str, Pod]] = {}
        self._recalled: dict[str, float] = {}
        self._reopens_at = inf
        self._lent: dict[str, _Lent] = {}

    def set(self, node: str, held: Mapping[str, int], loans: Sequence[Loan]) -> None:
        """Set what is held on a node in all, and what of it is lent."""
        if node in self._loans:
            self._changed(node)
        if loans and self.is_on:
            self._loans[node] = tuple(sorted(loans, key=lambda loan: loan.below))
            self._held[node] = held
        else:
            self._loans.pop(node, None)
            self._held.pop(node, None)

    def held(self, node: str) -> Mapping[str, int]:
        """Return what is held on a node beside what is borrowed; nothing where nothing is lent."""
        held = self._held.get(node, _NOTHING)
        borrowed = self.borrowed(node)
        return {name: amount - borrowed.get(name, 0) for name, amount in held.items()}

    def add(self, node: str, pod: Pod) -> None:
        """Count a borrower on a node; one too many is a pod as any other."""
        pods = self._borrowers.setdefault(node, {})
        if pod.uid in pods or len(pods) < MOST_BORROWERS:
            pods[pod.uid] = pod
        self._changed(node)

    def remove(self, node: str, pod_uid: str) -> None:
        """Count a borrower there no more."""
        pods = self._borrowers.get(node, {})
        pods.pop(pod_uid, None)
        if not pods:
            self._borrowers.pop(node, None)
        self._changed(node)

    def lends(self, node: str) -> bool:
        """Return whether holds of a node lend."""
        return node in self._loans

    def has_borrowers(self, node: str) -> bool:
        """Return whether pods that may be borrowers are on a node."""
        return node in self._borrowers

    def borrowers(self, node: str) -> Iterable[Pod]:
        """Return the pods on a node that may be borrowers."""
        return self._borrowers.get(node, {}).values()

    def lenders(self) -> Collection[str]:
        """Return the nodes whose holds lend."""
        return self._loans.keys()

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes where borrowers may be."""
        return tuple(self._borrowers)

    def recall(self, node: str, until: float) -> None:
        """Lend nothing more on a node until a moment (unix seconds): its holds need the room.

        What needs it for longer still does. What is further away is of before a clock went back.
        """
        before = self._recalled.get(node, until)
        self._recalled[node] = before if until < before < until + MOST_CLOSED_S else until
        self._reopens_at = min(self._reopens_at, until)
        self.on_change(node)

    def reopen(self, now: float) -> None:
        """Lend again on the nodes where that time is over at `now` (unix seconds)."""
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
        """Return how much of what is lent on a node is borrowed.

        Args:
            gone: the UIDs of borrowers that do not count.
            repaid: loans that do not count, or only in part: amounts that are lent no more.
        """
        if node not in self._loans:
            return _NOTHING
        if not (gone or repaid):
            return self._lent_on(node).borrowed
        loans = _less(self._loans[node], repaid)
        leaving = frozenset(gone)
        pods = [pod for pod in self.borrowers(node) if pod.uid not in leaving]
        return total(taken for _, taken in _matched(loans, pods))

    def left(self, priority: int, nodes: Iterable[str], now: float) -> dict[str, Mapping[str, int]]:
        """Return what a pod of a priority may still borrow on some nodes at `now` (unix seconds).

        Where an owner waits, as long as a borrower is on its way out, and to more than
        `MOST_BORROWERS`, nothing is lent.
        """
        self.reopen(now)
        found: dict[str, Mapping[str, int]] = {}
        for node in self._loans.keys() & nodes:
            if node in self._recalled:
                continue
            amounts = [loan.amounts for loan in self._lent_on(node).left if priority < loan.below]
            if amounts:
                found[node] = amounts[0] if len(amounts) == 1 else total(amounts)
        return found

    def left_beside(self, priority: int, node: str, repaid: Sequence[Loan]) -> Mapping[str, int]:
        """Return what a pod of a priority may borrow on a node once it has repaid some loans."""
        matched = _matched(_less(self._loans[node], repaid), list(self.borrowers(node)))
        return total(
            {name: amount - taken.get(name, 0) for name, amount in loan.amounts.items()}
            for loan, taken in matched
            if priority < loan.below
        )

    def _changed(self, node: str) -> None:
        self._lent.pop(node, None)
        self.on_change(node)

    def _lent_on(self, node: str) -> _Lent:
        """Return what is borrowed on a node that lends, as reckoned when it changed last.

        Each call of a borrower asks about all nodes that lend.
        """
        lent = self._lent.get(node)
        if lent is None:
            pods = list(self.borrowers(node))
            is_leaving = any(pod.terminating and not pod.lingers for pod in pods)
            is_closed = is_leaving or len(pods) >= MOST_BORROWERS
            borrowed: dict[str, int] = {}
            left: dict[int, dict[str, int]] = {}
            for loan, taken in _matched(self._loans[node], pods):
                for name, amount in taken.items():
                    borrowed[name] = borrowed.get(name, 0) + amount
                rest = left.setdefault(loan.below, {})
                for name, amount in loan.amounts.items():
                    rest[name] = rest.get(name, 0) + amount - taken.get(name, 0)
            loans = () if is_closed else tuple(starmap(Loan, left.items()))
            lent = self._lent[node] = _Lent(borrowed, loans)
        return lent


def _less(loans: Sequence[Loan], repaid: Sequence[Loan]) -> Sequence[Loan]:
    """Return loans without the amounts that are lent no more, of the same priority each."""
    if not repaid:
        return loans
    owed = [(loan.below, dict(loan.amounts)) for loan in repaid]
    left = []
    for loan in loans:
        amounts = dict(loan.amounts)
        for below, parts in owed:
            for name in amounts.keys() & parts.keys() if below == loan.below else ():
                less = min(amounts[name], parts[name])
                amounts[name] -= less
                parts[name] -= less
        left.append(Loan(loan.below, amounts))
    return left


def _matched(
    loans: Sequence[Loan], pods: Sequence[Pod]
) -> Iterator[tuple[Loan, Mapping[str, int]]]:
    """Yield each loan with what is borrowed of it: as much as can be.

    Whoever may borrow of one loan may of all that ask for a higher priority. So those that ask for
    the lowest are used up first, which leaves most for others.

    Args:
        loans: by priority, the lowest first.
        pods: the borrowers.
    """
    waiting = sorted(pods, key=lambda pod: pod.priority, reverse=True)
    # Whoever borrows chooses how many other resources it requests.
    lent = frozenset(chain.from_iterable(loan.amounts for loan in loans))
    asked: dict[str, int] = {}
    for loan in loans:
        while waiting and waiting[-1].priority < loan.below:
            requests = waiting.pop().requests
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
