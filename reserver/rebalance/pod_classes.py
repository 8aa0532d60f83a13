"""Classes of pods: the pods of a class have equal requests and may go to the same nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.headroom import Int64s
from reserver.cluster.pod import Pod
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot


class PodClasses(NamedTuple):
    """Pods that may move or are to land, by class.

    Attributes:
        numbers: of the pods, ascending.
        homes: the row of the node that each begins on; `NOWHERE` for a pending one.
        of: the class of each.
        samples: a pod of each class.
        requests: int64 array, classes × columns.
        totals: int64 array, how many pods each class has.
        is_pending: bool array, classes: its pods begin on no node.
        may: bool array, classes × rows: whether they may go there if room and neighbours let them.
    """

    numbers: Rows
    homes: Rows
    of: Rows
    samples: tuple[Pod, ...]
    requests: Int64s
    totals: Int64s
    is_pending: Bools
    may: Bools


class Places(NamedTuple):
    """The classes on nodes: each where pods may be at home, then each where they may enter.

    Attributes:
        classes: of each place.
        rows: of each place.
        begun: int64 array: how many pods are there now.
        most: int64 array: how many may be there at most.
        enters: bool array: the pods there have come from another node, or from none.
    """

    classes: Rows
    rows: Rows
    begun: Int64s
    most: Int64s
    enters: Bools


def pod_classes(planned: PlanningSnapshot, numbers: Rows, homes: Rows) -> PodClasses:
    """Return the classes of some pods of a planning snapshot.

    Pods of a class are equal in namespace, labels, constraints and requests, in the nodes that
    their volumes allow, and in whether they begin on a node.

    Args:
        planned: the cluster.
        numbers: of the pods, ascending.
        homes: the row of the node that each of those begins on.
    """
    known: dict[object, int] = {}
    first: list[int] = []
    masks: list[Bools] = []
    of = np.zeros(len(numbers), dtype=np.intp)
    for index, number in enumerate(numbers.tolist()):
        mask = planned.admits(number) if planned.pods[number].volume_claims else None
        is_pending = bool(homes[index] == NOWHERE)
        key = (planned.kind(number), is_pending, None if mask is None else mask.tobytes())
        of[index] = known.setdefault(key, len(known))
        if len(known) > len(first):
            first.append(index)
            masks.append(planned.admits(number) if mask is None else mask)
    return PodClasses(
        numbers=numbers,
        homes=homes,
        of=of,
        samples=tuple(planned.pods[number] for number in numbers[first].tolist()),
        requests=planned.requests[numbers[first]],
        totals=np.bincount(of, minlength=len(first)),
        is_pending=homes[first] == NOWHERE,
        may=np.array(masks, dtype=np.bool_).reshape(len(first), len(planned.closed)),
    )


def places_of(
    planned: PlanningSnapshot, classes: PodClasses, inside: Bools, landing: Bools
) -> Places:
    """Return the places of classes.

    Args:
        planned: the cluster.
        classes: of pods.
        inside: bool array, rows: where those pods are now, and may be.
        landing: bool array, rows: where pending ones may be.
    """
    now, at_home = (
        _count(classes, rows, len(inside))
        for rows in (planned.rows[classes.numbers], classes.homes)
    )
    at_home[:, ~inside] = 0
    room = np.maximum(planned.free, 0) + now.T @ classes.requests
    inside_of = np.where(classes.is_pending[:, None], landing, inside)
    most = np.where(classes.may & inside_of, classes.totals[:, None], 0)
    for column in np.flatnonzero(classes.requests.any(axis=0)):
        asked = classes.requests[:, column]
        fits = room[:, column] // np.maximum(asked, 1)[:, None]
        most = np.where(asked[:, None] > 0, np.minimum(most, fits), most)
    most = np.maximum(most, now - at_home)
    stay, enter = np.nonzero(at_home), np.nonzero(most)
    settled = np.minimum(now, at_home)
    return Places(
        classes=np.concatenate((stay[0], enter[0])),
        rows=np.concatenate((stay[1], enter[1])),
        begun=np.concatenate((settled[stay], (now - settled)[enter])),
        most=np.concatenate((at_home[stay], most[enter])),
        enters=np.arange(len(stay[0]) + len(enter[0])) >= len(stay[0]),
    )


def _count(classes: PodClasses, rows: Rows, width: int) -> Int64s:
    """Return how many pods of each class are on each row."""
    counts = np.zeros((len(classes.samples), width), dtype=np.int64)
    placed = rows != NOWHERE
    np.add.at(counts, (classes.of[placed], rows[placed]), 1)
    return counts
