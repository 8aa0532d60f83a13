"""The nodes for the slots of a reservation: which it fills, and which may be held whole.

A node may be held whole if nobody but owners has anything of it. A seat may be ahead of its room:
it names a node that others are about to leave.
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


MOST_ASKED = 4_000
"""So many pods are asked in one step who controls them; others count as strangers."""


def vacant(rules: Sequence[OwnerRule], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether the whole node may be held for the owners that match rules.

    As long as something there cannot be read, nobody knows.
    """
    found: Bools = snapshot.exists & ~snapshot.guarded & ~snapshot.has_unreadable
    found &= ~strangers(rules, snapshot)
    return found & ~snapshot.marked(snapshot.rows(tuple(snapshot.spoken_for)))


def strangers(rules: Sequence[OwnerRule], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether a guest is there that no rule matches."""
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
    """Return each reason why a node is not held whole for owners, with the rows of such nodes.

    Args:
        rules: of the owners.
        pod: what such a slot is judged as.
    """
    snapshot = state.snapshot
    found = reasons_against(replace(pod, requests={}), state, ())
    found[HELD.message] = snapshot.exists & snapshot.guarded
    return found | {OCCUPIED.message: snapshot.exists & strangers(rules, snapshot)}
