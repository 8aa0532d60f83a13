"""Checks that the cluster is still as the plan of a move supposed.

A plan is made of the cluster as it was. It names the pod and the node; the pod may be gone since,
the node cordoned, its room taken. A seat would wait there for nothing, and keep others out.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from reserver.cluster.pod import Pod
from reserver.kube.migration.moves import Moves
from reserver.migration.move import Move, Phase
from reserver.scheduling.fit import cells as table
from reserver.scheduling.fit import wanted
from reserver.scheduling.node_rules import is_closed
from reserver.scheduling.state import State


def outdated(move: Move, state: State, moves: Moves) -> str:
    """Return what a plan did not suppose of a move that it has still to begin; empty if nothing.

    Neighbours and zones are not judged: other moves of the plan may change them before its seat,
    which is judged by all of it.
    """
    if move.status.phase is not Phase.PENDING or not move.is_planned:
        return ""
    pod, node = state.pods.get(move.pod), move.spec.node
    if pod is None or pod.uid != (move.status.uid or move.spec.uid):
        return ""  # There is none to be judged.
    row = state.snapshot.row(node)
    if row is None or not state.snapshot.exists[row]:
        return f"there is no node {node}"
    if is_closed(pod, state.snapshot, row):
        return f"{node} takes no such pod any more: it is cordoned, or has a taint"
    return "" if _has_room(pod, row, state, moves) else f"{node} has no room for it any more"


def _has_room(pod: Pod, row: int, state: State, moves: Moves) -> bool:
    """Return whether a pod has room on a node once all have left that are to leave it."""
    snapshot = state.snapshot
    node, residents = snapshot.name_of(row), snapshot.residents
    if np.any(residents.terminating & (residents.rows == row)):
        return True  # They leave, and nobody knows yet what that frees.
    coming = Counter[str]()
    for name in {known.move.pod for known in moves if known.move and not known.move.is_over}:
        leaving = state.pods.get(name)
        if leaving is not None and leaving.node == node and not leaving.finished:
            coming.update(leaving.requests)
    columns, amounts = wanted(pod, snapshot)
    at = np.array([row]), columns
    cells = np.ix_(*at)
    free = snapshot.allocatable[cells] - snapshot.requested[cells] - snapshot.held[cells]
    return bool(np.all(free + table({node: coming}, snapshot, *at) >= amounts))
