"""What an entry of the catalogue is: it makes one write, or one call, at each turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]

RESERVATION, POD, CONFIGMAP, WHAT_IF = "reservations", "pods", "configmaps", "what-if"
TEMPLATE, REQUEST = "podtemplates", "provisioningrequests"
PATCH, MOVE, REVIEW = "schedpatches", "podmoves", "reviews"

STORE = "hostile"
"""The ConfigMap of the tenant that Reserver is told to read, by name."""

STANDING = 4
"""So many objects of one entry stand at the same time; then the oldest is written again."""


@dataclass(frozen=True)
class Target:
    """Whom it may harm.

    Attributes:
        nodes: names of the cluster's nodes.
        scheduler: the scheduler's name that waiting pods ask for.
        labels: of the nodes where it may reserve and run; all without any.
        share: how large to be, at most 1: what is refused as too large is tried smaller.
    """

    nodes: Sequence[str]
    scheduler: str
    labels: Document = field(default_factory=dict)
    share: float = 1.0

    def node(self, turn: int) -> str:
        """Return one of the nodes, another one at each turn."""
        return self.nodes[turn * 7 % len(self.nodes)]

    def many(self, most: int) -> int:
        """Return how many of something to write."""
        return max(1, int(most * self.share))


@dataclass(frozen=True)
class Costly:
    """One write, or one call.

    Attributes:
        kind: RESERVATION, POD, TEMPLATE, REQUEST, PATCH, MOVE, CONFIGMAP, WHAT_IF or REVIEW.
        name: of the object.
        document: the spec of a reservation, request, patch or move, the pod without its name, the
            template of a PodTemplate, the data of a ConfigMap, what is asked; of a review the pod
            by the path of the webhook.
    """

    kind: str
    name: str
    document: Document


Make = Callable[[Target, int], Document]
"""Makes the document of an entry at a turn."""

Entry = Callable[[Target, int], Costly]
Entries = dict[str, Entry]
"""By name, what makes each at a turn."""


def enter(entries: Entries, kind: str, standing: int = STANDING) -> Callable[[Make], Make]:
    """Return a decorator that enters what makes documents of a kind."""

    def decorate(make: Make) -> Make:
        name = make.__name__.replace("_", "-")

        def entry(target: Target, turn: int) -> Costly:
            place = STORE if kind == CONFIGMAP else f"{name}-{turn % standing}"
            return Costly(kind, place, make(target, turn))

        entries[name] = entry
        return make

    return decorate
