"""Recall: which borrowers have to go for an owner to land on its seat, or for a hold to start.

kube-scheduler's preemption would not do: it looks at a sample of the nodes, which may leave out the
seat's, and only at pods of a lower priority than the owner's. So Reserver deletes the borrowers, as
kube-scheduler deletes its victims: the pods' grace periods count, and no budget does
(docs/adr/0083-lending.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from reserver.base.fairness import in_turns
from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.quantity import times, total
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import fits_beside_holds, seats_by_node, with_yields
from reserver.scheduling.node_rules import node_refusals, volume_refusals
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect, Recall

RECALL_S = 60.0
"""How long a node lends nothing after an owner has waited there, in seconds."""

AHEAD_S = 145.0
"""How long before a hold starts its room is recalled, in seconds: the two minutes that a borrower
has to end, and what the recaller takes to look twice."""

_MOST_SPARED = 16
_PODS_AT_ONCE = 1000
_NOTHING: Mapping[str, int] = MappingProxyType({})


def recalls(
    pod: Pod, by_node: Mapping[str, Sequence[Reservation]], state: State
) -> Iterator[Recall]:
    """Yield how an owner gets its seats that borrowers take, for each node where it may go.

    A recall without borrowers waits for pods that are on their way out.

    Args:
        by_node: the seats.
    """
    may_go = _may_go(pod, state.snapshot)
    for node, seats in by_node.items():
        row, borrowers = state.snapshot.row(node), state.snapshot.lending.borrowers(node)
        if row is None or not may_go[row]:
            continue
        if going := _fewest(borrowers, lambda gone, seats=seats: _fits(pod, seats, gone, state)):  # type: ignore[misc]
            yield Recall(pod, node, tuple(filter(_is_to_be_deleted, going)))


def still_wanted(effect: Effect, state: State) -> Effect | None:
    """Return an effect as it is wanted by now; None for a recall that helps nobody any more."""
    if not isinstance(effect, Recall):
        return effect
    pod = state.pods.get(effect.pod.name, effect.pod)
    seats = state.ledger.seats(pod, (effect.node,)) if pod.uid == effect.pod.uid else ()
    return next(recalls(pod, {effect.node: seats}, state), None) if seats else None


def borrowed(pod: Pod, by_node: Mapping[str, Sequence[Reservation]], state: State) -> Iterator[str]:
    """Yield the nodes, of some with an owner's seats, where borrowers have to go for it."""
    may_go = _may_go(pod, state.snapshot)
    for node, seats in by_node.items():
        row, pods = state.snapshot.row(node), tuple(state.snapshot.lending.borrowers(node))
        if row is None or not may_go[row] or not pods:
            continue
        if _fits(pod, seats, pods, state) and not _fits(pod, seats, (), state):
            yield node


def _may_go(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether an owner may be there once there is room.

    Elsewhere borrowers would go for nothing. Whoever has too many constraints to be judged gets its
    seat back all the same.
    """
    rows: Bools = snapshot.exists.copy()
    if not pod.constraints.are_too_many:
        for refusal in chain(node_refusals(pod, snapshot), volume_refusals(pod, snapshot)):
            rows &= ~refusal.rows
    return rows


class RoomRecall(NamedTuple):
    """Which borrowers of a node are in the way of its holds.

    Attributes:
        borrowers: those to delete.
        until: when the last of these holds has started, unix seconds: nothing is lent till then.
    """

    node: str
    borrowers: Sequence[Pod]
    until: float


def recalls_for_room(state: State, clock: Callable[[], float]) -> Iterator[RoomRecall | None]:
    """Yield each node whose borrowers are in the way of its holds, as it is at that moment.

    Where it yields None, other work may come between; whoever is given a recall may take long, too.
    Holds that are to start count `AHEAD_S` before. Those that lend are in no hurry: their owners
    recall what they need.

    Args:
        clock: unix seconds.
    """
    coming = _coming(state, clock())
    for node in state.snapshot.lending.nodes():
        yield None
        borrowers = state.snapshot.lending.borrowers(node)
        needed, starts = coming.get(node, (_NOTHING, 0.0))
        # They cannot help where something else is short.
        names = total(each.requests for each in borrowers).keys()
        wanted = {name: needed.get(name, 0) for name in names}
        going = _fewest(borrowers, partial(_is_enough, node, wanted, state=state))
        if leaving := list(filter(_is_to_be_deleted, going)):
            yield RoomRecall(node, leaving, starts or clock())
            coming = _coming(state, clock())


def _coming(state: State, now: float) -> dict[str, tuple[Mapping[str, int], float]]:
    """Return what starts soon on each node, and when the last of these holds does."""
    coming: dict[str, tuple[Mapping[str, int], float]] = {}
    for each in state.ledger.starting(now + AHEAD_S):
        for part in each.parts if each.lends_below is None else ():
            amounts, latest = coming.get(part.node, (_NOTHING, 0.0))
            amounts = total((amounts, times(each.resources, part.slots)))
            coming[part.node] = amounts, max(latest, each.starts_at or 0.0)
    return coming


def recalls_for_owners(state: State) -> Iterator[Recall | None]:
    """Yield which borrowers owners need of which Filter is not told, as things are by then.

    kube-scheduler asks no extender about a pod that fits on no node: borrowers may fill them all.
    Where it yields None, other work may come between; whoever is given a recall may take long, too.
    The first owner of each namespace comes before the second of any.
    """
    waiting = tuple(state.pods.values()) if state.snapshot.lending.nodes() else ()
    owners: list[PodName] = []
    for number, pod in enumerate(waiting):
        if number % _PODS_AT_ONCE == 0:
            yield None
        if pod.is_unschedulable and state.ledger.may_concern(pod):
            owners.append(pod.name)
    for name in in_turns(owners, lambda owner: owner.namespace):
        owner = state.pods.get(name)
        if owner is None or not owner.is_unschedulable or owner.terminating:
            continue
        wanted = yield from _wanted(owner, state)
        seats = state.ledger.seats(owner, (wanted,)) if wanted else ()
        found = next(recalls(owner, {wanted: seats}, state), None) if seats else None
        if found and state.pods.get(name) is owner:
            yield found


def _wanted(pod: Pod, state: State) -> Generator[None, None, str]:
    """Return the first node on which borrowers have an owner's seat; empty if it can have one."""
    wanted = ""
    for node, seats in _by_node(state.ledger.seats(pod)).items():
        yield
        row = state.snapshot.row(node)
        if _fits(pod, seats, (), state):
            if row is not None and _may_go(pod, state.snapshot)[row]:
                return ""
        elif not wanted and any(recalls(pod, {node: seats}, state)):
            wanted = node
    return wanted


def _by_node(seats: Iterable[Reservation]) -> Mapping[str, Sequence[Reservation]]:
    by_node: dict[str, list[Reservation]] = {}
    for seat in seats:
        by_node.setdefault(seat.node, []).append(seat)
    return by_node


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


def _is_to_be_deleted(pod: Pod) -> bool:
    """Return whether a borrower that has to go does not, or takes its time: a year, if it says so.

    To delete it again shortens that (`BeforeDelete` in apiserver's pkg/registry/rest/delete.go).
    """
    return pod.lingers or not pod.terminating


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
