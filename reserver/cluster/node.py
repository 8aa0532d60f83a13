"""A node, as far as placing pods on it is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as far as placing pods on it is concerned.

    Attributes:
        name: ``metadata.name``.
        allocatable: ``status.allocatable``: millicores of cpu, base units of all else.
    """

    name: str
    allocatable: Mapping[str, int] = field(default_factory=dict)
