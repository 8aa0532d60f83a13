"""Obstacles of moves next to full nodes: volumes, closing nodes, and groups of equal names."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from hack.bed.bed import Bed
from hack.chaos.moving.people import ENDED, People

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
_UNDER_WAY = frozenset({"Evicting", "Landing"})
_LOOK_S, _CLOSED_S = 0.05, 5.0
_SHUT_S = 60
"""Seconds for which a move to a node that may stay full waits for room: one follows another."""


class Hardships:
    """Moves that are impossible, or that change on the way.

    Attributes:
        wrongs: unexpected outcomes.
    """

    def __init__(self, bed: Bed, people: People, timeout_s: int, seed: int) -> None:
        self._bed = bed
        self._people = people
        self.others = People(bed, OTHER)
        self._timeout_s = timeout_s
        self._seed = seed
        self.wrongs: list[str] = []

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
            (pod,) = self._people.insist(partial(self._people.pods, name))
            move = self._write(pod.metadata.name)
            status = self._ended(move)
            if status["reason"] != "NotMovable":
                self.wrongs.append(f"{name}, whose volume stays: {dict(status)}")

    def close(self) -> None:
        """Move pods to nodes that close at any moment, and reopen."""
        rng = random.Random(self._seed + 3)  # noqa: S311 - repeatable
        for name in SHUT:
            (pod,) = self._people.insist(partial(self._people.pods, name))
            others = [node for node in self._bed.nodes if node != pod.spec.node_name]
            node, how, late_s = rng.choice(others), rng.choice(_CLOSED), rng.uniform(0.0, 0.3)
            timeout = f"{min(self._timeout_s, _SHUT_S)}s"
            move = self._write(pod.metadata.name, to={"node": node}, timeout=timeout)
            while self._people.status(move).get("phase") not in (_UNDER_WAY | ENDED):
                time.sleep(_LOOK_S)
            time.sleep(late_s)
            change = partial(self._people.core.patch_node, node)
            self._people.insist(partial(change, {"spec": how}))
            until = time.monotonic() + _CLOSED_S
            while time.monotonic() < until and not self._is_over(move):
                time.sleep(_LOOK_S)
            self._people.insist(partial(change, {"spec": _OPEN}))

    def pair(self) -> None:
        """Move pods of two namespaces with equal names of groups and moves."""
        group = {"name": "twins", "size": len(TWINS)}
        for people in (self._people, self.others):
            for name in TWINS:
                (pod,) = people.insist(partial(people.pods, name))
                terms: dict[str, Any] = {"timeout": f"{self._timeout_s}s", "group": group}
                move = partial(people.move, pod.metadata.name, name=name, **terms)
                people.insist(partial(_once, people, name, move))

    def _write(self, pod: str, **spec: Any) -> str:  # noqa: ANN401 - of a PodMove
        terms = {"timeout": f"{self._timeout_s}s", **spec}
        move = partial(self._people.move, pod, **terms)
        return self._people.insist(move)

    def _ended(self, move: str) -> Mapping[str, Any]:
        while not self._is_over(move):
            time.sleep(_LOOK_S)
        return self._people.status(move)

    def _is_over(self, move: str) -> bool:
        return self._people.status(move).get("phase") in ENDED


def _once(people: People, name: str, move: Any) -> str:  # noqa: ANN401 - a partial
    """Create a move of a name, unless an earlier call without an answer has created it."""
    if any(item["metadata"]["name"] == name for item in people.moves()):
        return name
    made: str = move()
    return made
