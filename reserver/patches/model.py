"""A SchedPatch: what it injects, into which pods, how many, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reserver.cluster.labels import Labels, Selector

Json = Mapping[str, Any]
"""A part of an object, as JSON has it."""


class PatchName(NamedTuple):
    """Namespace and name of a SchedPatch."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """What a pod's spec says of where it may go, as far as patches change it; as JSON has it.

    Attributes:
        node_selector: ``spec.nodeSelector``.
        affinity: ``spec.affinity``.
        tolerations: ``spec.tolerations``.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Json = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedPatch:
    """A SchedPatch that can be read.

    Attributes:
        name: namespace and name; it patches pods of this namespace only.
        uid: tells it from an earlier one of the same name.
        selector: the labels of the pods that it patches.
        max_count: so many pods, ever.
        injected: what it adds to a pod's spec.
        expires_at: from then on it patches none, unix seconds; None for never.
    """

    name: PatchName
    uid: str
    selector: Selector
    max_count: int
    injected: Scheduling
    expires_at: float | None = None

    def is_over(self, now: float) -> bool:
        """Return whether it has expired."""
        return self.expires_at is not None and now >= self.expires_at

    def matches(self, labels: Labels, now: float) -> bool:
        """Return whether it is for pods with these labels, at `now` (unix seconds)."""
        return not self.is_over(now) and self.selector.matches(labels)
