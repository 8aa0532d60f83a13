"""Pods that change places: each waits for the other one's, through a free place."""

from __future__ import annotations

import numpy as np

from reserver.rebalance.ordering import order, take_back
from reserver.rebalance.plan_builder import PlanBuilder

MOST_SWAPS = 1_000
"""Pairs of pods that wait for each other's places: so many are tried for a plan."""

_TOO_MANY_SWAPS = f"only {MOST_SWAPS} pairs of pods that might change places were tried"


class Swaps:
    """The pairs of a plan that change places.

    At most `MOST_SWAPS` are tried; a note says so if there were more.
    """

    def __init__(self, builder: PlanBuilder) -> None:
        """Look at the pods that wait in a plan."""
        self._builder = builder
        self._tried = 0

    def swap(self) -> None:
        """Let pods change places."""
        waiting = self._builder.waiting
        for number in list(waiting):
            for other in self._partners(number):
                if number not in waiting:
                    break
                if other not in waiting or self._is_refused(number) or self._is_refused(other):
                    continue
                if self._tried == MOST_SWAPS:
                    self._builder.notes.append(_TOO_MANY_SWAPS)
                self._tried += 1
                if self._tried > MOST_SWAPS:
                    return
                self._try(number, other)

    def _partners(self, number: int) -> list[int]:
        """Return those behind a pod in the queue that want its place, and have one for it."""
        waiting, planned = self._builder.waiting, self._builder.planned
        if number not in waiting:
            return []
        accept, _ = waiting[number]
        queue = list(waiting)
        others = np.array(queue[queue.index(number) + 1 :], dtype=np.intp)
        home, homes = int(planned.rows[number]), planned.rows[others]
        own, theirs = planned.requests[number], planned.requests[others]
        has_place = np.all((planned.free[homes] + theirs >= own) | (own == 0), axis=1)
        gives_place = np.all((planned.free[home] + own >= theirs) | (theirs == 0), axis=1)
        found = others[accept[homes] & (homes != home) & has_place & gives_place]
        return [other for other in found.tolist() if waiting[other][0][home]]

    def _is_refused(self, number: int) -> bool:
        return bool(self._builder.refusal(number))

    def _try(self, number: int, other: int) -> None:
        """Let two pods change places if there is a way."""
        builder = self._builder
        planned = builder.planned
        whys = {each: builder.waiting[each][1] for each in (number, other)}
        goals = {number: int(planned.rows[other]), other: int(planned.rows[number])}
        found = order(planned, goals)
        take_back(planned, found.steps)
        if found.stuck or not builder.spent.has_room(len(found.steps)):
            return
        for step in found.steps:
            builder.go(step, whys[step.number])
