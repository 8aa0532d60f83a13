"""The capacity that a plan starts from: nodes, requests of pods, and holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import msgspec
import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s, clamped
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.rebalance.cluster_state import Amounts, ClusterState

Held = Mapping[str, Amounts]
"""Resources that reservations hold, by node."""

NOTHING_HELD: Held = MappingProxyType({})


def identified(cluster: ClusterState) -> ClusterState:
    """Return the cluster with a UID for each pod; a dump may lack UIDs."""
    if all(each.pod.uid for each in cluster.pods):
        return cluster
    pods = (
        each
        if each.pod.uid
        else msgspec.structs.replace(each, pod=replace(each.pod, uid=str(each.name)))
        for each in cluster.pods
    )
    return replace(cluster, pods=tuple(pods))


def snapshot_of(cluster: ClusterState, held: Held = NOTHING_HELD) -> Snapshot:
    """Return a new snapshot of a cluster; the caller may change it."""
    snapshot = Snapshot()
    for node in cluster.nodes.values():
        snapshot.set_node(node.node)
    snapshot.namespaces = dict(cluster.namespaces)
    snapshot.storage = cluster.storage
    snapshot.count_all([each.pod for each in cluster.pods if takes_room(each.pod)])
    for name, amounts in held.items():
        snapshot.set_held(name, amounts)
    return snapshot


def held_on(snapshot: Snapshot) -> Held:
    """Return what reservations hold, by node."""
    rows = map(int, np.flatnonzero(snapshot.exists & snapshot.has_holds))
    return {snapshot.name_of(row): amounts_of(snapshot, snapshot.held[row]) for row in rows}


def takes_room(pod: Pod) -> bool:
    """Return whether a pod takes something from a node."""
    return bool(pod.node) and not pod.finished


def amounts_of(snapshot: Snapshot, cells: np.ndarray) -> Amounts:
    """Return the cells of a row by resource, without zeros."""
    values = cells.tolist()
    return {name: values[at] for name, at in snapshot.columns.items() if values[at]}


def requested_by_node(snapshot: Snapshot) -> dict[str, Amounts]:
    """Return the requests on each node, by its name."""
    requested = snapshot.requested
    return {
        snapshot.name_of(row): amounts_of(snapshot, requested[row])
        for row in map(int, snapshot.existing_rows())
    }


def requests_of(alike: Sequence[Mapping[str, int]], snapshot: Snapshot) -> tuple[Int64s, Bools]:
    """Return amounts as rows over the snapshot's columns, and whether one is of no column."""
    requests = np.zeros((len(alike), snapshot.allocatable.shape[1]), dtype=np.int64)
    lacks_column = np.zeros(len(alike), dtype=np.bool_)
    for number, amounts in enumerate(alike):
        for resource, amount in amounts.items():
            column = snapshot.columns.get(resource)
            if column is not None:
                requests[number, column] = clamped(amount)
            elif amount:
                lacks_column[number] = True
    return requests, lacks_column
