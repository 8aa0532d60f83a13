"""Guests: the pods of nodes that do not belong to the node itself.

Pods of DaemonSets and mirror pods belong to their node, and are no guests.
"""

from __future__ import annotations

from collections.abc import Sequence

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import CountedPod, Snapshot


def occupied(snapshot: Snapshot) -> Bools:
    """Return, for each row, whether the node has guests."""
    return snapshot.marked(snapshot.residents.rows[snapshot.residents.guests])


def on_whole_nodes(snapshot: Snapshot) -> dict[str, list[Pod]]:
    """Return the guests on nodes that are held whole, by node; empty nodes are absent."""
    found: dict[str, list[Pod]] = {}
    for each in _guests(snapshot.whole, snapshot):
        found.setdefault(each.node, []).append(each.pod)
    return found


def guests_on(nodes: Sequence[str], snapshot: Snapshot) -> list[CountedPod]:
    """Return the guests on the given nodes."""
    return _guests(snapshot.marked(snapshot.rows(nodes)), snapshot)


def _guests(rows: Bools, snapshot: Snapshot) -> list[CountedPod]:
    return list(filter(None, map(snapshot.counted, snapshot.residents.guests_on(rows))))
