"""A pod, as far as placing it is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class PodName(NamedTuple):
    """Namespace and name: what an owner is known by before it exists."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod, as far as placing it is concerned.

    Attributes:
        name: namespace and name.
        uid: tells this pod from an earlier one of the same name.
        revision: resourceVersion that shows it like this; 0 if that is not known.
        requests: the effective request: millicores of cpu, base units of all else, one of pods.
        node: the node that it is bound to; empty while it is not.
        priority: ``spec.priority``.
        finished: it has succeeded or failed, and takes nothing from its node any more.
        nominated_node: ``status.nominatedNodeName``, or empty.
        claims: identities of the reservations whose slots its binding took.
        has_preferences: it has soft constraints, which kube-scheduler scores over all nodes.
    """

    name: PodName
    uid: str
    revision: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)
    node: str = ""
    priority: int = 0
    finished: bool = False
    nominated_node: str = ""
    claims: frozenset[str] = frozenset()
    has_preferences: bool = False
