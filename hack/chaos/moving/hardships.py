"""Obstacles of moves next to full nodes: volumes, closing nodes, and groups of equal names."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from hack.bed.bed import Bed
from hack.chaos.moving.people import ENDED, GREEDY, NAMESPACE, People
from reserver.moves.phases import MoveMode, MoveReason

ROOTED = [f"rooted-{number}" for number in range(4)]
"""Deployments of one pod each whose volume is local to its node."""

SHUT = [f"shut-{number}" for number in range(8)]
"""Deployments of one pod each that move to a node which closes."""

TWINS = ("twin-a", "twin-b")
"""Deployments of one pod each, in both namespaces: their moves have equal names and groups."""

OTHER = "other"
"""The second namespace."""

_CLOSED: tuple[dict[str, Any], ...] = (
    {"unschedulable": True},
    {"taints": [{"key": "hack.reserver.io/closed", "effect": "NoSchedule"}]},
)
_OPEN: dict[str, Any] = {"unschedulable": False, "taints": None}
_UNDER_WAY = frozenset({"Evicting", "Surging", "HandingOver", "Landing"})
_ROOTED, _SHUT = "local volumes", "closing targets"
_ARRIVED = frozenset({"Landed", "LandedElsewhere"})
_LOOK_S, _CLOSED_S = 0.05, 5.0
_SHUT_S = 60
"""Seconds for which a move to a node that may stay full waits for room: one follows another."""


class Hardships:
    """Moves that are impossible, or that change on the way.

    Attributes:
        closed: number of targets that closed while their move was under way.
    """

    def __init__(self, bed: Bed, people: People, timeout_s: int, seed: int, mode: MoveMode) -> None:
        self._bed = bed
        self._people = people
        self.others = People(bed, OTHER)
        self._terms: dict[str, Any] = {"timeout": f"{timeout_s}s", "mode": mode}
        self._shut_s = min(timeout_s, _SHUT_S)
        self._seed = seed
        self._moves: dict[str, list[str]] = {_ROOTED: [], _SHUT: []}
        self.closed = 0

    @property
    def size(self) -> int:
        """Number of their pods."""
        return len(ROOTED) + len(SHUT) + 2 * len(TWINS)

    def fill(self) -> None:
        """Create their pods."""
        self.others.settle()
        for name, node in zip(ROOTED, self._bed.nodes, strict=False):
            self._people.add_volume(name, node)
            self._people.deploy(name, 1, claim=name)
        for name in (*SHUT, *TWINS):
            self._people.deploy(name, 1)
        for name in TWINS:
            self.others.deploy(name, 1)
        for name in (*ROOTED, *SHUT, *TWINS):
            self._people.wait_bound(name, 1)
        for name in TWINS:
            self.others.wait_bound(name, 1)

    def root(self) -> None:
        """Move pods with local volumes: none may be evicted."""
        for name in ROOTED:
            self._write(_ROOTED, self._people.only(name))

    def close(self) -> None:
        """Move pods to nodes that close at any moment, and reopen."""
        rng = random.Random(self._seed + 3)  # noqa: S311 - repeatable
        for name in SHUT:
            pod = self._people.only(name)
            own, greedy = pod.spec.node_name, partial(self._people.pods, GREEDY)
            taken = {each.spec.node_name for each in self._people.insist(greedy)} - {own}
            others = sorted(taken or {*self._bed.nodes} - {own})
            node, how, late_s = rng.choice(others), rng.choice(_CLOSED), rng.uniform(0.0, 0.3)
            move = self._write(_SHUT, pod, to={"node": node}, timeout=f"{self._shut_s}s")
            while self._people.status(move).get("phase") not in (_UNDER_WAY | ENDED):
                self._make_room(node)
                time.sleep(_LOOK_S)
            time.sleep(late_s)
            change = partial(self._people.core.patch_node, node)
            self._people.insist(partial(change, {"spec": how}))
            self.closed += self._people.status(move).get("phase") in _UNDER_WAY
            until = time.monotonic() + _CLOSED_S
            while time.monotonic() < until and not self._is_over(move):
                time.sleep(_LOOK_S)
            self._people.insist(partial(change, {"spec": _OPEN}))

    def _make_room(self, node: str) -> None:
        """Delete the greedy pods of a node: the first room there is the seat's."""
        with suppress(*People.FAULTS):
            for pod in self._people.pods(GREEDY):
                if pod.spec.node_name == node:
                    name = pod.metadata.name
                    self._people.core.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=0)

    def pair(self) -> None:
        """Move pods of two namespaces with equal names of groups and moves.

        The first moves of both come first: together they would be as many as a group has.
        """
        group = {"name": "twins", "size": len(TWINS)}
        for name in TWINS:
            for people in (self._people, self.others):
                pod = people.only(name)
                move = partial(people.move, pod.metadata.name, name=name, **self._terms)
                people.insist(partial(_once, people, name, partial(move, group=group)))

    def ends(self) -> dict[str, Counter[str]]:
        """Return the reasons of its ended moves, by hardship."""
        named: dict[str, tuple[People, Collection[str]]] = {
            _ROOTED: (self._people, self._moves[_ROOTED]),
            _SHUT: (self._people, self._moves[_SHUT]),
            f"twins of {NAMESPACE}": (self._people, TWINS),
            f"twins of {OTHER}": (self.others, TWINS),
        }
        return {
            what: Counter(people.status(name).get("reason", "") for name in names)
            for what, (people, names) in named.items()
        }

    def _write(self, kind: str, pod: Any, **spec: Any) -> str:  # noqa: ANN401 - of a PodMove
        move = partial(self._people.move, pod.metadata.name, **{**self._terms, **spec})
        name: str = self._people.insist(move)
        self._moves[kind].append(name)
        return name

    def _is_over(self, move: str) -> bool:
        return self._people.status(move).get("phase") in ENDED


def wrongs_of(ends: Mapping[str, Counter[str]], closed: int) -> list[str]:
    """Return the faults of the hard moves of a storm, and the hardships that never occurred.

    Args:
        ends: reasons of ended moves, by hardship.
        closed: number of targets that closed while their move was under way.
    """
    sizes = {_ROOTED: len(ROOTED), _SHUT: len(SHUT)}
    allowed = {_ROOTED: frozenset({"NotMovable"}), _SHUT: frozenset(MoveReason)}
    wrongs = [
        f"{what} ended as {dict(reasons)}"
        for what, reasons in ends.items()
        if reasons.total() != sizes.get(what, len(TWINS))
        or not reasons.keys() <= allowed.get(what, _ARRIVED)
    ]
    return wrongs if closed else [*wrongs, "no target closed while a pod moved there"]


def _once(people: People, name: str, move: Any) -> str:  # noqa: ANN401 - a partial
    """Create a move of a name, unless an earlier call without an answer has created it."""
    if any(item["metadata"]["name"] == name for item in people.moves()):
        return name
    made: str = move()
    return made
