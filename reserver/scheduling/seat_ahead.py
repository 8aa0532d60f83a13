"""A seat that is there before its room: it names a node that others are about to leave."""

from __future__ import annotations

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import NodeTerm
from reserver.cluster.node import NODES
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.placement import Part, Parts
from reserver.scheduling.node_rules import allowed_by_affinity
from reserver.scheduling.request_arrays import request_columns


def ahead(pod: Pod, slots: int, snapshot: Snapshot, may_go: Bools) -> Parts:
    """Return the node that a seat names, full as it is, if room is all that it lacks there.

    Else who waits for room would come between, when another move of a chain leaves the node.

    Args:
        pod: what a slot of the seat is judged as.
        slots: how many it has.
        may_go: where constraints let it go.
    """
    named = {_named(term) for term in pod.constraints.node_terms or ()}
    node = named.pop() if len(named) == 1 else ""
    (row,) = snapshot.rows([node])
    if row < 0 or not may_go[row]:
        return ()
    return () if never_fits(pod, slots, snapshot) else (Part(node, slots),)


def _named(term: NodeTerm) -> str:
    """Return the only node that an alternative is about; empty if there may be others."""
    names = [each.values for each in term.fields.requirements if each.operator == "In"]
    return next((min(values) for values in names if len(values) == 1), "")


def never_fits(pod: Pod, slots: int, snapshot: Snapshot) -> bool:
    """Return whether the nodes would be too few or small even without pods and taints."""
    columns, amounts = request_columns(pod, snapshot)
    rows = np.flatnonzero(snapshot.exists & allowed_by_affinity(pod.constraints, snapshot))
    if NODES in pod.requests:
        return len(rows) < slots
    if len(columns) < len(pod.requests):
        return True
    room = (snapshot.allocatable[np.ix_(rows, columns)] // amounts).min(axis=1, initial=_MOST)
    return bool(np.minimum(room, slots).sum() < slots)


_MOST = np.iinfo(np.int64).max
