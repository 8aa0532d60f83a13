"""Placement: finds nodes for a reservation that names none.

A slot is judged by `fit` as its future pod: with the reservation's placement and the resources of
one slot. Unlike a pod it needs room for all its resources next to all holds, pending bindings and
nominated pods. Only the seat of a PodMove to a named node may precede its room: it holds the room
that other pods leave.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.guests import occupied
from reserver.cluster.headroom import Int64s
from reserver.cluster.node import NODES
from reserver.cluster.pod import ClaimUse, Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations import owner
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import Part, Parts
from reserver.reservations.reservation import Reservation
from reserver.scheduling.closures import Nodes, without
from reserver.scheduling.explain import count_reasons, reasons_against, summary
from reserver.scheduling.fit import allowed
from reserver.scheduling.node_limits import REACHED, full_of_volumes, most_slots, taken
from reserver.scheduling.reasons import TOO_MANY_VOLUMES
from reserver.scheduling.request_arrays import amount_table, request_columns
from reserver.scheduling.slot_nodes import ahead, distribute, never_fits, vacant
from reserver.scheduling.slot_nodes import why_not_vacant as refusals
from reserver.scheduling.state import State
from reserver.scheduling.what_if import trial

NO_NODES = "no nodes available to schedule pods"
"""ErrNoNodesAvailable in pkg/scheduler/schedule_one.go."""

_LAST = -(2**31)
"""The least priority: every nominated pod comes first."""

_TERMS_AT_A_TIME = 8
"""Pod affinity and spread terms that are judged in one step, each for one slot: a term looks at all
pods. Each step counts the earlier slots anew, so one step for each slot would cost more."""

_SPARE_STEPS = 10
"""Times that placed slots may lose their room to others before the search gives up."""

Aside = Callable[[], AbstractContextManager[None]]
"""Changes the counted amounts until its block ends; the block must not ``yield``."""


class Placed(NamedTuple):
    """The places of a reservation's slots.

    Attributes:
        parts: the slots by node; empty if they do not all fit.
        why: why they do not, in kube-scheduler's words.
        never: they would not even fit if all nodes were empty.
    """

    parts: Parts = ()
    why: str = ""
    never: bool = False


AllowedNodes = dict[object, Bools]
"""The rows that constraints allow, cached for slots with the same constraints.

