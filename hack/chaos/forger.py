"""A tenant that copies an owner's pod with its claims, to nodes where these must not count."""

from __future__ import annotations

import random
import threading

from hack.bed.api import ApiFault
from hack.chaos.book import Book
from hack.chaos.groups import APP, Group, Groups
from hack.chaos.pods import CLAIMS, Pods

_PAUSE = (0.5, 1.5)  # seconds from one forged pod to the next
_MIRRORS = 0.5  # share of them
_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of static pods' mirror pods."""


class Forger:
    """Creates pods whose annotation claims the slot of a group's pod.

    They match the group's owners, on a node where the pod has no slot; or they are mirror pods, on
    any node, some under an owner's name.

    Attributes:
        created: number of forged pods.
    """

    def __init__(self, seed: int, book: Book, groups: Groups, pods: Pods, nodes: list[str]) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._book = book
        self._groups = groups
        self._pods = pods
        self._nodes = nodes
        self.created = 0

    def forge(self, stop: threading.Event) -> None:
        """Forge pods until stopped."""
        while not stop.wait(self._rng.uniform(*_PAUSE)):
            settled = [g for g in self._groups if sum(g.nodes.values()) >= g.slots]
            owners = [(g, p) for g in settled for p in self._book.pods() if p.uid in g.claimants]
            if owners:
                group, owner = self._rng.choice(owners)
                self._copy(group, owner.name)

    def _copy(self, group: Group, owner: str) -> None:
        try:
            claims = self._pods.claims(owner)
        except ApiFault:
            return  # The pod is gone, or the API server is away.
        name, nodes = f"forged-{self.created}", set(self._nodes) - group.nodes.keys()
        said = {CLAIMS: claims}
        if self._rng.random() < _MIRRORS:
            name = self._rng.choice((name, f"{group.name}-nobody"))
            nodes, said = set(self._nodes), said | {_MIRROR: name}
        self._pods.forge(name, self._rng.choice(sorted(nodes)), {APP: group.app}, said)
        self.created += 1
