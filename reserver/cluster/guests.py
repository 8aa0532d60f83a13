"""Guests: the pods of nodes that are there for themselves, and not for the node's sake.

Pods of DaemonSets and mirror pods belong to their node, and are no guests.
"""

from __future__ import annotations

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import CountedPod, Snapshot


def vacant(snapshot: Snapshot) -> Bools:
    """Return, for each row, whether the whole node may be held: nobody has anything of it.

    As long as something there cannot be read, nobody knows.
    """
    guests = snapshot.residents.guests(len(snapshot.exists))
    found: Bools = snapshot.exists & ~snapshot.guarded & ~snapshot.has_unreadable & (guests == 0)
    tried = [row for node in snapshot.spoken_for if (row := snapshot.row(node)) is not None]
    found[tried] = False
    return found


def occupied(snapshot: Snapshot) -> Bools:
    """Return, for each row, whether guests are on the node."""
    found: Bools = snapshot.residents.guests(len(snapshot.exists)) > 0
    return found


def on_whole_nodes(snapshot: Snapshot) -> dict[str, list[Pod]]:
    """Return the guests on the nodes that are held whole, where there are any."""
    found: dict[str, list[Pod]] = {}
    for each in _guests(snapshot.whole, snapshot):
        found.setdefault(each.node, []).append(each.pod)
    return found


def guests_on(node: str, snapshot: Snapshot) -> list[Pod]:
    """Return the guests on a node."""
    row = snapshot.row(node)
    only = np.zeros(len(snapshot.exists), dtype=np.bool_)
    if row is not None:
        only[row] = True
    return [each.pod for each in _guests(only, snapshot)]


def _guests(rows: Bools, snapshot: Snapshot) -> list[CountedPod]:
    return list(filter(None, map(snapshot.counted, snapshot.residents.guests_on(rows))))
