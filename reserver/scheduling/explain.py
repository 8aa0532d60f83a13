"""Explains why a pod may or may not have nodes, in kube-scheduler's words and in numbers."""

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
    """One reason why nodes are refused; a node may have several.

    Attributes:
        reason: in the words of kube-scheduler where it is one of its own.
        nodes: on how many nodes it holds.
        examples: the names of some.
    """

    reason: str
    nodes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """A reservation that a pod may claim, if it held.

    Attributes:
        reservation: its name.
        reason: why it does not hold yet, in one word.
        message: why, and what to do.
    """

    reservation: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a pod may or may not have nodes.

    Attributes:
        pod: ``namespace/name``.
        node: where it is bound already; empty while it is not.
        summary: one line in the manner of kube-scheduler.
        nodes: how many there are.
        available: how many of them it may have; 0 for a pod that is on one.
        reasons: why not the others, the most frequent first; none for a pod that is on one.
        in_the_way: the reservations that hold what it needs, on nodes from which nothing else
            keeps it, at most `MOST_RESERVATIONS`, those that end first first.
        more_in_the_way: how many were left out.
        exempt: its priority is so high that holds do not apply.
        has_resource_claims: no hold has their devices, and only kube-scheduler knows where some are
            free.
        owns: the reservations that hold capacity for it now.
        pending: those that will, oldest first, at most `MOST_RESERVATIONS`; none for a pod that is
            on a node.
        nodes_without_holds: on how many nodes nothing is held.
        nodes_with_holds: what the holds of each mean, at most `MOST_NODES`, seats first.
        truncated: how many nodes with holds were left out.
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
    """Return why a pod may or may not have each node, at `now` (unix seconds)."""
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
    """Return each reason why nodes refuse an unbound pod, with the rows of those nodes."""
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
        beside = fits_beside_holds(pod, snapshot, shares)
        beside = beside & ~fits_beside_holds(pod, snapshot, shares, promised)
        room = has_room(pod, snapshot, held)
        found[PROMISED] = snapshot.marked(held[room & beside[held]])
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
    """Return on how many nodes each reason holds, the most frequent first."""
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
    """Return how many of all nodes are available, and why not the others, in one line."""
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
    """Return the reservation that a pod could claim in another namespace, and that namespace.

    An owner without a namespace is of that of its ConfigMap: often somebody forgot to write it.
    """
    found: dict[Ref, str] = {}
    for namespace in sorted(state.public_namespaces - {pod.name.namespace}):
        there = replace(pod, name=PodName(namespace, pod.name.name))
        found |= dict.fromkeys(state.ledger.owned_by(there), namespace)
    return found


def _in_the_way(pod: Pod, rows: Rows, state: State) -> list[Reservation]:
    """Return the reservations of others that hold resources a pod needs; the first to end first."""
    own = state.ledger.owned_by(pod)
    holds = [
        reservation
        for row in rows
        for reservation in state.ledger.holding_on(state.snapshot.name_of(row))
        if is_in_the_way(reservation, pod, own)
    ]
    holds.sort(key=lambda hold: (hold.expires_at is None, hold.expires_at, str(hold.ref)))
    return holds
