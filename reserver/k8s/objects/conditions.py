"""Conditions (metav1.Condition), as the statuses of our objects have them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reserver.k8s.objects.limits import Int64
from reserver.k8s.objects.times import show_moment
from reserver.printable import printable


class Condition(msgspec.Struct, rename="camel", frozen=True):
    """A condition (metav1.Condition)."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: Int64 = 0


class ConditionWriter:
    """The conditions that are to be said at a moment; what is as it was keeps its time."""

    def __init__(self, before: Iterable[Condition], generation: int, now: float) -> None:
        """Say them of a generation of the spec at `now` (unix seconds), after those of before."""
        self._before = {condition.type: condition for condition in before}
        self._generation = generation
        self._now = show_moment(now)

    def condition(self, kind: str, reason: str, message: str, *, holds: bool) -> Condition:
        """Return a condition."""
        status = "True" if holds else "False"
        before = self._before.get(kind)
        since = before.last_transition_time if before and before.status == status else self._now
        return Condition(kind, status, reason, printable(message), since, self._generation)
