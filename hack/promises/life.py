"""An entry of the store over time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hack.promises.entries import Entry, Parts, Ref
from hack.promises.history import Moment
from hack.promises.owners import Traits
from hack.promises.pods import Pod
from hack.promises.series import Course

ENDLESS = 2**63
"""After every revision."""


@dataclass(frozen=True)
class Life:
    """An entry of the store, from its first write to its removal.

    Attributes:
        ref: the place of the entry.
        entry: its content.
        put: the written content; differs from `entry` once its ttl is resolved.
        written: the time of its first write.
        gone: the earliest possible time of its removal; None while it exists.
        in_gap: it was removed in a gap of the recording.
        deleted: the whole ConfigMap was deleted.
        moves: the placements by Reserver of an entry without a node, each with its time.
        courses: the skipped parts of a recurring entry, each with its time.
        goes_on: at `gone` only an occurrence ended; the entry stayed.
        comes_again: another occurrence follows.
    """

    ref: Ref
    entry: Entry
    put: Entry
    written: Moment
    gone: Moment | None = None
    in_gap: bool = False
    deleted: bool = False
    moves: tuple[tuple[Moment, Parts], ...] = ()
    courses: tuple[tuple[Moment, Course], ...] = ()
    goes_on: bool = False
    comes_again: bool = False

    def written_as(self, now: Entry, moment: Moment) -> Life:
        """Return it as it is written at a moment, perhaps placed elsewhere, or with a skip."""
        after = replace(self, entry=now)
        if now.placements != (self.moves[-1][1] if self.moves else ()):
            after = replace(after, moves=(*self.moves, (moment, now.placements)))
        if not self.courses or now.course != self.courses[-1][1]:
            after = replace(after, courses=(*self.courses, (moment, now.course)))
        return after

    @property
    def name(self) -> str:
        """The ref in its claims: its own, or the ref that the entry was moved from."""
        return self.entry.origin or str(self.ref)

    @property
    def node(self) -> str:
        """Return its node, or the first where it was placed last; empty if there is none."""
        last = self.moves[-1][1] if self.moves else ()
        return self.entry.node or (last[0][0] if last else "")

    @property
    def nodes(self) -> frozenset[str]:
        """Return all nodes where it ever was."""
        if self.entry.node:
            return frozenset({self.entry.node})
        return frozenset(node for _, parts in self.moves for node, _ in parts)

    def is_placed_by(self, revision: int) -> bool:
        """Return whether it says, or said, where it is at a revision."""
        return bool(self.entry.node) or any(m.revision <= revision for m, _ in self.moves)

    def most_on(self, node: str) -> int:
        """Return the most slots that it ever had on a node."""
        if self.entry.node:
            return self.entry.slots if node == self.entry.node else 0
        return max((dict(parts).get(node, 0) for _, parts in self.moves), default=0)

    def may_be_on(self, node: str, since: float, revision: int) -> bool:
        """Return whether a slot may have been on a node, or without a place, in a time.

        Args:
            node: the node.
            since: unix seconds.
            revision: the last one.
        """
        if self.entry.node or node in self.nodes:
            return node in self.nodes
        starts = [(self.written, ()), *self.moves]  # What it is written with may not suit it.
        ends = [*(moment.at for moment, _ in self.moves), float("inf")]
        return any(
            start.revision <= revision
            and end >= since
            and sum(slots for _, slots in parts) < self.entry.most_placed
            for (start, parts), end in zip(starts, ends, strict=True)
        )

    def least_on(self, node: str, since: float, revision: int) -> tuple[int, float]:
        """Return the fewest slots that it had on a node from a time to a revision, and since when.

        Args:
            node: the node.
            since: unix seconds.
            revision: the last one.
        """
        if self.entry.node:
            return (self.entry.slots if node == self.entry.node else 0), self.written.at
        before = [move for move in self.moves if move[0].at <= since]
        after = [m for m in self.moves if m[0].at > since and m[0].revision <= revision]
        if not before:
            return 0, since
        slots = (dict(parts).get(node, 0) for _, parts in (before[-1], *after))
        return min(slots), before[-1][0].at

    def most_placed(self, since: float, revision: int) -> int:
        """Return the most slots that had a place at once, from a time to a revision."""
        before = [move for move in self.moves if move[0].at <= since][-1:]
        after = [m for m in self.moves if m[0].at > since and m[0].revision <= revision]
        return max((sum(slots for _, slots in parts) for _, parts in before + after), default=0)

    def names(self, pod: Pod) -> bool:
        """Return whether a pod is an owner by its name; a mirror pod has one that it chose."""
        return pod.name in self.entry.owners and not pod.is_mirror

    def may_be_of(self, pod: Pod) -> bool:
        """Return whether a pod ever was an owner."""
        matches = any(map(self._matches, pod.traits)) and not pod.is_mirror
        return self.names(pod) or matches

    def is_of(self, pod: Pod) -> bool:
        """Return whether a pod was an owner all the time."""
        return self.names(pod) or all(map(self._matches, pod.traits))

    def _matches(self, traits: Traits) -> bool:
        return any(rule.matches(traits) for rule in self.entry.rules)

    @property
    def expires(self) -> float | None:
        """Return when it stops holding, unix seconds; None for never."""
        if self.entry.expires is not None or self.entry.ttl_s is None:
            return self.entry.expires
        return self.written.at + self.entry.ttl_s

    def stands(self, revision: int) -> bool:
        """Return whether it is in the store at a revision."""
        return self.written.revision <= revision < (self.gone.revision if self.gone else ENDLESS)

    def touches(self, since: float, revision: int) -> bool:
        """Return whether it stood at some time from `since` (unix seconds) to a revision."""
        return self.written.revision <= revision and (self.gone is None or self.gone.at >= since)
