"""How the slots of a reservation fill the nodes that have room: packed, or spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.headroom import Int64s
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Strategy
from reserver.scheduling.request_arrays import request_columns

Floats = NDArray[np.float64]

_HALVINGS = 60


def distribute(
    pod: Pod, strategy: Strategy, slots: int, rows: Rows, room: Int64s, snapshot: Snapshot
) -> Int64s:
    """Return how many of so many slots go to each node.

    Args:
        pod: what a slot is judged as.
        strategy: packed or spread.
        slots: as many as there is room for, or fewer.
        rows: of the nodes that have room.
        room: for how many slots each has.
    """
    base, step = _fullness(pod, snapshot, rows)
    if strategy is Strategy.PACK:
        return _packed(base + step, room, slots)
    return _spread(base, step, room, slots)


def _fullness(pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[Floats, Floats]:
    """Return how full nodes are in the resources of a slot, and by how much a slot fills them.

    That is the mean over its resources, pods aside, as in kube-scheduler's MostAllocated.
    """
    columns, amounts = request_columns(pod, snapshot)
    counts = columns != snapshot.columns["pods"] if len(columns) > 1 else np.ones(1, dtype=np.bool_)
    columns, amounts = columns[counts], amounts[counts]
    at = np.ix_(rows, columns)
    offered = snapshot.allocatable[at]
    taken = snapshot.requested[at] + snapshot.held[at]
    return np.mean(taken / offered, axis=1), np.mean(amounts / offered, axis=1)


def _packed(fullness: Floats, room: Int64s, slots: int) -> Int64s:
    """Return how many slots go to each node: all to the fullest, or to as few as it takes."""
    numbers = np.zeros_like(room)
    whole = np.flatnonzero(room >= slots)
    if len(whole):
        numbers[whole[np.argmax(fullness[whole])]] = slots
        return numbers
    order = np.argsort(-fullness, kind="stable")
    before = np.cumsum(room[order]) - room[order]
    numbers[order] = np.clip(slots - before, 0, room[order])
    return numbers


def _spread(base: Floats, step: Floats, room: Int64s, slots: int) -> Int64s:
    """Return how many slots go to each node, each to the one that is emptiest with it.

    All nodes are filled up to one level, which is found by halving; of what is then too much, the
    fullest give back one slot each.
    """

    def up_to(level: float) -> Int64s:
        return np.clip(np.floor((level - base) / step), 0, room).astype(np.int64)

    low, high = float(base.min()), float((base + step * (room + 1)).max())
    numbers = up_to(high)
    for _ in range(_HALVINGS):
        if numbers.sum() == slots:
            return numbers
        middle = (low + high) / 2
        fewer = up_to(middle)
        if fewer.sum() >= slots:
            high, numbers = middle, fewer
        else:
            low = middle
    fullest = np.argsort(-np.where(numbers > 0, base + step * numbers, -1.0), kind="stable")
    numbers[fullest[: numbers.sum() - slots]] -= 1
    return numbers
