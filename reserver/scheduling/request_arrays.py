"""Amounts as arrays over the columns of the snapshot that a pod requests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.headroom import Int64s, clamped
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot

ByNode = Mapping[str, Mapping[str, int]]
"""Amounts by node and resource."""


def request_columns(pod: Pod, snapshot: Snapshot) -> tuple[Rows, Int64s]:
    """Return the columns and amounts of a pod's requests for resources that nodes offer."""
    known = {
        snapshot.columns[name]: amount
        for name, amount in pod.requests.items()
        if amount and name in snapshot.columns
    }
    columns = np.fromiter(known, dtype=np.intp, count=len(known))
    amounts = map(clamped, known.values())
    return columns, np.fromiter(amounts, dtype=np.int64, count=len(known))


def amount_table(by_node: ByNode, snapshot: Snapshot, rows: Rows, columns: Rows) -> Int64s:
    """Return amounts by node in the shape of rows × columns, 0 for all other nodes."""
    at = {int(column): index for index, column in enumerate(columns)}
    table = np.zeros((len(snapshot.exists), len(columns)), dtype=np.int64)
    for node, amounts in by_node.items():
        row = snapshot.row(node)
        for resource, amount in amounts.items() if row is not None else ():
            index = at.get(snapshot.columns.get(resource, -1))
            if index is not None:
                table[row, index] = clamped(amount)
    found: Int64s = table[rows]
    return found