Valid as long as no pod and no node changes.
"""


def allowed_slots(pod: Pod, snapshot: Snapshot, known: AllowedNodes) -> Bools:
    """Return, for each row, whether constraints allow a slot there; `known` is the cache."""
    labels = frozenset(pod.labels.items())
    key = (pod.name.namespace, labels, pod.constraints, pod.volume_claims)
    if key not in known:
        known[key] = allowed(pod, snapshot) & ~snapshot.has_unreadable
    return known[key]


def slot_pod(reservation: Reservation) -> Pod:
    """Return the pod that stands for one slot: an owner with the placement's constraints.

    Its labels are those that the first owner rule requires; a named owner's labels are unknown.
    """
    rules = reservation.rules
    terms = rules[0].selector.requirements if rules else ()
    return Pod(
        name=PodName(owner.home(reservation.owners, rules), ""),
        uid="",
        priority=_LAST,
        requests=reservation.resources,
        labels={t.key: min(t.values) for t in terms if t.operator == "In" and len(t.values) == 1},
        constraints=reservation.placement.constraints,
        volume_claims=tuple(
            ClaimUse(name, is_inherited=True) for name in reservation.volume_claims
        ),
    )


def placing(
    reservation: Reservation,
    slots: int,
    state: State,
    allowed_nodes: AllowedNodes | None = None,
    aside: Aside = nullcontext,
) -> Generator[None, None, Placed]:
    """Find nodes for `slots` slots of a reservation: for all of them, or for none.

    Other work may come between the steps, and sees no change. The room is checked in the last step;
    the neighbours are not checked again.

    Args:
        reservation: a reservation without a named node.
        slots: the number of slots, at least 1.
        state: the state, with its ledger advanced to now.
        allowed_nodes: the cache of allowed nodes.
        aside: changes the counted amounts during each step.
    """
    pod, allowed_nodes = slot_pod(reservation), {} if allowed_nodes is None else allowed_nodes
    full = yield from full_of_volumes(reservation, state)
    for avoided in state.closures.tiers(reservation):
        parts = yield from _apart(
            reservation,
            pod,
            slots,
            state,
            allowed_nodes=allowed_nodes,
            aside=aside,
            avoided=avoided | full,
        )
        if parts:
            return Placed(parts)
        yield  # Finding the reason takes as long again.
    with aside():
        return _refused(reservation, pod, slots, state, full)


def _apart(  # noqa: PLR0913 - of `placing`
    reservation: Reservation,
    pod: Pod,
    slots: int,
    state: State,
    *,
    allowed_nodes: AllowedNodes,
    aside: Aside,
    avoided: Nodes,
) -> Generator[None, None, Parts]:
    """Find nodes for slots, except nodes to avoid."""
    if pod.constraints.are_about_neighbours and slots > 1:
        return (yield from _beside_each_other(reservation, pod, slots, state, aside, avoided))
    with aside():
        may_go = allowed_slots(pod, state.snapshot, allowed_nodes)
        if avoided:
            may_go = may_go & without(avoided, state.snapshot)
        most = most_slots(reservation, pod, state)
        parts = _at_once(pod, reservation, slots, state, may_go, most)
        if parts or not reservation.is_seat:
            return parts
        return ahead(pod, reservation.slots, state.snapshot, may_go)


def room_for(pod: Pod, state: State, rows: Rows, rules: Sequence[OwnerRule] = ()) -> Int64s:
    """Return the number of such pods for which each row has room, without constraints.

    For a slot that is a whole node, a row counts 1 if only pods that match the owner rules use it.
    """
    snapshot, nominations = state.snapshot, state.nominations
    if NODES in pod.requests:
        promised = nominations.promised(pod, nominations.nodes(), (), state.ledger)
        return (vacant(rules, snapshot) & without(promised, snapshot))[rows].astype(np.int64)
    columns, amounts = request_columns(pod, snapshot)
    if len(columns) < sum(amount > 0 for amount in pod.requests.values()):
        return np.zeros(len(rows), dtype=np.int64)  # No node offers it.
    at = np.ix_(rows, columns)
    free = snapshot.allocatable[at] - snapshot.requested[at] - snapshot.held[at]
    promised = nominations.promised(pod, nominations.nodes(), (), state.ledger)
    if promised:
        free -= amount_table(promised, snapshot, rows, columns)
    room: Int64s = np.maximum((free // amounts).min(axis=1), 0)
    return room


def _at_once(
    pod: Pod, reservation: Reservation, slots: int, state: State, may_go: Bools, most: Int64s
) -> Parts:
    """Return the parts of independent slots, within `most` of each row; empty without room."""
    rows = np.flatnonzero(may_go)
    room = room_for(pod, state, rows, reservation.rules)
    room = np.minimum(np.minimum(room, most[rows]), slots)
    rows, room = rows[room > 0], room[room > 0]
    if room.sum() < slots:
        return ()
    if NODES in pod.requests:
        rows = rows[np.argsort(~occupied(state.snapshot)[rows], kind="stable")]  # Owners' first.
        return tuple(Part(state.snapshot.name_of(int(row)), 1) for row in rows[:slots])
    strategy = reservation.placement.strategy
    numbers = distribute(pod, strategy, slots, rows, room, state.snapshot)
    chosen = np.flatnonzero(numbers)
    names = (state.snapshot.name_of(int(rows[index])) for index in chosen)
    return tuple(map(Part, names, map(int, numbers[chosen])))


def _beside_each_other(
    reservation: Reservation, pod: Pod, slots: int, state: State, aside: Aside, avoided: Nodes
) -> Generator[None, None, Parts]:
    """Find nodes for slots that are each other's neighbours: each counts for the next ones.

    The counted slots are removed at the end of each step.
    """
    constraints = pod.constraints
    asked = len(constraints.affinity + constraints.anti_affinity) + len(constraints.spread)
    at_a_time = max(_TERMS_AT_A_TIME // asked, 1)
    numbers: dict[str, int] = {}
    for _ in range(slots + _SPARE_STEPS):
        with aside(), trial(state.snapshot, "slot") as seat:
            numbers, most = _with_room(pod, numbers, state), most_slots(reservation, pod, state)
            for node, number in numbers.items():
                for _ in range(number):
                    seat(pod, Part(node, 1))
            for _ in range(min(at_a_time, slots - sum(numbers.values()))):
                may_go = allowed(pod, state.snapshot) & without(avoided, state.snapshot)
                left = most - taken(numbers, state.snapshot)
                parts = _at_once(pod, reservation, 1, state, may_go, left)
                if not parts:
                    return ()
                seat(pod, parts[0])
                node = parts[0].node
                numbers[node] = numbers.get(node, 0) + 1
        if sum(numbers.values()) == slots:
            return tuple(map(Part, numbers.keys(), numbers.values()))
        yield
    return ()


def _with_room(pod: Pod, numbers: Mapping[str, int], state: State) -> dict[str, int]:
    """Return the number of placed slots on each node that still have room."""
    nodes = [node for node in numbers if state.snapshot.has_node(node)]
    room = room_for(pod, state, state.snapshot.rows(nodes)).tolist()
    kept = {node: min(numbers[node], most) for node, most in zip(nodes, room, strict=True)}
    return {node: number for node, number in kept.items() if number}


def _refused(reservation: Reservation, pod: Pod, slots: int, state: State, full: Nodes) -> Placed:
    snapshot = state.snapshot
    if not snapshot.node_count:
        return Placed((), NO_NODES)
    whole, rules = reservation.is_whole, reservation.rules
    found = refusals(rules, pod, state) if whole else reasons_against(pod, state, ())
    found |= state.closures.refusals(reservation, snapshot)
    if full:
        found[TOO_MANY_VOLUMES.message] = snapshot.exists & ~without(full, snapshot)
    most = most_slots(reservation, pod, state)
    if not most.all():
        found[REACHED] = snapshot.exists & (most == 0)
    refused = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for rows in found.values():
        refused |= rows
    fitting = np.flatnonzero(snapshot.exists & ~refused)
    why = summary(snapshot.node_count, len(fitting), count_reasons(found, snapshot))
    if len(fitting):  # Each slot fits alone, but not all together.
        room = np.minimum(room_for(pod, state, fitting, rules), most[fitting])
        some, what = int(np.minimum(room, slots).sum()), "nodes" if whole else "slots"
        why = f"there is room for {min(some, slots - 1)} of {slots} {what}; {why}"
    return Placed((), why, never=never_fits(pod, slots, snapshot))
