"""How exact moments are: when something may have been decided, seen and written."""

from __future__ import annotations

from dataclasses import dataclass

from hack.promises.history import History, Outage
from hack.promises.pods import Binding


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How strict to be; all times in seconds.

    Attributes:
        schedulers: whose pods are judged: those that have Reserver as their extender.
        grace_s: how long Reserver may take to see a write, and a binding to be written.
        settle_s: how long after an outage of the API server a binding may arrive that was decided
            before it: Reserver asks again, with pauses of up to 7.5 s.
        patience_s: how long a pod may wait for room that is free.
        cleaner_s: how long what is over may stand in the store.
        recorded_s: how long a pod has to stand after its claim until Reserver has certainly
            written it down, restarts included.
        ends: when Reserver was killed, and another one started, as far as that is known; unix
            seconds.
        past_s: how long after that Reserver may not know of claims whose pods are gone.
        lost_s: how long what is claimed may stand there before the claim counts as lost.
        manager_s: how far the manager's account may be from when its write is received.
        pauses: times in which no pod could be expected to be bound, though Reserver decided all the
            time: whoever calls it was away.
        exempt_priority: from here on pods take held capacity, in these namespaces:
        exempt_namespaces: kube-system, and those that Reserver was told.
    """

    schedulers: frozenset[str]
    grace_s: float = 1.0
    settle_s: float = 10.0
    patience_s: float = 15.0
    cleaner_s: float = 30.0
    recorded_s: float = 10.0
    ends: tuple[float, ...] = ()
    past_s: float = 30.0
    lost_s: float = 60.0
    manager_s: float = 10.0
    pauses: tuple[Outage, ...] = ()
    exempt_priority: int = 2_000_000_000
    exempt_namespaces: frozenset[str] = frozenset({"kube-system"})


@dataclass(frozen=True)
class Span:
    """The time in which a binding may have been decided, and what may still change it.

    Attributes:
        since: the earliest moment of the decision, less the grace; unix seconds.
        revision: the binding's.
        until: when it is certain to be written, plus the grace; unix seconds.
    """

    since: float
    revision: int
    until: float


@dataclass(frozen=True)
class Timing:
    """How exact the moments of a history are, by the rules."""

    history: History
    rules: Rules

    def earliest(self, at: float) -> float:
        """Return since when something written at `at` may have been on its way, less the grace."""
        since = at - self.rules.grace_s
        for outage in reversed(self.history.outages):
            if outage.since <= at and since <= outage.until + self.rules.settle_s:
                since = min(since, outage.since - self.rules.grace_s)
        return since

    def latest(self, at: float) -> float:
        """Return until when something decided before `at` may be written, plus the grace."""
        until = at + self.rules.grace_s
        for outage in self.history.outages:
            if outage.since <= until and at <= outage.until + self.rules.settle_s:
                until = max(until, outage.until + self.rules.settle_s)
        return until

    def span(self, binding: Binding) -> Span:
        """Return the time that a binding is judged by."""
        moment = binding.moment
        since = self.earliest(moment.at)
        if binding.late:
            since = min(since, binding.after.at - self.rules.grace_s)
        # However long all stood still, nobody decides on a pod before there is one.
        since = max(since, min(moment.at, binding.wanted) - self.rules.grace_s)
        return Span(since, moment.revision, self.latest(moment.at))
