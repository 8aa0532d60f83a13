"""Recall: chooses the borrowers to delete for an owner's seat, or for the start of a hold.

kube-scheduler's preemption is not enough: it looks at a sample of the nodes, which may miss the
seat, and only at pods of a lower priority than the owner's. So Reserver deletes the borrowers as
kube-scheduler deletes its victims: grace periods count, and PodDisruptionBudgets do not
(docs/adr/0083-lending.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from itertools import chain, islice
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
"""Seconds for which a node lends nothing after an owner has waited for it."""

AHEAD_S = 145.0
"""Seconds before its start at which a hold's room is recalled: the two minutes that a borrower has
to end, and two passes of the recaller."""

_MOST_JUDGED = 256
"""Most nodes with borrowers that are judged for an owner in one call; `recalls_for_owners` finds
the others. An owner with thousands of seats that fits on none took 0.2 s a call without it."""

_MOST_SPARED = 16
_PODS_AT_ONCE = 1000


def recalls(
    pod: Pod, by_node: Mapping[str, Sequence[Reservation]], state: State
) -> Iterator[Recall]:
    """Yield the recalls that free an owner's seats of borrowers, one for each allowed node.

    A recall without borrowers waits for pods that are ending.

    Args:
        by_node: the seats by node.
    """
    for node, seats in _with_borrowers(pod, by_node, state):
        if found := _recall(pod, node, seats, state):
            yield found


def _recall(pod: Pod, node: str, seats: Sequence[Reservation], state: State) -> Recall | None:
    """Return the recall for an owner's seats on a node; None if not needed, or of no help."""
    borrowers = state.snapshot.lending.borrowers(node)
    going = _fewest(borrowers, lambda gone: _fits(pod, seats, gone, state))
    return Recall(pod, node, tuple(filter(_is_to_be_deleted, going))) if going else None


def still_wanted(effect: Effect, state: State) -> Effect | None:
    """Return the present version of an effect; None for a recall that no longer helps."""
    if not isinstance(effect, Recall):
        return effect
    pod = state.pods.get(effect.pod.name, effect.pod)
    seats = state.ledger.seats(pod, (effect.node,)) if pod.uid == effect.pod.uid else ()
    return next(recalls(pod, {effect.node: seats}, state), None) if seats else None


def borrowed(pod: Pod, by_node: Mapping[str, Sequence[Reservation]], state: State) -> Iterator[str]:
    """Yield the nodes with an owner's seats on which borrowers have to go for it."""
    for node, seats in _with_borrowers(pod, by_node, state):
        pods = tuple(state.snapshot.lending.borrowers(node))
        if _fits(pod, seats, pods, state) and not _fits(pod, seats, (), state):
            yield node


def _with_borrowers(
    pod: Pod, by_node: Mapping[str, Sequence[Reservation]], state: State
) -> Iterator[tuple[str, Sequence[Reservation]]]:
    """Yield the first allowed nodes with an owner's seats and borrowers, with the seats."""
    may_go, row_of = _may_go(pod, state.snapshot), state.snapshot.row
    borrowed = filter(state.snapshot.lending.has_borrowers, by_node)
    allowed = (node for node in borrowed if (row := row_of(node)) is not None and may_go[row])
    return ((node, by_node[node]) for node in islice(allowed, _MOST_JUDGED))


