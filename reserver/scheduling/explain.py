"""Explains why a pod may or may not use nodes, in kube-scheduler's words and in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import IDLE, ShortNodes
from reserver.scheduling.fit import (
    fits_beside_holds,
    has_room,
    is_exempt,
    is_in_the_way,
    refusals,
    seats_by_node,
    with_yields,
)
from reserver.scheduling.node_explanation import (
    NodeExplanation,
    ShownHold,
    explain_nodes,
    show_hold,
)
from reserver.scheduling.reasons import HELD
from reserver.scheduling.state import State

PROMISED = "room promised to pods that were nominated earlier"
NO_SEAT_YET = "the reservation that it must land on has no node yet"
NOT_ITS_SEAT = "not its seat, and it must land on one"

MOST_NODES = 200
MOST_RESERVATIONS = 100
_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCount:
    """One reason for which nodes are refused; a node may have several.

    Attributes:
        reason: the reason, in kube-scheduler's words if it is one of its own.
        nodes: the number of nodes.
        examples: the names of some of them.
    """

    reason: str
    nodes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """A reservation that a pod may claim once it holds.

    Attributes:
        reservation: its name.
        reason: why it does not hold yet, in one word.
        message: the reason in a sentence, and the remedy.
    """

    reservation: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a pod may or may not use each node.

    Attributes:
        pod: ``namespace/name``.
        node: its node; empty if unbound.
        summary: one line in kube-scheduler's style.
        nodes: the number of nodes.
        available: the number of nodes that it may use; 0 for a bound pod.
        reasons: the reasons against the others, most frequent first; empty for a bound pod.
        in_the_way: the reservations that hold its room on nodes that nothing else excludes, at most
            `MOST_RESERVATIONS`, earliest expiry first.
        more_in_the_way: the number of reservations left out.
        exempt: whether its priority exempts it from holds.
        has_resource_claims: whether it has ResourceClaims: holds have no devices, and only
            kube-scheduler can see free ones.
        owns: the reservations that hold capacity for it now.
        pending: the reservations that will, oldest first, at most `MOST_RESERVATIONS`; empty for a
            bound pod.
        nodes_without_holds: the number of nodes without holds.
        nodes_with_holds: the effect of the holds of each node, at most `MOST_NODES`, seats first.
        truncated: the number of nodes with holds left out.
    """

    pod: str
    node: str
    summary: str
    nodes: int
    available: int
    reasons: tuple[ReasonCount, ...]
    in_the_way: tuple[ShownHold, ...]
    more_in_the_way: int
    exempt: bool
    has_resource_claims: bool
    owns: tuple[ShownHold, ...]
    pending: tuple[NotYet, ...]
    nodes_without_holds: int
    nodes_with_holds: tuple[NodeExplanation, ...]
    truncated: int


def explain(pod: Pod, state: State, now: float) -> Explanation:
    """Return why a pod may or may not use each node, at `now` (unix seconds)."""
    state.ledger.advance(now, most=None)
    snapshot = state.snapshot
    seats = state.ledger.seats(pod)
    found = {} if pod.node else reasons_against(pod, state, seats)
    if not pod.node and not seats and state.ledger.awaited_by(pod):
        found[NO_SEAT_YET] = snapshot.exists.copy()
    reasons = count_reasons(found, snapshot)
    available = 0 if pod.node else int((snapshot.exists & ~_any(found.values(), snapshot)).sum())
    held = found.get(HELD.message, _any((), snapshot)) & ~_any(
        (rows for reason, rows in found.items() if reason != HELD.message), snapshot
    )
    holds = _in_the_way(pod, np.flatnonzero(held), state)
    elsewhere = _elsewhere(pod, state) if holds else {}
    names = [
        snapshot.name_of(int(row)) for row in np.flatnonzero(snapshot.has_holds & snapshot.exists)
    ]
    own = {seat.node for seat in seats}
    names.sort(key=lambda name: (name not in own, name))
    return Explanation(
        pod=str(pod.name),
        node=pod.node,
        summary=_on_its_node(pod) or summary(snapshot.node_count, available, reasons),
        nodes=snapshot.node_count,
        available=available,
        reasons=reasons,
        in_the_way=tuple(
            replace(show_hold(each, now), for_namespace=elsewhere.get(each.ref, ""))
            for each in holds[:MOST_RESERVATIONS]
        ),
        more_in_the_way=max(0, len(holds) - MOST_RESERVATIONS),
        exempt=is_exempt(pod, snapshot),
        has_resource_claims=pod.has_resource_claims,
        owns=tuple(show_hold(seat, now) for seat in seats),
        pending=() if pod.node else tuple(islice(_pending(pod, state), MOST_RESERVATIONS)),
        nodes_without_holds=snapshot.node_count - len(names),
        nodes_with_holds=explain_nodes(pod, names[:MOST_NODES], state, now),
        truncated=max(0, len(names) - MOST_NODES),
    )


