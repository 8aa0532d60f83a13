"""Candidates: pods that ought to leave their node, and the state in which strategies find them.

A strategy is a function of its arguments and a state. It yields batches of candidates in order. A
strategy reads the state for each batch: all pods of a batch are judged before any of them leaves,
and the next batch sees the outcome.

There are two states, `strategies.StrategyState`: `upstream_state.UpstreamState` counts evictions
and forgets the pods, `plan_state.PlanState` moves the pods to nodes that have room for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import Bools
from reserver.rebalance.pod_index import Indexes

Floats = NDArray[np.float64]
K = TypeVar("K")


class Candidate(NamedTuple):
    """A pod that should leave its node. Only a state that moves pods reads the last six fields.

    Attributes:
        pod: the index of the pod.
        reason: the reason to leave.
        improves: the improvement once the pod has left.
        accept: bool array, rows: acceptable targets; None for all.
        score: float array, rows: the lower the better; of equal rows the emptiest is taken.
        waits: without room the pod may change places with another pod that waits.
        gain: float array, rows: `PlannedMove.gain`; None where the strategy does not compare nodes.
        restarts: without room elsewhere the pod may restart on its own node.
    """

    pod: int
    reason: str
    improves: str = ""
    accept: Bools | None = None
    score: Floats | None = None
    waits: bool = False
    gain: Floats | None = None
    restarts: bool = False


Batches = Iterator[Sequence[Candidate]]


class StrategyFailed(Exception):
    """A strategy cannot judge, and evicts nothing more in this cycle."""


def by_row(rows: Indexes, found: Bools) -> Iterator[list[int]]:
    """Yield the pods of each row that has some, in order."""
    pods = np.flatnonzero(found)
    pods = pods[np.argsort(rows[pods], kind="stable")]
    for part in np.split(pods, np.flatnonzero(np.diff(rows[pods])) + 1):
        if len(part):
            yield part.tolist()
