"""Candidates: pods that ought to leave their node, and the state in which strategies find them.

A strategy is a function of its arguments and a state. It yields batches of candidates in order. A
strategy reads the state for each batch: all pods of a batch are judged before any of them leaves,
and the next batch sees the outcome.

There are two states. `upstream.UpstreamState` counts evictions and forgets the pods.
`plan_state.PlanState` moves the pods, to nodes that have room for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint, Toleration
from reserver.cluster.labels import EVERYTHING, Selector
from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.cluster_state import Preference
from reserver.rebalance.pod_index import Indexes, PodIndex

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


class Conflicts(Protocol):
    """Pods near others that their required anti-affinity forbids."""

    def has(self, pod: int) -> bool:
        """Return whether a pod has a conflict now."""

    def leave(self, pod: int) -> None:
        """Forget a pod that has left."""


class StrategyState(Protocol):
    """The cluster as a strategy sees it.

    Attributes:
        index: the pods and nodes as they were at first, but for evicted pods.
        now: unix seconds.
        rows: by pod: the row of the node that it is on.
        offered: bool array, rows: pods may be sent to this node.
        tries_others: any copy may leave a crowded node, the least important first.
    """

    index: PodIndex
    now: float
    rows: Indexes
    offered: Bools
    tries_others: bool

    def chosen(self, namespaces: Choice, selector: Selector = EVERYTHING) -> Bools:
        """Return, for each pod, whether the strategy looks at it, and at its node."""

    def together(self, kinds: Sequence[K]) -> Iterable[Sequence[K]]:
        """Return kinds of candidates that are looked for at once."""

    def batches(self, found: Bools) -> Iterator[list[int]]:
        """Yield pods that are judged together."""

    def passes(self, pod: int) -> bool:
        """Return whether a pod counts: nothing that upstream checks first keeps it."""

    def fits(self, pod: int) -> bool:
        """Return whether it makes sense to look for a better node."""

    def has_left(self, pod: int) -> bool:
        """Return whether a pod has left its first node."""

    def tolerates(self, tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
        """Return whether one of these tolerates a taint."""

    def matching(self, demands: Constraints) -> Bools:
        """Return the rows that meet node selector and required node affinity."""

    def admitting(self, demands: Constraints) -> Bools:
        """Return the rows that pods with such constraints may share, room aside."""

    def weights(self, preferences: tuple[Preference, ...]) -> Floats:
        """Return, for each row, how much of preferred node affinities it meets."""

    def conflicts(self, looked_at: Bools) -> Conflicts:
        """Return the conflicts of some pods."""


class StrategyFailed(Exception):
    """A strategy cannot judge, and evicts nothing more in this cycle."""


def by_row(rows: Indexes, found: Bools) -> Iterator[list[int]]:
    """Yield the pods of each row that has some, in order."""
    pods = np.flatnonzero(found)
    pods = pods[np.argsort(rows[pods], kind="stable")]
    for part in np.split(pods, np.flatnonzero(np.diff(rows[pods])) + 1):
        if len(part):
            yield part.tolist()
