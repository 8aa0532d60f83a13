"""Checks that all pods of a node that is drained have room elsewhere at the same time."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.rebalance.capacity import Held, identified
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.packing import Packing
from reserver.rebalance.planning_snapshot import planning_snapshot
from reserver.scheduling.explain import count_reasons, summary
from reserver.scheduling.fit import refusals

_STEPS = 20_000
"""Most places that the search tries before it reports that there is no room."""


def without_room(
    cluster: ClusterState, held: Held, node: str, leaving: Container[PodName]
) -> Mapping[PodName, str]:
    """Return the pods of a node that would find no room on any other, and why, the largest first.

    Args:
        cluster: its nodes and pods.
        held: what reservations hold: nobody's to move into.
        node: that they leave.
        leaving: the pods that have to get room.
    """
    planned = planning_snapshot(identified(cluster), lambda _: "", held=held)
    row = planned.snapshot.row(node)
    if row is None:
        return {}
    planned.closed[row] = True
    there = np.flatnonzero(planned.rows == row).tolist()
    numbers = [number for number in there if planned.pods[number].name in leaving]
    movable = np.zeros(len(planned.pods), dtype=np.bool_)
    movable[numbers] = True
    packing = Packing(planned, movable, _STEPS)
    return {
        planned.pods[number].name: _why(planned.pods[number], planned.snapshot, row)
        for number in packing.by_size(numbers)
        if not packing.insert(number)
    }


def _why(pod: Pod, snapshot: Snapshot, own: int) -> str:
    others = snapshot.exists.copy()
    others[own] = False
    found: dict[str, Bools] = {}
    with snapshot.unseen(pod.uid):
        for reason, rows in refusals(pod, snapshot, {}):
            found[reason.message] = found.get(reason.message, np.False_) | (rows & others)
    return summary(int(np.count_nonzero(others)), 0, count_reasons(found, snapshot))
