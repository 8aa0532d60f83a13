"""An entry of the catalogue: it makes one write, or one call, at each turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]

RESERVATION, POD, CONFIGMAP, WHAT_IF = "reservations", "pods", "configmaps", "what-if"
TEMPLATE, REQUEST = "podtemplates", "provisioningrequests"
PATCH, MOVE, REVIEW = "schedpatches", "podmoves", "reviews"

STORE = "hostile"
"""Name of the tenant's ConfigMap that Reserver is configured to read."""

STANDING = 4
"""Most objects of one entry at the same time; then the oldest is written again."""


@dataclass(frozen=True)
class Target:
    """The target of the tenant's writes.

    Attributes:
        nodes: names of the cluster's nodes.
        scheduler: scheduler name of pending pods.
        labels: labels of the nodes for its reservations and pods; empty for all nodes.
        share: share of the full size, at most 1: refused sizes are repeated smaller.
    """

    nodes: Sequence[str]
    scheduler: str
    labels: Document = field(default_factory=dict)
    share: float = 1.0

    def node(self, turn: int) -> str:
        """Return a node, another one at each turn."""
        return self.nodes[turn * 7 % len(self.nodes)]

    def many(self, most: int) -> int:
        """Return the number of items to write, at `share` of the full size."""
        return max(1, int(most * self.share))


@dataclass(frozen=True)
class Costly:
    """One write, or one call.

    Attributes:
        kind: RESERVATION, POD, TEMPLATE, REQUEST, PATCH, MOVE, CONFIGMAP, WHAT_IF or REVIEW.
        name: name of the object.
        document: the spec of a reservation, request, patch or move, the pod without its name, the
            template of a PodTemplate, the data of a ConfigMap, the request of a WhatIf; for a
            review the pod by path of the webhook.
    """

    kind: str
    name: str
    document: Document


Make = Callable[[Target, int], Document]
"""Makes the document of an entry at a turn."""

Entry = Callable[[Target, int], Costly]
Entries = dict[str, Entry]
"""The functions of the entries, by name."""


def enter(entries: Entries, kind: str, standing: int = STANDING) -> Callable[[Make], Make]:
    """Return a decorator that adds a function for documents of a kind to the entries."""

    def decorate(make: Make) -> Make:
        name = make.__name__.replace("_", "-")

        def entry(target: Target, turn: int) -> Costly:
            place = STORE if kind == CONFIGMAP else f"{name}-{turn % standing}"
            return Costly(kind, place, make(target, turn))

        entries[name] = entry
        return make

    return decorate
