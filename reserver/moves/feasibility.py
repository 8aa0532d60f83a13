"""Checks whether a move is still possible: its target, the volumes of its pod, and its plan.

A plan names pods and nodes of an earlier state of the cluster. Since then the pod may be gone, the
node cordoned or its room taken: a seat would wait there in vain, and keep others out. A node that
refuses the pod may be closed only for a while.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Taint
from reserver.cluster.node import CORDON, passes
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.moves.index import MoveIndex
from reserver.moves.migrations import BEFORE_IT_GOES
from reserver.moves.model import Move
from reserver.moves.phases import MoveMode, MovePhase
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import constraint_refusals
from reserver.scheduling.node_rules import allowed_by_affinity, confinement, is_closed, untolerated
from reserver.scheduling.reasons import TAINTED, UNSCHEDULABLE
from reserver.scheduling.request_arrays import amount_table, request_columns
from reserver.scheduling.state import State
from reserver.stores.object.codec import MOST_CLAIMS


def too_many_claims(pod: Pod) -> str:
    """Return why a seat cannot have all volumes of a pod; empty if it can."""
    count = sum(not use.is_ephemeral for use in pod.volume_claims)
    if count <= MOST_CLAIMS:
        return ""
    return f"it uses {count} PersistentVolumeClaims, and a seat takes {MOST_CLAIMS} at most"


def edited(move: Move, seat: Reservation, pod: Pod | None) -> str:
    """Return why a seat is of no use to the pod's replacement, since it was edited; or empty.

    Whoever may edit Reservations may edit it. Once the pod is evicted nothing is better than it.
    """
    if pod is None or move.status.phase not in BEFORE_IT_GOES:
        return ""
    replaced = {rule.replaces.uid for rule in seat.rules}
    if not (move.pod in seat.owners if move.is_entering else move.status.uid in replaced):
        return "the owners of the seat were edited, so that the pod cannot use it; move again"
    if any(seat.resources.get(name, 0) < amount for name, amount in pod.requests.items()):
        return "the seat holds less than the pod requests: one of them was edited; move again"
    return ""


def confined(move: Move, state: State) -> str:
    """Return why no allowed node of a move can use the pod's volumes; empty if one can.

    A volume stays in its place. Without this check the pod would be evicted for a seat that its
    replacement cannot use, and could return to its volume only once the seat is released.
    """
    pod, snapshot = state.pods.get(move.pod), state.snapshot
    takes_seat = move.spec.mode is not MoveMode.EVICT_ONLY
    is_judged = takes_seat and not (move.awaits_first or move.is_over)
    if not is_judged or move.status.phase is MovePhase.LANDING:
        return ""
    if pod is None or not pod.volume_claims:
        return ""
    if why := too_many_claims(pod):
        return why
    rows = _asked_for(move, snapshot)
    if (source := snapshot.row(pod.node)) is not None:
        rows[source] = False
    return confinement(pod, snapshot, rows) if rows.any() else ""


def is_as_asked(move: Move, node: str, snapshot: Snapshot) -> bool:
    """Return whether a node is a target of a move; true if the node is unknown."""
    row = snapshot.row(node)
    if row is None or move.spec.node:
        return move.spec.node in {"", node}
    return bool(_asked_for(move, snapshot)[row])


def _asked_for(move: Move, snapshot: Snapshot) -> Bools:
    """Return the rows of a move's targets."""
    if not move.spec.node:
        return snapshot.exists & allowed_by_affinity(move.spec.placement.constraints, snapshot)
    rows: Bools = np.zeros(len(snapshot.exists), dtype=np.bool_)
    if (row := snapshot.row(move.spec.node)) is not None:
        rows[row] = snapshot.exists[row]
    return rows


def outdated(move: Move, state: State, moves: MoveIndex) -> str:
    """Return what has changed since the plan of a pending move; empty if nothing.

    Pod affinity and zones are not checked: other moves of the plan may change them first, and the
    seat is placed by all constraints.
    """
    if move.status.phase is not MovePhase.PENDING or not move.is_planned:
        return ""
    pod, node = state.pods.get(move.pod), move.spec.node
    if pod is None or pod.uid != (move.status.uid or move.spec.uid):
        return ""  # The pod is gone.
    row = state.snapshot.row(node)
    if row is None or not state.snapshot.exists[row]:
        return f"there is no node {node}"
    if is_closed(pod, state.snapshot, row):
        return f"{node} does not accept the pod any more: it is cordoned, or has a taint"
    return "" if _has_room(pod, row, state, moves) else f"{node} has no room for it any more"


def _has_room(pod: Pod, row: int, state: State, moves: MoveIndex) -> bool:
    """Return whether a pod has room on a node once all moves off that node are done."""
    snapshot = state.snapshot
    node, residents = snapshot.name_of(row), snapshot.residents
    if np.any(residents.terminating & (residents.rows == row)):
        return True  # Pods leave, and the room that they free is unknown.
    coming = Counter[str]()
    for name in {known.move.pod for known in moves if known.move and not known.move.is_over}:
        leaving = state.pods.get(name)
        if leaving is not None and leaving.node == node and not leaving.finished:
            coming.update(leaving.requests)
    columns, amounts = request_columns(pod, snapshot)
    at = np.array([row]), columns
    cells = np.ix_(*at)
    free = snapshot.allocatable[cells] - snapshot.requested[cells] - snapshot.held[cells]
    return bool(np.all(free + amount_table({node: coming}, snapshot, *at) >= amounts))


class Closed(NamedTuple):
    """The reason for which a node refuses a pod, regardless of room.

    Attributes:
        why: the reason in words; empty if the node accepts the pod.
        passes: the reason may pass by itself: the node is cordoned, or not ready.
    """

    why: str = ""
    passes: bool = False


OPEN = Closed()


def closed(pod: Pod, node: str, snapshot: Snapshot) -> Closed:
    """Return why a node refuses a pod; OPEN for a node that was uncordoned a moment ago."""
    row = snapshot.row(node)
    if row is None or not snapshot.exists[row]:
        return Closed(f"there is no node {node}")
    reasons = [reason for reason, rows in constraint_refusals(pod, snapshot) if rows[row]]
    if not reasons or snapshot.topology.is_reopening(row):
        return OPEN
    others = [each.message for each in reasons if each not in {UNSCHEDULABLE, TAINTED}]
    taints = untolerated(pod, snapshot, row)
    said = "; ".join([*map(_shown, taints), *dict.fromkeys(others)])
    return Closed(
        f"{node} does not accept the pod: {said}", not others and all(map(passes, taints))
    )


def _shown(taint: Taint) -> str:
    if taint == CORDON:
        return "it is cordoned"
    return f"it has the taint {taint.key}:{taint.effect}"
