"""What all judgements share: the rules, and what Reserver may have known when it decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hack.promises.amounts import Amounts, smallest, total
from hack.promises.history import Moment
from hack.promises.world import Binding, Life, Pod, World


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
        lost_s: how long what is claimed may stand there before the claim counts as lost.
        manager_s: how far the manager's account may be from when its write is received.
        exempt_priority: from here on pods take held capacity.
    """

    schedulers: frozenset[str]
    grace_s: float = 1.0
    settle_s: float = 10.0
    patience_s: float = 15.0
    cleaner_s: float = 30.0
    lost_s: float = 60.0
    manager_s: float = 10.0
    exempt_priority: int = 2_000_000_000


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
class Claim:
    """A slot that a pod took.

    Attributes:
        pod: which.
        moment: when.
        sure: nothing else can be meant; otherwise Reserver may have seen it so or so.
    """

    pod: Pod
    moment: Moment
    sure: bool


@dataclass(frozen=True)
class Case:
    """A cluster over time, and the rules to judge it by."""

    world: World
    rules: Rules

    def earliest(self, at: float) -> float:
        """Return since when something written at `at` may have been on its way, less the grace."""
        since = at - self.rules.grace_s
        for outage in reversed(self.world.history.outages):
            if outage.since <= at and since <= outage.until + self.rules.settle_s:
                since = min(since, outage.since - self.rules.grace_s)
        return since

    def latest(self, at: float) -> float:
        """Return until when something decided before `at` may be written, plus the grace."""
        until = at + self.rules.grace_s
        for outage in self.world.history.outages:
            if outage.since <= until and at <= outage.until + self.rules.settle_s:
                until = max(until, outage.until + self.rules.settle_s)
        return until

    def span(self, binding: Binding) -> Span:
        """Return the time that a binding is judged by."""
        moment = binding.moment
        since = self.earliest(moment.at)
        if binding.late:
            since = min(since, binding.after.at - self.rules.grace_s)
        return Span(since, moment.revision, self.latest(moment.at))

    def decides(self, pod: Pod) -> bool:
        """Return whether a pod's binding is Reserver's decision."""
        return (
            pod.binding is not None
            and not pod.binding.created
            and pod.scheduler in self.rules.schedulers
        )

    def is_judged(self, pod: Pod) -> bool:
        """Return whether holds apply to a pod."""
        return self.decides(pod) and pod.priority < self.rules.exempt_priority

    # Claims

    @cached_property
    def claims(self) -> Mapping[Life, tuple[Claim, ...]]:
        """Return who took slots of each entry, or may have."""
        claims: dict[Life, list[Claim]] = {}
        for pod in self.world.pods:
            for life, claim in self._claims_of(pod):
                claims.setdefault(life, []).append(claim)
        return {life: tuple(found) for life, found in claims.items()}

    def _claims_of(self, pod: Pod) -> Iterable[tuple[Life, Claim]]:
        if pod.binding is None:
            return
        span, moment = self.span(pod.binding), pod.binding.moment
        claimed: list[Life] = []
        for life in self.world.naming.get(pod.name, ()):
            stood = life.written.at <= span.until and not (life.gone and life.gone.at < span.since)
            again = any((c.place, c.entry) == (life.place, life.entry) for c in claimed)
            if again and (pod.gone is None or pod.gone.at >= life.written.at):
                # The same reservation, written again while its claim stands on the pod.
                yield life, Claim(pod, max(moment, life.written), sure=False)
            elif stood:
                claimed.append(life)
                yield life, Claim(pod, moment, self._is_sure(life, pod, span))

    def _is_sure(self, life: Life, pod: Pod, span: Span) -> bool:
        """Return whether a pod says that it claimed an entry, and can have meant no other."""
        assert pod.binding is not None  # noqa: S101 - for mypy
        place = str(life.place)
        if place not in pod.binding.claims:
            return False
        lives = self.world.lives_at[place]
        return [x for x in lives if x.touches(span.since, span.revision)] == [life]

    # Holds

    def live(self, pod: Pod, span: Span) -> tuple[Life, ...]:
        """Return the entries that certainly named a pod then, and that nobody else claimed."""
        return tuple(
            life
            for life in self.world.naming.get(pod.name, ())
            if life.written.at <= span.since
            and life.stands(span.revision)
            and (life.expires is None or life.expires > span.until)
            and len(self._claimants(life, span) - {pod.uid}) < life.entry.slots
        )

    def seats(self, pod: Pod, span: Span) -> tuple[Life, ...]:
        """Return those of them that held capacity."""
        return tuple(x for x in self.live(pod, span) if x.entry.starts <= span.since)

    def held(self, node: str, span: Span, for_pod: Pod) -> dict[str, dict[str, int]]:
        """Return what was certainly held on a node for others than a pod, by place."""
        held = {}
        for place in {str(life.place): life for life in self.world.lives_on.get(node, ())}:
            lives = [x for x in self.world.lives_at[place] if x.touches(span.since, span.revision)]
            if not lives or lives[0].written.at > span.since or not _unbroken(lives, span):
                continue
            least = smallest([self._holds(life, node, span, for_pod) for life in lives])
            if any(least.values()):
                held[place] = least
        return held

    def _holds(self, life: Life, node: str, span: Span, for_pod: Pod) -> Amounts:
        """Return what an entry holds for others than a pod, at the least."""
        slots, _ = life.least_on(node, span.since, span.revision)
        if not self.is_placed(life, node, span) or life.entry.starts > span.since:
            return {}
        if life.expires is not None and life.expires <= span.until:
            return {}
        claimants = self._claimants(life, span) - self._claimed_elsewhere(life, node)
        if for_pod.name in life.entry.owners:
            claimants.add(for_pod.uid)
        left = max(0, slots - len(claimants))
        return {name: left * value for name, value in life.entry.resources.items()}

    def is_placed(self, life: Life, node: str, span: Span) -> bool:
        """Return whether an entry certainly was on a node all the time."""
        slots, since = life.least_on(node, span.since, span.revision)
        # Where its node went it may have been moved, which is written a moment later.
        return slots > 0 and (bool(life.entry.node) or self.world.stood(node, since))

    def _claimed_elsewhere(self, life: Life, node: str) -> set[str]:
        """Return the pods that took a slot on another node where an entry was placed."""
        return {
            claim.pod.uid
            for claim in self.claims.get(life, ())
            if claim.pod.binding and claim.pod.binding.node in life.nodes - {node}
        }

    def _claimants(self, life: Life, span: Span) -> set[str]:
        """Return the pods that may have taken a slot, or may be about to."""
        claims = self.claims.get(life, ())
        claimants = {c.pod.uid for c in claims if c.moment.at <= span.until}
        for owner in life.entry.owners:
            claimants |= {
                pod.uid
                for pod in self.world.pods_named.get(owner, ())
                # Deleted just now without a node: its binding may have been under way.
                if not pod.states[-1].node and pod.gone and span.since <= pod.gone.at <= span.until
            }
        return claimants

    def taken(self, node: str, span: Span, but: Pod) -> dict[str, int]:
        """Return what all other pods of a node took, as far as Reserver must have known."""
        parts = []
        for pod in self.world.pods_near.get(node, ()):
            state = pod.at(span.revision)
            if state is None or state.node != node or state.done or pod.uid == but.uid:
                continue
            known_since = pod.binding.moment.at if pod.binding else 0.0
            if self.decides(pod) or known_since <= span.since:
                parts.append(state.requests)
        return total(parts)


def _unbroken(lives: list[Life], span: Span) -> bool:
    """Return whether lives of one place follow each other without a pause until the binding."""
    for before, after in pairwise(lives):
        if before.gone is None or before.gone.revision != after.written.revision:
            return False
    return lives[-1].stands(span.revision)
