"""Filter: decides which of the nodes that kube-scheduler names a pod may use.

Names are a sample of the nodes that pass kube-scheduler's own filters. An owner gets only its
seats; any other pod gets nodes without holds first, then nodes where it fits next to the holds, and
no more than kube-scheduler needs (each returned name costs it time). Messages are few and constant:
a varying message would make kube-scheduler retry without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, filterfalse, islice

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.view import LedgerView
from reserver.scheduling.fit import (
    NO_SEAT,
    NO_SEATS,
    Seat,
    Seats,
    fits_beside_holds,
    has_room,
    in_the_way,
    seats_by_node,
    with_yields,
)
from reserver.scheduling.gangs import NOBODY, Attempt
from reserver.scheduling.in_flight import FORGETTING_S
from reserver.scheduling.nomination import SHOWN_S, elsewhere, nominations_for, once_read
from reserver.scheduling.pending_pods import LEAST_SAMPLE
from reserver.scheduling.recall import recalls
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import FilterVerdict, Retry, WaitsFor

ANSWER_LIMIT = LEAST_SAMPLE
"""Most nodes in an answer: more cost throughput, and improve no placement."""

_FIRST_CHUNK = 128
_MOST_NAMED = 3
HELD = "capacity held by reservations"
BOUND = "bound to another node already"


class _OwnSeats:
    """The seats of a pod by node, summed once for a call: an owner may have a hundred on a node."""

    def __init__(self, pod: Pod, seats: Iterable[Reservation], ledger: LedgerView) -> None:
        self._pod = pod
        self._ledger = ledger
        self._summed: dict[str, Seat] = {}
        self.on_node: dict[str, list[Reservation]] = {}
        for seat in seats:
            self.on_node.setdefault(seat.node, []).append(seat)

    def on(self, nodes: Iterable[str]) -> Seats:
        """Return the seats on some nodes."""
        if not self.on_node:
            return NO_SEATS
        there = [node for node in nodes if node in self.on_node]
        new = (seat for node in there if node not in self._summed for seat in self.on_node[node])
        self._summed.update(seats_by_node(self._pod, new, self._ledger))
        return {node: self._summed[node] for node in there}


def filter_nodes(pod: Pod, names: Sequence[str], state: State, now: float) -> FilterVerdict:
    """Return the named nodes that a pod may use, and the reasons against the others.

    Args:
        names: the nodes of the call, best first.
        now: unix seconds.
    """
    state.ledger.advance(now, most=None)
    if pod.node:
        return _for_bound(pod, names)
    gang = state.gangs.attempt(pod, now) if pod.group else NOBODY
    if not state.ledger.may_concern(pod):
        return _for_anybody(pod, names, state, _OwnSeats(pod, (), state.ledger), gang)
    seats = state.ledger.seats(pod, spent=gang.spent)
    own = _OwnSeats(pod, seats, state.ledger)
    if not seats:
        awaited = state.ledger.awaited_by(pod)
        if awaited is not None:
            refused = dict.fromkeys(names, f"waiting for a place of reservation {awaited.ref}")
            is_shown = state.ledger.succession.knows(pod)
            effects = () if is_shown else (Retry(pod, attempts=1, after_s=SHOWN_S),)
            return FilterVerdict(refused=refused, effects=effects, waits_for=WaitsFor.SEAT)
        return _for_anybody(pod, names, state, own, gang)
    verdict, lost = _for_owner(pod, names, state, own, gang, now)
    return replace(verdict or _for_anybody(pod, names, state, own, gang), lost_seat=lost)


def _for_bound(pod: Pod, names: Sequence[str]) -> FilterVerdict:
    """Return the own node of a bound pod that waits for a resize.

    kube-scheduler calls for pods whose resize the kubelet has deferred, to preempt if they do not
    fit (InPlacePodVerticalScalingSchedulerPreemption, alpha in 1.37). The kubelet resizes the pod
    as soon as there is room, held or not; Preempt decides whether pods are evicted for that.
    """
    nodes = [name for name in names if name == pod.node]
    return FilterVerdict(nodes=nodes, refused={} if nodes else dict.fromkeys(names, BOUND))


def _for_anybody(
    pod: Pod, names: Sequence[str], state: State, seats: _OwnSeats, gang: Attempt
) -> FilterVerdict:
    """Return nodes on which a pod takes no held room of others, nodes without holds first.

    A pod of a group gets only nodes without holds, if there are any: there kube-scheduler counts
    the other pods of the group. Else it gets one node, on which Reserver counts it.
    """
    # Soft constraints are scored over the whole sample.
    enough = len(names) if pod.has_preferences else ANSWER_LIMIT
    nodes = list(islice(_without_holds(names, state.snapshot), enough))
    if nodes and (pod.group or len(nodes) >= enough):
        return FilterVerdict(nodes=nodes)
    fits = _fits_beside_holds(pod, names, state, seats, gang)
    more = _fitting(names, fits, state.snapshot)
    if nodes:
        more = filterfalse(frozenset(nodes).__contains__, more)
    nodes += islice(more, 1 if pod.group else enough - len(nodes))
    if nodes:
        return FilterVerdict(nodes=nodes)
    refused, refs = _name_holds(pod, names, state)
    effects = elsewhere(pod, names, state, fits, gang)
    effects = effects or once_read(pod, names, state.snapshot)
    waits_for = WaitsFor.ROOM if names else None
    return FilterVerdict(refused=refused, effects=effects, waits_for=waits_for, in_the_way=refs)


def _for_owner(
    pod: Pod,
    names: Sequence[str],
    state: State,
    seats: _OwnSeats,
    gang: Attempt,
    now: float,
) -> tuple[FilterVerdict | None, Reservation | None]:
    """Return the verdict on an owner: its seats, or the way to one; None if it may land elsewhere.

    The second value is the last seat that kube-scheduler has refused.
    """
    on_node = seats.on_node
    usable = partial(_usable, pod, seats=seats, state=state, gang=gang)
    named = frozenset(names)
    enough = 1 if pod.group else len(names) if pod.has_preferences else ANSWER_LIMIT
    if here := list(islice(usable([node for node in on_node if node in named]), enough)):
        return FilterVerdict(nodes=here), None
    # kube-scheduler tries the nominated node first. So its own filters refused a nominated seat
    # that is not among the names, and the seats before it.
    nodes = list(_with_room(pod, list(on_node), state.snapshot))
    was_tried = pod.nominated_node in nodes and any(usable([pod.nominated_node]))
    tried = nodes.index(pod.nominated_node) + 1 if was_tried else 0
    lost = on_node[pod.nominated_node][0] if was_tried else None
    first = next(iter(on_node.values()))[0]
    refused = dict.fromkeys(names, f"waiting for its seat in reservation {first.ref}")
    if lost is not None and state.inflight_binds.has(lost.node, now):
        # As a rule kube-scheduler retries before that, when it has heard of the failure
        # (handleBindingCycleError in pkg/scheduler/schedule_one.go).
        later = Retry(pod, attempts=1, after_s=FORGETTING_S)
        return FilterVerdict(refused=refused, effects=(later,), waits_for=WaitsFor.SEAT), None
    nominations = nominations_for(pod, usable(nodes[tried:]), gang, state)
    if not nominations and (wanted := next(recalls(pod, on_node, state), None)):
        effects = (wanted,) if wanted.borrowers else ()
        waits = FilterVerdict(refused=refused, effects=effects, waits_for=WaitsFor.SEAT)
        return replace(waits, recalled=wanted.node), None
    if not nominations and state.ledger.required(pod, gang.spent) is None:
        return None, lost
    waits_for = None if nominations else WaitsFor.SEAT
    return FilterVerdict(refused=refused, effects=nominations, waits_for=waits_for), lost


def _with_room(pod: Pod, nodes: Sequence[str], snapshot: Snapshot) -> Iterable[str]:
    """Return the nodes except those that borrowers have filled, for now."""
    borrowed = [node for node in nodes if snapshot.lending.has_borrowers(node)]
    if not borrowed:
        return nodes
    room = has_room(pod, snapshot, snapshot.rows(borrowed)).tolist()
    full = {node for node, fits in zip(borrowed, room, strict=True) if not fits}
    return filterfalse(full.__contains__, nodes)


def _usable(
    pod: Pod,
    nodes: Sequence[str],
    seats: _OwnSeats,
    state: State,
    gang: Attempt,
) -> Iterator[str]:
    """Yield the nodes on which a pod can use its seat, judged lazily."""
    for chunk in _chunks(nodes):
        own = with_yields(seats.on(chunk), pod, chunk, state.ledger)
        fits = fits_beside_holds(pod, state.snapshot, own, gang.taken)
        yield from compress(chunk, fits[state.snapshot.rows(chunk)].tolist())


def _fits_beside_holds(
    pod: Pod, names: Sequence[str], state: State, seats: _OwnSeats, gang: Attempt
) -> Bools:
    """Return, for each row, whether a pod fits next to others' holds and promised room."""
    own = seats.on(names)
    promised = state.nominations.promised(pod, names, own, state.ledger, gang.has)
    for node, amounts in gang.taken.items():
        promised[node] = total((promised.get(node, {}), amounts))
    conceded = state.ledger.conceded(pod)
    if conceded is not None:  # For nodes with other terms, use exact sums.
        exact = own.keys() | promised.keys() | state.ledger.conceding_to_owner(pod)
        exact.update(state.snapshot.held_beyond_cells())
        own = with_yields({n: own.get(n, NO_SEAT) for n in exact}, pod, exact, state.ledger)
    return fits_beside_holds(pod, state.snapshot, own, promised, conceded)


