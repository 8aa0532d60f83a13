"""The state that Reserver certainly knew at a decision; all judgements share it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hack.promises import idle
from hack.promises import slots as claimed
from hack.promises.amounts import Amounts, smallest, total
from hack.promises.life import Life
from hack.promises.loans import unborrowed
from hack.promises.pods import Pod
from hack.promises.timing import Rules, Span, Timing
from hack.promises.world import World


@dataclass(frozen=True)
class Case:
    """A cluster over time, and the rules to judge it by."""

    world: World
    rules: Rules

    @cached_property
    def timing(self) -> Timing:
        """The precision of its times."""
        return Timing(self.world.history, self.rules)

    @cached_property
    def claims(self) -> Mapping[Life, tuple[claimed.Claim, ...]]:
        """Return who took slots of each entry, or may have."""
        return claimed.claims(self.world, self.timing)

    @cached_property
    def releases(self) -> Mapping[Life, idle.Release]:
        """Return when the entries that are released if idle are."""
        return idle.releases(self.world, self.claims, self.rules)

    def decides(self, pod: Pod) -> bool:
        """Return whether a pod's binding is Reserver's decision."""
        return (
            pod.binding is not None
            and not pod.binding.created
            and pod.scheduler in self.rules.schedulers
        )

    def is_judged(self, pod: Pod) -> bool:
        """Return whether holds apply to a pod."""
        is_system = pod.priority >= self.rules.exempt_priority
        return self.decides(pod) and not (
            is_system and pod.name.partition("/")[0] in self.rules.exempt_namespaces
        )

    # What is an owner's

    def live(self, pod: Pod, span: Span) -> tuple[Life, ...]:
        """Return the entries that certainly named a pod in a span, unclaimed by other pods."""
        naming = (life for life in self.world.naming(pod) if self._stands(life, span))
        return tuple(
            life
            for life in naming
            if len(self._claimants(life, span) - {pod.uid}) < life.entry.most_slots
        )

    def seats(self, pod: Pod, span: Span) -> tuple[Life, ...]:
        """Return the live entries of a pod that held capacity."""
        return tuple(x for x in self.live(pod, span) if x.entry.starts <= span.since)

    def offers(self, pod: Pod, span: Span) -> Iterator[tuple[Life, str]]:
        """Yield the entries that certainly had a slot for a pod they match, with the nodes.

        The node is empty while one waits for a place. None if any may have named the pod: then it
        takes nothing of the others.
        """
        if any(life.touches(span.since, span.revision) for life in self.world.naming(pod)):
            return
        for life in self.matches(pod, span):
            is_alone = len(self._touching(life.name, span)) == 1
            if not (is_alone and life.is_of(pod) and self._stands(life, span)):
                continue
            coming = {other.uid for other in self._under_way(life, span)}
            claimants = (self._claimants(life, span) | coming) - {pod.uid}
            if not life.is_placed_by(span.revision):
                if len(claimants) < life.entry.most_slots and life.entry.starts <= span.since:
                    yield life, ""
                continue
            for node in sorted(life.nodes):
                if self._left(life, node, span, claimants):
                    yield life, node

    def _under_way(self, life: Life, span: Span) -> list[Pod]:
        """Return the owners that may have been on their way to a node, perhaps in vain."""
        return [
            pod
            for pod in self.world.owners[life]
            if pod.states[0].moment.revision <= span.revision
            and not pod.states[0].node
            and not (pod.gone and pod.gone.at < span.since)
            and not (pod.binding and pod.binding.moment.at < span.since)
        ]

    def matches(self, pod: Pod, span: Span) -> tuple[Life, ...]:
        """Return the entries that may have matched a pod then."""
        lives = self.world.matching(pod)
        return tuple(life for life in lives if life.touches(span.since, span.revision))

    def _stands(self, life: Life, span: Span) -> bool:
        """Return whether an entry certainly stood all the time."""
        return (
            life.written.at <= span.since
            and life.stands(span.revision)
            and self.may_end(life) > span.until
            # Whom it names takes what recurs only while it holds.
            and not (life.entry.series and life.entry.starts > span.since)
        )

    def may_end(self, life: Life) -> float:
        """Return when an entry stops holding by itself, at the earliest, unix seconds."""
        expires = math.inf if life.expires is None else life.expires
        return min(expires, self.releases.get(life, idle.NEVER).earliest)

    def must_end(self, life: Life) -> float:
        """Return when an entry has certainly stopped holding by itself, unix seconds."""
        expires = math.inf if life.expires is None else life.expires
        return min(expires, self.releases.get(life, idle.NEVER).latest)

    # What is held

    def held(self, node: str, span: Span, for_pod: Pod) -> dict[str, dict[str, int]]:
        """Return the resources certainly held on a node for other pods, by entry.

        Borrowed room does not count.
        """
        held, counted, lent_below = {}, set[str](), {}
        for name in {life.name: life for life in self.world.lives_on.get(node, ())}:
            lives = self._touching(name, span)
            if not lives or lives[0].written.at > span.since or not _unbroken(lives, span):
                continue
            least = smallest([self._holds(life, node, span, for_pod, counted) for life in lives])
            counted |= {pod.uid for life in lives for pod in self._under_way(life, span)}
            if any(least.values()):
                held[name] = least
            if terms := [x.entry.lends_below for x in lives if x.entry.lends_below is not None]:
                lent_below[name] = max(terms)
        pods = [pod for pod in self.borrowers(node, span.revision) if pod.uid != for_pod.uid]
        borrowers = [(pod, pod.requests(span.revision)) for pod in pods]
        return unborrowed(held, lent_below, borrowers)

    def borrowers(self, node: str, revision: int, lender: Life | None = None) -> list[Pod]:
        """Return the pods on a node that may be recalled, and may borrow of an entry."""
        return [
            pod
            for pod in self.world.pods_near.get(node, ())
            if (state := pod.at(revision)) is not None
            and state.node == node
            and not state.done
            and (pod.may_borrow if lender is None else lender.entry.lends_to(pod))
        ]

    def _touching(self, name: str, span: Span) -> list[Life]:
        lives = self.world.lives_called[name]
        return [life for life in lives if life.touches(span.since, span.revision)]

    def _holds(
        self, life: Life, node: str, span: Span, for_pod: Pod, counted: AbstractSet[str]
    ) -> Amounts:
        """Return what an entry holds against a pod, at the least.

        A binding under way, and perhaps in vain, claims a slot where it goes to, and only for what
        its pod requests: that is as good as held. Once it is written it ends what names its pod.

        Args:
            life: the entry.
            node: the node.
            span: when.
            for_pod: the pod.
            counted: UIDs of pods whose requests another entry has in the place of a slot.
        """
        yields = life.entry.yields_above
        if yields is not None and for_pod.priority > yields:
            return {}
        if life.entry.lends_to(for_pod) or self.may_end(life) <= span.until:
            return {}
        # What matches it without naming it has a slot only of those that it claims.
        own = {for_pod.uid} if life.names(for_pod) else set[str]()
        claimants = self._claimants(life, span, written=True) | own
        left = self._left(life, node, span, claimants)
        others = claimants | {for_pod.uid}
        coming = [pod for pod in self._under_way(life, span) if pod.uid not in others]
        requests = [{} if pod.uid in counted else pod.requests(span.revision) for pod in coming]
        going = min(left, len(coming))
        return {
            name: (left - going) * value
            + sum(sorted(min(value, each.get(name, 0)) for each in requests)[:going])
            for name, value in life.entry.resources.items()
        }

    def _left(self, life: Life, node: str, span: Span, claimants: AbstractSet[str]) -> int:
        """Return the slots that an entry certainly held on a node, without slots of claimants."""
        slots, _ = life.least_on(node, span.since, span.revision)
        if not self.is_placed(life, node, span) or life.entry.starts > span.since:
            return 0
        if life.entry.is_whole:
            return slots
        slots -= self._surplus(life, span) if life.entry.refill_up_to else 0
        return max(0, slots - len(claimants - self._claimed_elsewhere(life, node)))

    def holds_whole(self, life: Life, node: str, span: Span) -> bool:
        """Return whether an entry certainly held a node whole."""
        is_held = self._stands(life, span) and life.entry.starts <= span.since
        return life.entry.is_whole and is_held and self.is_placed(life, node, span)

    def _surplus(self, life: Life, span: Span) -> int:
        """Return how many slots of an entry that replaces them may be of claims that have ended.

        Any of them may hold nothing any more.
        """
        lasting = sum(
            claim.sure
            and claim.moment.at <= span.since
            and not (claim.back and claim.back.at <= span.until)
            for claim in self.claims.get(life, ())
        )
        return max(0, life.most_placed(span.since, span.revision) - life.entry.slots - lasting)

    def is_placed(self, life: Life, node: str, span: Span) -> bool:
        """Return whether an entry certainly was on a node all the time."""
        slots, since = life.least_on(node, span.since, span.revision)
        # Where its node went it may have been moved, which is written a moment later.
        return slots > 0 and (bool(life.entry.node) or self.world.stood(node, since))

    def _claimed_elsewhere(self, life: Life, node: str) -> set[str]:
        """Return the pods that claimed a slot on another node where an entry was placed."""
        return {
            claim.pod.uid
            for claim in self.claims.get(life, ())
            if claim.pod.binding and claim.pod.binding.node in life.nodes - {node}
        }

    def _claimants(self, life: Life, span: Span, *, written: bool = False) -> set[str]:
        """Return the pods that may have had a slot then, or may have been about to.

        Args:
            life: the entry.
            span: when.
            written: only those whose bindings may have been written by then.
        """
        claimants = {
            claim.pod.uid
            for claim in self.claims.get(life, ())
            if claim.moment.at <= span.until
            and not (claim.back_by and claim.back_by.at < span.since)
            and not (written and claim.is_after(span.revision))
        }
        if written:
            return claimants
        # Deleted just now without a node: its binding may have been under way.
        return claimants | {
            pod.uid
            for pod in self.world.owners[life]
            if not pod.states[-1].node and pod.gone and span.since <= pod.gone.at <= span.until
        }

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
    """Return whether lives of one name follow each other without a pause until the binding."""
    for before, after in pairwise(lives):
        if before.gone is None or before.gone.revision != after.written.revision:
            return False
    return lives[-1].stands(span.revision)
