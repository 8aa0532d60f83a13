"""What a node itself refuses: cordon, taints, node affinity, host ports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint
from reserver.cluster.node import CORDON
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.reasons import (
    NODE_AFFINITY,
    NOT_JUDGED,
    PORTS,
    TAINTED,
    UNSCHEDULABLE,
    Refusal,
)


def node_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield what keeps a pod from nodes that its own constraints or theirs rule out."""
    constraints, topology = pod.constraints, snapshot.topology
    if constraints.are_too_many:
        yield Refusal(NOT_JUDGED, np.ones(len(snapshot.exists), dtype=np.bool_))
        return
    if not _tolerates(constraints, CORDON):
        yield Refusal(UNSCHEDULABLE, topology.cordoned)
    yield Refusal(TAINTED, ~tolerated(constraints, snapshot))
    if constraints.node_selector.requirements or constraints.node_terms is not None:
        yield Refusal(NODE_AFFINITY, ~allowed_by_affinity(constraints, snapshot))
    if constraints.host_ports:
        yield Refusal(PORTS, _ports_taken(constraints, snapshot))


def is_closed(pod: Pod, snapshot: Snapshot, row: int) -> bool:
    """Return whether the node of a row is cordoned, or has a taint that keeps a pod away."""
    demands = pod.constraints
    is_cordoned = bool(snapshot.topology.cordoned[row]) and not _tolerates(demands, CORDON)
    return is_cordoned or not tolerated(demands, snapshot)[row]


def untolerated(pod: Pod, snapshot: Snapshot, row: int) -> list[Taint]:
    """Return the taints of a row's node that a pod does not tolerate; a cordon counts as its."""
    topology = snapshot.topology
    taints = (*((CORDON,) if topology.cordoned[row] else ()), *topology.taints_at(row))
    return [each for each in dict.fromkeys(taints) if not _tolerates(pod.constraints, each)]


def tolerated(constraints: Constraints, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a pod tolerates all taints there that keep pods away."""
    untolerated = snapshot.topology.taints.where(
        lambda taints: not all(_tolerates(constraints, taint) for taint in taints)
    )
    return ~untolerated


def allowed_by_affinity(constraints: Constraints, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether node selector and required node affinity allow it."""
    topology = snapshot.topology
    allowed = topology.labels.matching(constraints.node_selector)
    if constraints.node_terms is not None:
        allowed &= topology.meeting(constraints.node_terms)
    return allowed


def _tolerates(constraints: Constraints, taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in constraints.tolerations)


def _ports_taken(constraints: Constraints, snapshot: Snapshot) -> Bools:
    taken = np.zeros(len(snapshot.exists), dtype=np.bool_)
    taken[snapshot.residents.rows_taking(constraints.host_ports)] = True
    return taken
