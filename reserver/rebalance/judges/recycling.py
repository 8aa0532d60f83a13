"""Judges of pods to start again: too old, restarted too often, or failed.

Which pods these are is found as upstream finds them. They go to another node, or begin anew on
their own if no other one has room: with its eviction a pod leaves what it takes there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches, Guard

Find = Callable[[Any, PodIndex, Guard, float], Batches]


class Everyone:
    """Lets all pods pass: what protects a pod is asked once it is found, to be told."""

    def allows(self, pod: int) -> bool:  # noqa: ARG002 - one shape for all judges
        """Return True."""
        return True

    confirms = allows
    passes = allows


def recycled(find: Find) -> Callable[[Cycle, Any], None]:
    """Return the judge of a strategy that finds pods so."""

    def judge(cycle: Cycle, args: Any) -> None:  # noqa: ANN401 - the strategy's own
        view = cycle.stage.view
        for batch in find(args, view, Everyone(), cycle.real.now):
            for index, reason in batch:
                cycle.recycle(view.pods[index], cycle.why(reason, "it begins anew"))

    return judge
