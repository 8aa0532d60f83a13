"""The cluster over time, as values: what each pod, node and entry was at each revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from hack.promises.amounts import Amounts
from hack.promises.history import History, Moment
from hack.promises.life import Life
from hack.promises.pods import Pod

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True)
class NodeState:
    """A node from one write to the next.

    Attributes:
        moment: the moment of the write.
        allocatable: its allocatable resources.
        rest: the other fields that kube-scheduler reads: labels, taints, conditions.
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
class World:
    """The cluster over time.

    Attributes:
        history: what all of this follows from.
        pods: all that ever were.
        nodes: by name; one that is deleted and made again has several.
        lives: of all entries, in the order in which they were written.
        ends: when a Reserver ended, unix seconds.
    """

    history: History
    pods: tuple[Pod, ...]
    nodes: Mapping[str, tuple[Node, ...]]
    lives: tuple[Life, ...]
    ends: tuple[float, ...] = ()

    @cached_property
    def pods_near(self) -> Mapping[str, tuple[Pod, ...]]:
        """Return the pods that were ever bound to a node, or nominated for it, by its name."""
        near = {
            pod.uid: {n for s in pod.states for n in (s.node, s.nominated)} for pod in self.pods
        }
        return _grouped((node, pod) for pod in self.pods for node in near[pod.uid])

    @cached_property
    def lives_at(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives at a ref, by its text."""
        return _grouped((str(life.ref), life) for life in self.lives)

    @cached_property
    def lives_on(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives that held something on a node, by its name."""
        return _grouped((node, life) for life in self.lives for node in life.nodes)

    @cached_property
    def lives_called(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives that claims mean by a name: at a ref, and where it was moved to."""
        return _grouped((life.name, life) for life in self.lives)

    @cached_property
    def owners(self) -> Mapping[Life, tuple[Pod, ...]]:
        """Return the pods that ever were owners of a life."""
        named = _grouped((pod.name, pod) for pod in self.pods)
        owners: dict[Life, tuple[Pod, ...]] = {}
        for life in self.lives:
            among = (named.get(name, ()) for name in sorted(life.entry.owners))
            pods = self.pods if life.entry.rules else chain.from_iterable(among)
            owners[life] = tuple(
                pod
                for pod in pods
                if life.names(pod) or (life.may_be_of(pod) and self._comes_later(life, pod))
            )
        return owners

    def _comes_later(self, life: Life, pod: Pod) -> bool:
        """Return whether a pod was created after the pod whose replacement an entry is for.

        A list does not show the order of creation: after a restart a sibling that still waits may
        take the seat as well (docs/adr/0033).
        """
        replaced = {rule.replaces for rule in life.entry.rules} - {""}
        before = [each for each in self.pods if each.uid in replaced] if replaced else []
        first = pod.states[0].moment.revision
        bound_at = pod.binding.moment.at if pod.binding and life.name in pod.claims else 0.0
        return all(
            each.leaves
            and (
                each.leaves.revision < first
                or any(each.leaves.at <= end <= bound_at for end in self.ends)
            )
            for each in before
        )

    @cached_property
    def owned(self) -> Mapping[str, tuple[Life, ...]]:
        """Return the lives that a pod ever was an owner of, by its UID, as they were written."""
        return _grouped((pod.uid, life) for life in self.lives for pod in self.owners[life])

    def naming(self, pod: Pod) -> Iterator[Life]:
        """Yield the lives that name a pod."""
        return (life for life in self.owned.get(pod.uid, ()) if life.names(pod))

    def matching(self, pod: Pod) -> Iterator[Life]:
        """Yield the lives that a pod was an owner of without being named by them."""
        return (life for life in self.owned.get(pod.uid, ()) if not life.names(pod))

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
        """Yield the states of a node from a time (unix seconds) to a revision."""
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