def _without_holds(names: Sequence[str], snapshot: Snapshot) -> Iterator[str]:
    """Yield the names of nodes without holds, in order, by a look-up in the smaller set.

    If most nodes have holds, unknown nodes are left to `_fitting`.
    """
    without, holding = snapshot.without_holds, snapshot.holding
    if len(without) < len(holding):
        return filter(without.__contains__, names if without else ())
    return filterfalse(holding.__contains__, names)


def _fitting(names: Sequence[str], fits: Bools, snapshot: Snapshot) -> Iterable[str]:
    """Return the names of nodes that fit or are unknown yet, in order.

    Looking up rows takes longest: it is done lazily, and only if results differ between rows.
    """
    by_row = fits.tobytes()
    if b"\0" not in by_row:
        return names
    if not (fits & snapshot.guarded).any():
        holding = snapshot.holding
        return () if holding.issuperset(names) else filterfalse(holding.__contains__, names)
    return compress(names, map((by_row + b"\1").__getitem__, snapshot.each_row(names)))


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield names in chunks that grow fourfold, so that the first is small and chunks are few."""
    start, size = 0, _FIRST_CHUNK
    while start < len(names):
        yield names[start : start + size]
        start, size = start + size, 4 * size


def _name_holds(
    pod: Pod, names: Sequence[str], state: State
) -> tuple[dict[str, str], tuple[Ref, ...]]:
    """Return the reservation in the way on each node, or constant words if there are many."""
    first: dict[str, Reservation | None] = {}
    refs = set()
    for name, other in zip(names, in_the_way(pod, names, state.ledger), strict=True):
        first[name] = other
        if other is not None:
            refs.add(other.ref)
        if len(refs) > _MOST_NAMED:
            return dict.fromkeys(names, HELD), ()
    words = {
        name: f"held by {state.name_for(other.ref, pod)}" if other else HELD
        for name, other in first.items()
    }
    return words, tuple(sorted(refs))