def reasons_against(pod: Pod, state: State, seats: Sequence[Reservation]) -> dict[str, Bools]:
    """Return each reason against an unbound pod, with the rows of the nodes."""
    snapshot = state.snapshot
    own = seats_by_node(pod, seats, state.ledger)
    held = np.flatnonzero(snapshot.guarded & snapshot.exists)
    names = [snapshot.name_of(int(row)) for row in held]
    shares = with_yields(own, pod, names, state.ledger)
    found: dict[str, Bools] = {}
    for reason, rows in refusals(pod, snapshot, shares):
        found[reason.message] = found.get(reason.message, np.False_) | rows
    promised = state.nominations.promised(pod, names, own, state.ledger)
    if promised:
        unheld = fits_beside_holds(pod, snapshot, shares)
        blocked = unheld & ~fits_beside_holds(pod, snapshot, shares, promised)
        room = has_room(pod, snapshot, held)
        found[PROMISED] = snapshot.marked(held[room & blocked[held]])
    if seats and state.ledger.required(pod) is not None:
        nodes = [seat.node for seat in seats]
        found[NOT_ITS_SEAT] = ~snapshot.marked(snapshot.rows(nodes))
    return {reason: rows & snapshot.exists for reason, rows in found.items()}


def _any(masks: Iterable[Bools], snapshot: Snapshot) -> Bools:
    rows = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for mask in masks:
        rows |= mask
    return rows


def count_reasons(found: dict[str, Bools], snapshot: Snapshot) -> tuple[ReasonCount, ...]:
    """Return the number of nodes of each reason, most frequent first."""
    counts = []
    for reason, refused in found.items():
        rows = np.flatnonzero(refused)
        if len(rows):
            examples = tuple(snapshot.name_of(row) for row in rows[:_EXAMPLES])
            counts.append(ReasonCount(reason=reason, nodes=len(rows), examples=examples))
    return tuple(sorted(counts, key=lambda count: (-count.nodes, count.reason)))


def _on_its_node(pod: Pod) -> str:
    return f"it is on {pod.node} already" if pod.node else ""


def summary(nodes: int, available: int, reasons: Sequence[ReasonCount]) -> str:
    """Return the number of available nodes, and the reasons against the others, in one line."""
    counted = ", ".join(f"{count.nodes} {count.reason}" for count in reasons)
    return f"{available}/{nodes} nodes are available{': ' if counted else ''}{counted}."


def _pending(pod: Pod, state: State) -> Iterator[NotYet]:
    short_nodes = ShortNodes.of(state.snapshot)
    for reservation in state.ledger.claimable_by(pod):
        status = short_nodes.status(reservation, state.ledger)
        is_used_up = status.phase is Phase.CLAIMED and reservation.reusable
        if status.phase is Phase.PENDING or is_used_up or status.reason == IDLE:
            yield NotYet(
                reservation=str(reservation.ref), reason=status.reason, message=status.message
            )


def _elsewhere(pod: Pod, state: State) -> dict[Ref, str]:
    """Return the reservations that a pod could claim in another namespace, with the namespace.

    An owner without a namespace gets that of its ConfigMap: often its author forgot to write it.
    """
    found: dict[Ref, str] = {}
    for namespace in sorted(state.public_namespaces - {pod.name.namespace}):
        there = replace(pod, name=PodName(namespace, pod.name.name))
        found |= dict.fromkeys(state.ledger.owned_by(there), namespace)
    return found


def _in_the_way(pod: Pod, rows: Rows, state: State) -> list[Reservation]:
    """Return others' reservations that hold resources on these rows, earliest expiry first."""
    own = state.ledger.owned_by(pod)
    holds = [
        reservation
        for row in rows
        for reservation in state.ledger.holding_on(state.snapshot.name_of(row))
        if is_in_the_way(reservation, pod, own)
    ]
    holds.sort(key=lambda hold: (hold.expires_at is None, hold.expires_at, str(hold.ref)))
    return holds
