"""Recall: which borrowers have to go for an owner to land on its seat, or for a hold to start.

kube-scheduler's preemption would not do: it looks at a sample of the nodes, which may leave out the
seat's, and only at pods of a lower priority than the owner's. So Reserver deletes the borrowers, as
kube-scheduler deletes its victims: the pods' grace periods count, and no budget does
(docs/adr/0083-lending.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import times, total
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import fits_beside_holds, seats_by_node, with_yields
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Recall

RECALL_S = 60.0
"""How long a node lends nothing after an owner has waited there, in seconds."""

AHEAD_S = 145.0
"""How long before a hold starts its room is recalled, in seconds: the two minutes that a borrower
has to end, and what the recaller takes to look twice."""

_MOST_SPARED = 16
_PODS_AT_ONCE = 1000


def recall(pod: Pod, seats: Sequence[Reservation], state: State) -> Recall | None:
    """Return how an owner gets its seats on one node that borrowers take.

    Nobody has to go, or it does not help, where it returns None. A recall without borrowers waits
    for pods that are on their way out.
    """
    node = seats[0].node
    borrowers = state.snapshot.lending.borrowers(node)
    going = _fewest(borrowers, lambda gone: _fits(pod, seats, gone, state))
    if not going:
        return None
    return Recall(pod, node, tuple(each for each in going if not each.terminating))


class RoomRecall(NamedTuple):
    """Which borrowers of a node are in the way of its holds.

    Attributes:
        borrowers: those to delete.
        until: when the last of these holds has started, unix seconds: nothing is lent till then.
    """

    borrowers: Sequence[Pod]
    until: float


def recalls_for_room(state: State, now: float) -> Generator[None, None, dict[str, RoomRecall]]:
    """Find the nodes whose borrowers are in the way of their holds.

    Other work may come between the steps: a node is judged as it is by then.
    Holds that are to start count `AHEAD_S` before. Those that lend are in no hurry: their owners
    recall what they need.
    """
    coming: dict[str, Mapping[str, int]] = {}
    starts: dict[str, float] = {}
    for each in state.ledger.starting(now + AHEAD_S):
        for part in each.parts if each.lends_below is None else ():
            amounts = times(each.resources, part.slots)
            coming[part.node] = total((coming.get(part.node, {}), amounts))
            starts[part.node] = max(starts.get(part.node, 0.0), each.starts_at or 0.0)
    found: dict[str, RoomRecall] = {}
    for node in state.snapshot.lending.nodes():
        yield
        borrowers = state.snapshot.lending.borrowers(node)
        needed = coming.get(node, {})
        # They cannot help where something else is short.
        names = total(each.requests for each in borrowers).keys()
        wanted = {name: needed.get(name, 0) for name in names}
        going = _fewest(borrowers, partial(_is_enough, node, wanted, state=state))
        if leaving := [each for each in going if not each.terminating]:
            found[node] = RoomRecall(leaving, starts.get(node, now))
    return found


def recalls_for_owners(state: State) -> Generator[None, None, list[Recall]]:
    """Find which borrowers owners need of which Filter is not told.

    kube-scheduler asks no extender about a pod that fits on no node: borrowers may fill them all.
    Other work may come between the steps: an owner is judged as things are by then.
    """
    found: list[Recall] = []
    waiting = tuple(state.pods.values()) if state.snapshot.lending.nodes() else ()
    for number, pod in enumerate(waiting):
        if number % _PODS_AT_ONCE == 0:
            yield
        if not pod.is_unschedulable or pod.terminating or not state.ledger.may_concern(pod):
            continue
        by_node: dict[str, list[Reservation]] = {}
        for seat in state.ledger.seats(pod):
            by_node.setdefault(seat.node, []).append(seat)
        wanted: list[Recall] = []
        for seats in by_node.values():
            yield
            if _fits(pod, seats, (), state):
                break  # It can have this one.
            wanted += filter(None, (recall(pod, seats, state),))
        else:
            found += wanted[:1]
    return found


def _is_enough(node: str, wanted: Mapping[str, int], gone: Sequence[Pod], *, state: State) -> bool:
    """Return whether a node has what it holds, and is wanted, once some borrowers are gone."""
    freed = total(each.requests for each in gone)
    again = state.ledger.returned(node, gone=[each.uid for each in gone])
    for name, amount in wanted.items():
        offered, requested, held, _ = state.snapshot.amounts(node, name)
        left = offered - requested - held + freed.get(name, 0) - again.get(name, 0)
        if left < amount:
            return False
    return True


def _fewest(pods: Iterable[Pod], is_enough: Callable[[Sequence[Pod]], bool]) -> Sequence[Pod]:
    """Return which borrowers have to go; none if nobody has to, or if all are not enough."""
    borrowers = sorted(pods, key=_in_order)
    if not borrowers or not is_enough(borrowers) or is_enough(()):
        return ()
    # The more are gone, the more room there is.
    number = bisect_left(range(1, len(borrowers)), 1, key=lambda n: is_enough(borrowers[:n]))
    going = borrowers[: number + 1]
    for each in going[-2 : -2 - _MOST_SPARED : -1]:  # The most important that may not matter.
        others = [other for other in going if other is not each]
        if not each.terminating and is_enough(others):
            going = others
    return going


def _in_order(pod: Pod) -> tuple[bool, int, Sequence[int]]:
    """Return the sort key of borrowers: those who are going, the least important, the youngest."""
    return (not pod.terminating, pod.priority, [-ord(letter) for letter in pod.created])


def _fits(pod: Pod, seats: Sequence[Reservation], gone: Sequence[Pod], state: State) -> bool:
    """Return whether an owner fits on the node of its seats once some borrowers are gone."""
    snapshot, node = state.snapshot, seats[0].node
    freed = total(each.requests for each in gone)
    for name, amount in pod.requests.items():
        offered, requested, *_ = snapshot.amounts(node, name)
        if amount and offered - requested + freed.get(name, 0) < amount:
            return False
    own = with_yields(seats_by_node(pod, seats, state.ledger), pod, (node,), state.ledger)
    seat = own[node]
    returned = state.ledger.returned(node, seats, [each.uid for each in gone])
    own[node] = seat._replace(returned=returned)
    taken = {node: {name: -amount for name, amount in freed.items()}}
    row = snapshot.row(node)
    return row is not None and bool(fits_beside_holds(pod, snapshot, own, taken)[row])
