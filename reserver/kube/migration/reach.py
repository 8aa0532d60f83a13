"""Where a move may take its pod: as it says, and as the volumes of the pod allow."""

from __future__ import annotations

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.snapshot import Snapshot
from reserver.migration.move import Mode, Move, Phase
from reserver.scheduling.node_rules import allowed_by_affinity
from reserver.scheduling.state import State
from reserver.scheduling.volumes import confinement


def confined(move: Move, state: State) -> str:
    """Return why no node that a move may take its pod to can use its volumes; empty if one can.

    A volume does not come along. Without this the pod would be evicted for a seat that its
    replacement cannot take, and could return to its volume only once that seat is given up.
    """
    pod, snapshot = state.pods.get(move.pod), state.snapshot
    is_judged = move.spec.mode is Mode.RESERVE_FIRST and not (move.awaits_first or move.is_over)
    if not is_judged or move.status.phase is Phase.LANDING:
        return ""
    if pod is None or not pod.volume_claims:
        return ""
    rows = _asked_for(move, snapshot)
    if (source := snapshot.row(pod.node)) is not None:
        rows[source] = False
    return confinement(pod, snapshot, rows) if rows.any() else ""


def is_as_asked(move: Move, node: str, snapshot: Snapshot) -> bool:
    """Return whether a node is one that a move may take its pod to; also if it is not known."""
    row = snapshot.row(node)
    if row is None or move.spec.node:
        return move.spec.node in {"", node}
    return bool(_asked_for(move, snapshot)[row])


def _asked_for(move: Move, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a move says that its pod may go there."""
    if not move.spec.node:
        return snapshot.exists & allowed_by_affinity(move.spec.placement.constraints, snapshot)
    rows: Bools = np.zeros(len(snapshot.exists), dtype=np.bool_)
    if (row := snapshot.row(move.spec.node)) is not None:
        rows[row] = snapshot.exists[row]
    return rows
