"""Chooses nodes for the slots of a reservation, and nodes that may be held whole.

A node may be held whole if only owners use it. A seat may precede its room if it names a node that
other pods are about to leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import NodeTerm
from reserver.cluster.headroom import Int64s
from reserver.cluster.node import NODES
from reserver.cluster.pod import NO_CONTROLLER, Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Strategy
from reserver.reservations.owner import NOBODY, OwnerRule
from reserver.reservations.placement import Part, Parts
from reserver.scheduling.explain import reasons_against
from reserver.scheduling.node_rules import allowed_by_affinity
from reserver.scheduling.reasons import HELD, OCCUPIED
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.state import State

Floats = NDArray[np.float64]

_HALVINGS = 60


def distribute(
    pod: Pod, strategy: Strategy, slots: int, rows: Rows, room: Int64s, snapshot: Snapshot
) -> Int64s:
    """Return the number of slots for each node.

    Args:
        pod: the pod that stands for one slot.
        strategy: pack or spread.
        slots: the number of slots, at most the sum of `room`.
        rows: the rows of the nodes with room.
        room: the number of slots for which each row has room.
    """
    base, step = _fullness(pod, snapshot, rows)
    if strategy is Strategy.PACK:
        return _packed(base + step, room, slots)
    return _spread(base, step, room, slots)


def _fullness(pod: Pod, snapshot: Snapshot, rows: Rows) -> tuple[Floats, Floats]:
    """Return the fullness of nodes in a slot's resources, and its increase by one slot.

    This is the mean over its resources except `pods`, as in kube-scheduler's MostAllocated.
    """
    columns, amounts = request_columns(pod, snapshot)
    counts = columns != snapshot.columns["pods"] if len(columns) > 1 else np.ones(1, dtype=np.bool_)
    columns, amounts = columns[counts], amounts[counts]
    at = np.ix_(rows, columns)
    offered = snapshot.allocatable[at]
    taken = snapshot.requested[at] + snapshot.held[at]
    return np.mean(taken / offered, axis=1), np.mean(amounts / offered, axis=1)


def _packed(fullness: Floats, room: Int64s, slots: int) -> Int64s:
    """Return the slots of each node: all on the fullest node, or on as few nodes as needed."""
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
    """Return the slots of each node, with each slot on the node that is emptiest including it.

    All nodes are filled up to one level, which is found by bisection; the fullest nodes then give
    back one slot each until the number is right.
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


def ahead(pod: Pod, slots: int, snapshot: Snapshot, may_go: Bools) -> Parts:
    """Return the named node of a seat, although full, if only room is lacking there.

    Else a waiting pod would take the room first when another move of a chain leaves the node.

    Args:
        pod: the pod that stands for one slot of the seat.
        slots: the number of its slots.
        may_go: for each row, whether constraints allow it.
    """
    named = {_named(term) for term in pod.constraints.node_terms or ()}
    node = named.pop() if len(named) == 1 else ""
    (row,) = snapshot.rows([node])
    if row < 0 or not may_go[row]:
        return ()
    return () if never_fits(pod, slots, snapshot) else (Part(node, slots),)


def _named(term: NodeTerm) -> str:
    """Return the only node that a node selector term allows; empty if there may be others."""
    names = [each.values for each in term.fields.requirements if each.operator == "In"]
    return next((min(values) for values in names if len(values) == 1), "")


def never_fits(pod: Pod, slots: int, snapshot: Snapshot) -> bool:
    """Return whether the nodes would be too few or too small even without pods and taints."""
    columns, amounts = request_columns(pod, snapshot)
    rows = np.flatnonzero(snapshot.exists & allowed_by_affinity(pod.constraints, snapshot))
    if NODES in pod.requests:
        return len(rows) < slots
    if len(columns) < len(pod.requests):
        return True
    room = (snapshot.allocatable[np.ix_(rows, columns)] // amounts).min(axis=1, initial=_MOST)
    return bool(np.minimum(room, slots).sum() < slots)


_MOST = np.iinfo(np.int64).max


MOST_ASKED = 4_000
"""Most pods whose controllers are checked in one step; others count as strangers."""


def vacant(rules: Sequence[OwnerRule], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether the whole node may be held for owners that match rules.

    A node with unreadable objects may not.
    """
    found: Bools = snapshot.exists & ~snapshot.guarded & ~snapshot.has_unreadable
    found &= ~strangers(rules, snapshot)
    return found & ~snapshot.marked(snapshot.rows(tuple(snapshot.spoken_for)))


def strangers(rules: Sequence[OwnerRule], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a guest there matches no rule."""
    residents = snapshot.residents
    guests = residents.guests
    alike = np.zeros_like(guests)
    for rule in rules:
        alike[residents.matching((rule.namespace,), rule.selector)] = True
    found = snapshot.marked(residents.rows[guests & ~alike])
    if all(
        (rule.pod, rule.controller, rule.replaces) == ("", NO_CONTROLLER, NOBODY) for rule in rules
    ):
        return found
    rest = np.flatnonzero(guests & alike)
    rest = rest[~found[residents.rows[rest]]]
    asked, unasked = rest[:MOST_ASKED], rest[MOST_ASKED:]
    pods = (snapshot.counted(residents.uids[slot]) for slot in asked)
    strange = [
        slot
        for slot, pod in zip(asked, pods, strict=True)
        if pod is None or not any(rule.matches(pod.pod) for rule in rules)
    ]
    return found | snapshot.marked(residents.rows[[*strange, *unasked]])


def why_not_vacant(rules: Sequence[OwnerRule], pod: Pod, state: State) -> dict[str, Bools]:
    """Return each reason why nodes cannot be held whole for owners, with the nodes' rows.

    Args:
        rules: the owner rules.
        pod: the pod that stands for one slot.
    """
    snapshot = state.snapshot
    found = reasons_against(replace(pod, requests={}), state, ())
    found[HELD.message] = snapshot.exists & snapshot.guarded
    return found | {OCCUPIED.message: snapshot.exists & strangers(rules, snapshot)}
