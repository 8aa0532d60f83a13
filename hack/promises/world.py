"""The cluster over time, as values: what each pod, node and entry was at each revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from hack.promises.amounts import Amounts
from hack.promises.entries import Entry, Parts, Place
from hack.promises.history import History, Moment

ENDLESS = 2**63
"""After every revision."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class PodState(NamedTuple):
    """A pod from one write to the next.

    Attributes:
        moment: when it became so.
        node: where it is bound, empty if nowhere.
        done: it takes nothing from its node any more.
        requests: what it takes.
        refusal: why kube-scheduler could not place it.
        nominated: the node that it is nominated for.
    """

    moment: Moment
    node: str
    done: bool
    requests: Amounts
    refusal: str
    nominated: str


@dataclass(frozen=True)
class Binding:
    """A pod's binding to a node.

    Attributes:
        moment: of the write; of the next list, if the write was missed.
        after: a moment at which it certainly had not happened.
        node: where to.
        claims: what the pod says it claimed: the places, as text, without what follows the ``@``.
        created: the pod was created with its node: no scheduler decided.
        late: the write itself was missed.
    """

    moment: Moment
    after: Moment
    node: str
    claims: frozenset[str]
    created: bool = False
    late: bool = False


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod from its first write to its last.

    Attributes:
        uid: of this pod.
        name: as ``namespace/name``.
        scheduler: who is to bind it.
        priority: its number.
        only_capacity: nothing it asks of its node depends on other pods (spread, affinity, ports).
        states: what it was, in order; never empty.
        binding: how it got its node; None if it has none, or had it when it was first seen.
        gone: when it was deleted.
    """

    uid: str
    name: str
    scheduler: str
    priority: int
    only_capacity: bool
    states: tuple[PodState, ...]
    binding: Binding | None
    gone: Moment | None

    def at(self, revision: int) -> PodState | None:
        """Return what it was at a revision, None if it was not."""
        if self.gone and self.gone.revision <= revision:
            return None
        states = (s for s in reversed(self.states) if s.moment.revision <= revision)
        return next(states, None)


@dataclass(frozen=True)
class NodeState:
    """A node from one write to the next.

    Attributes:
        moment: when it became so.
        allocatable: what it offers.
        rest: whatever else kube-scheduler looks at: labels, taints, conditions.
    """

    moment: Moment
    allocatable: Amounts
    rest: Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """A node from its first write to its last."""

    states: tuple[NodeState, ...]
    gone: Moment | None


@dataclass(frozen=True)
class Life:
    """An entry of the store from the write that put it there to the write that removed it.

    Attributes:
        place: where.
        entry: what it says.
        put: what was written; differs from `entry` once its ttl is resolved.
        written: when it was there for the first time.
        gone: when it may have gone at the earliest; None while it stands.
        in_gap: it went while nobody showed us.
        deleted: the whole ConfigMap went.
        moves: where Reserver has placed it, if it names no node, and since when each time.
    """

    place: Place
    entry: Entry
    put: Entry
    written: Moment
    gone: Moment | None = None
    in_gap: bool = False
    deleted: bool = False
    moves: tuple[tuple[Moment, Parts], ...] = ()

    def placed(self, now: Entry, moment: Moment) -> Life:
        """Return it as it is written at a moment, perhaps as placed elsewhere."""
        before = self.moves[-1][1] if self.moves else ()
        if now.placements == before:
            return replace(self, entry=now)
        return replace(self, entry=now, moves=(*self.moves, (moment, now.placements)))

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

    def most_on(self, node: str) -> int:
        """Return the most slots that it ever had on a node."""
        if self.entry.node:
            return self.entry.slots if node == self.entry.node else 0
        return max((dict(parts).get(node, 0) for _, parts in self.moves), default=0)

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


@dataclass(frozen=True)
class World:
    """The cluster over time.

    Attributes:
        history: what all of this follows from.
        pods: all that ever were.
        nodes: by name; one that is deleted and made again has several.
        lives: of all entries, in the order in which they were written.
    """

    history: History
    pods: tuple[Pod, ...]
    nodes: Mapping[str, tuple[Node, ...]]
    lives: tuple[Life, ...]

    @cached_property
    def pods_near(self) -> Mapping[str, tuple[Pod, ...]]:
        """Return the pods that were ever bound to a node, or nominated for it, by its name."""
        near = {
            pod.uid: {n for s in pod.states for n in (s.node, s.nominated)} for pod in self.pods
        }
        return _grouped((node, pod) for pod in self.pods for node in near[pod.uid])

    @cached_property
    def pods_named(self) -> Mapping[str, tuple[Pod, ...]]:
        """Return the pods that ever had a name, by ``namespace/name``."""
        return _grouped((pod.name, pod) for pod in self.pods)

    @cached_property
    def lives_at(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives of a place, by its text."""
        return _grouped((str(life.place), life) for life in self.lives)

    @cached_property
    def lives_on(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives that held something on a node, by its name."""
        return _grouped((node, life) for life in self.lives for node in life.nodes)

    @cached_property
    def naming(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives that name a pod, by its ``namespace/name``."""
        return _grouped((owner, life) for life in self.lives for owner in life.entry.owners)

    def allocatable(self, node: str, since: float, revision: int) -> Amounts | None:
        """Return the most that a node offered from a time to a revision, None if it was unknown."""
        states = tuple(self.node_states(node, since, revision))
        if not states:
            return None
        names = {name for state in states for name in state.allocatable}
        return {name: max(s.allocatable.get(name, 0) for s in states) for name in names}

    def stood(self, node: str, since: float) -> bool:
        """Return whether a node has not been deleted since a time (unix seconds)."""
        return not any(life.gone and life.gone.at >= since for life in self.nodes.get(node, ()))

    def node_states(self, node: str, since: float, revision: int) -> Iterator[NodeState]:
        """Yield what a node was from a time (unix seconds) to a revision."""
        for life in self.nodes.get(node, ()):
            if life.gone and life.gone.at < since:
                continue
            ends = [*(s.moment.at for s in life.states[1:]), float("inf")]
            for state, end in zip(life.states, ends, strict=True):
                if state.moment.revision <= revision and end >= since:
                    yield state


def _grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, tuple[_V, ...]]:
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}