def _may_go(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether constraints allow an owner there.

    On other nodes borrowers would go in vain. An owner with too many constraints to judge gets its
    seat back anyway.
    """
    rows: Bools = snapshot.exists.copy()
    if not pod.constraints.are_too_many:
        for refusal in chain(node_refusals(pod, snapshot), volume_refusals(pod, snapshot)):
            rows &= ~refusal.rows
    return rows


class RoomRecall(NamedTuple):
    """The borrowers of a node that are in the way of its holds.

    Attributes:
        borrowers: the borrowers to delete.
        until: the last start of these holds, unix seconds: nothing is lent until then.
    """

    node: str
    borrowers: Sequence[Pod]
    until: float


def recalls_for_room(state: State, clock: Callable[[], float]) -> Iterator[RoomRecall | None]:
    """Yield a recall for each node whose borrowers are in the way of its holds, judged right then.

    Other work may come at each yield, of None or of a recall. Coming holds count from `AHEAD_S`
    before their start. Coming holds that lend do not: their owners recall the room that they need.

    Args:
        clock: unix seconds.
    """
    coming = yield from _coming(state, clock())
    for node in tuple(state.snapshot.lending.nodes()):
        yield None
        borrowers = state.snapshot.lending.borrowers(node)
        soon = [each for each in coming.get(node, ()) if state.ledger.is_coming(each.reservation)]
        needed = total(times(each.reservation.resources, each.slots) for each in soon)
        wanted = {name: needed.get(name, 0) for name in _helpful(node, borrowers, needed, state)}
        going = _fewest(borrowers, partial(_is_enough, node, wanted, state=state))
        if leaving := list(filter(_is_to_be_deleted, going)):
            starts = (each.reservation.starts_at or 0.0 for each in soon)
            yield RoomRecall(node, leaving, max(starts, default=clock()))


def _helpful(
    node: str, borrowers: Iterable[Pod], needed: Collection[str], state: State
) -> Iterator[str]:
    """Yield the borrowers' resources that their node offers, and holds or will hold.

    Borrowers may request any number of other, invented resources.
    """
    taken = frozenset(chain.from_iterable(each.requests for each in borrowers))
    for name in taken & {*state.ledger.held_on(node), *needed}:
        if state.snapshot.amounts(node, name).allocatable:
            yield name


class _Coming(NamedTuple):
    """The slots of a coming reservation on a node."""

    reservation: Reservation
    slots: int


def _coming(state: State, now: float) -> Generator[None, None, dict[str, list[_Coming]]]:
    """Find the reservations that start soon on each node with borrowers, in steps."""
    coming: dict[str, list[_Coming]] = {node: [] for node in state.snapshot.lending.nodes()}
    for each in state.ledger.starting(now + AHEAD_S) if coming else ():
        for part in each.parts if each.lends_below is None else ():
            if part.node in coming:
                coming[part.node].append(_Coming(each, part.slots))
        yield
    return coming


def recalls_for_owners(state: State, looked_at: dict[str, None]) -> Iterator[Recall | None]:
    """Yield the recalls for owners that no Filter call shows, judged right then.

    kube-scheduler calls no extender for a pod that fits on no node: borrowers may fill them all.
    Other work may come at each yield, of None or of a recall. The first owner of each namespace
    comes before the second of any.

    Args:
        looked_at: the UIDs of owners that were judged before, the latest last; updated. They come
            after all others, so that the caller may stop at any yield.
    """
    waiting = tuple(state.pods.values()) if state.snapshot.lending.nodes() else ()
    owners: dict[str, PodName] = {}
    for number, pod in enumerate(waiting):
        if number % _PODS_AT_ONCE == 0:
            yield None
        if pod.is_unschedulable and state.ledger.may_concern(pod):
            owners[pod.uid] = pod.name
    before = dict.fromkeys(uid for uid in looked_at if uid in owners)
    looked_at.clear()
    looked_at.update(before)
    first = [name for uid, name in owners.items() if uid not in before]
    again = [owners[uid] for uid in before]
    for name in in_turns((*first, *again), lambda owner: owner.namespace):
        owner = state.pods.get(name)
        if owner is None or not owner.is_unschedulable or owner.terminating:
            continue
        looked_at.pop(owner.uid, None)
        looked_at[owner.uid] = None
        wanted = yield from _wanted(owner, state)
        seats = state.ledger.seats(owner, (wanted,)) if wanted else ()
        found = next(recalls(owner, {wanted: seats}, state), None) if seats else None
        if found and state.pods.get(name) is owner:
            yield found


def _wanted(pod: Pod, state: State) -> Generator[None, None, str]:
    """Return the first node on which borrowers use an owner's seat; empty if it can use a seat."""
    wanted, may_go = "", _may_go(pod, state.snapshot)
    for node, seats in _by_node(state.ledger.seats(pod)).items():
        yield
        row = state.snapshot.row(node)
        if row is None or row >= len(may_go) or not may_go[row]:
            continue  # A new node is looked at in the next pass.
        if _fits(pod, seats, (), state):
            return ""
        if not wanted and _recall(pod, node, seats, state):
            wanted = node
    return wanted


def _by_node(seats: Iterable[Reservation]) -> Mapping[str, Sequence[Reservation]]:
    by_node: dict[str, list[Reservation]] = {}
    for seat in seats:
        by_node.setdefault(seat.node, []).append(seat)
    return by_node


def _is_enough(node: str, wanted: Mapping[str, int], gone: Sequence[Pod], *, state: State) -> bool:
    """Return whether a node has room for its holds and `wanted` once some borrowers are gone."""
    uids = {each.uid for each in gone}
    slots = (times(each.resources, n) for each, n in state.ledger.coming_back(node, uids))
    again = total((state.ledger.returned(node, gone=uids), *slots))
    for name, amount in wanted.items():
        offered, requested, held, _ = state.snapshot.amounts(node, name)
        freed = sum(each.requests.get(name, 0) for each in gone)
        if offered - requested - held + freed - again.get(name, 0) < amount:
            return False
    return True


def _fewest(pods: Iterable[Pod], is_enough: Callable[[Sequence[Pod]], bool]) -> Sequence[Pod]:
    """Return the borrowers to delete; empty if none has to go, or if all are not enough."""
    borrowers = sorted(pods, key=_in_order)
    if not borrowers or not is_enough(borrowers) or is_enough(()):
        return ()
    # The more are gone, the more room there is.
    number = bisect_left(range(1, len(borrowers)), 1, key=lambda n: is_enough(borrowers[:n]))
    going = borrowers[: number + 1]
    for each in going[-2 : -2 - _MOST_SPARED : -1]:  # Spare the most important ones if possible.
        others = [other for other in going if other is not each]
        if not each.terminating and is_enough(others):
            going = others
    return going


def _is_to_be_deleted(pod: Pod) -> bool:
    """Return whether a borrower is not being deleted yet, or with a long grace period.

    Another deletion shortens it (`BeforeDelete` in apiserver's pkg/registry/rest/delete.go).
    """
    return pod.lingers or not pod.terminating


def _in_order(pod: Pod) -> tuple[bool, int, Sequence[int]]:
    """Return the sort key of borrowers: ending ones, the least important, the youngest first."""
    return (not pod.terminating, pod.priority, [-ord(letter) for letter in pod.created])


def _fits(pod: Pod, seats: Sequence[Reservation], gone: Sequence[Pod], state: State) -> bool:
    """Return whether an owner fits on the node of its seats once some borrowers are gone."""
    snapshot, node = state.snapshot, seats[0].node
    freed: dict[str, int] = {}  # Only the owner's resources: borrowers may request many.
    for name, amount in pod.requests.items():
        offered, requested, *_ = snapshot.amounts(node, name)
        freed[name] = sum(each.requests.get(name, 0) for each in gone)
        if amount and offered - requested + freed[name] < amount:
            return False
    own = with_yields(seats_by_node(pod, seats, state.ledger), pod, (node,), state.ledger)
    seat = own[node]
    uids = {each.uid for each in gone}
    lent, regained = (
        state.ledger.returned(node, seats, uids),
        state.ledger.regained({node: uids}, pod),
    )
    own[node] = seat._replace(returned=total((lent, regained.get(node, {}))))
    taken = {node: {name: -amount for name, amount in freed.items()}}
    row = snapshot.row(node)
    return row is not None and bool(fits_beside_holds(pod, snapshot, own, taken)[row])
