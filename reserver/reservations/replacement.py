"""Which pods replace one that has left, so that they get its seat (docs/adr/0033).

The API server numbers all writes, and a watch shows those of pods in that order. So a pod that was
shown before another one began to leave is not its replacement, and one that was not shown yet may
be. What a list shows may be older than it seems: a pod counts as there before only if it surely
was.
"""

from __future__ import annotations

from enum import Enum, auto

from reserver.base.fairness import FairMemory
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.owner import OwnerRule

_REMEMBERED = 20_000
"""How many pods that left are remembered of all namespaces: those of the last minutes."""


class ReplacementStanding(Enum):
    """Whether a pod that an owner rule matches may claim now."""

    MAY_CLAIM = auto()
    MAY_NOT = auto()
    UNKNOWN = auto()
    """The watch has yet to show the pod, or that the one before it leaves."""


class Succession:
    """Since when pods that wait for a node are known, and since when others leave theirs."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin without pods; the snapshot has those that are on nodes."""
        self._snapshot = snapshot
        self._known: dict[str, int] = {}
        self._left = FairMemory[str, int](_REMEMBERED)

    def seen(self, pod: Pod, before: Pod | None, *, listed: bool) -> None:
        """Take a pod as a watch shows it, or a list.

        Args:
            before: as it was shown before; None if it was not.
            listed: a list shows it, so that it may have changed long before.
        """
        if not pod.node:
            self._known.setdefault(pod.uid, pod.revision)
            return
        self._known.pop(pod.uid, None)
        if pod.terminating:
            was_there_at = before.revision if before else 0
            self._leaves(pod, was_there_at if listed else pod.revision)

    def gone(self, pod: Pod) -> None:
        """Note that a pod is gone, which was shown like this last."""
        self._known.pop(pod.uid, None)
        if pod.node:
            self._leaves(pod, pod.revision)

    def _leaves(self, pod: Pod, since: int) -> None:
        """Note since which revision a pod leaves, if that is not known."""
        if pod.uid not in self._left:
            self._left.put(pod.name.namespace, pod.uid, since)

    def knows(self, pod: Pod) -> bool:
        """Return whether a pod that is on no node was shown."""
        return pod.uid in self._known

    def standing(self, rule: OwnerRule, pod: Pod) -> ReplacementStanding:
        """Return whether a pod that a rule matches may claim now."""
        leaves = rule.replaces.uid
        if not leaves:
            return ReplacementStanding.MAY_CLAIM
        since = self._known.get(pod.uid)
        counted = self._snapshot.counted(leaves)
        if counted is not None and not counted.pod.terminating:
            return ReplacementStanding.UNKNOWN if since is None else ReplacementStanding.MAY_NOT
        was_there = since is not None and since < self._left.get(leaves, 0)
        return ReplacementStanding.MAY_NOT if was_there else ReplacementStanding.MAY_CLAIM
