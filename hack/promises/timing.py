"""The precision of times: bounds on when a decision was made, a write seen and a write made."""

from __future__ import annotations

from dataclasses import dataclass

from hack.promises.history import History, Outage
from hack.promises.pods import Binding


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The limits of the judgement, in seconds.

    Attributes:
        schedulers: the schedulers with Reserver as their extender; only their pods are judged.
        grace_s: between a write and its arrival in Reserver, and before a binding is written.
        settle_s: after an outage of the API server, until a binding that was decided before it
            arrives: Reserver repeats the request, with pauses of up to 7.5 s.
        patience_s: wait of a pod for room that is free.
        cleaner_s: until an ended entry is deleted from the store.
        recorded_s: life of a pod after its claim until Reserver has certainly recorded the claim,
            with restarts.
        ends: unix seconds of the kills and starts of Reserver, as far as they are known.
        past_s: after such an end, Reserver may lack claims of pods that are gone.
        lost_s: until a claim counts as lost because the claimed entry still exists.
        manager_s: between the manager's time of a write and the recorder's.
        pauses: times in which no pod could be bound although Reserver was up, because its caller
            was away.
        exempt_priority: the priority from which pods of `exempt_namespaces` may take held room.
        exempt_namespaces: kube-system, and the namespaces in Reserver's settings.
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
    """The precision of a history's times, by the rules."""

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

    def cleaned(self, at: float) -> float:
        """Return until when something may be left that ended at `at`; outages may follow."""
        return self.latest(self.latest(at) + self.rules.cleaner_s)

    def span(self, binding: Binding) -> Span:
        """Return the time that a binding is judged by."""
        moment = binding.moment
        since = self.earliest(moment.at)
        if binding.late:
            since = min(since, binding.after.at - self.rules.grace_s)
        # However long all stood still, nobody decides on a pod before there is one.
        since = max(since, min(moment.at, binding.wanted) - self.rules.grace_s)
        return Span(since, moment.revision, self.latest(moment.at))
