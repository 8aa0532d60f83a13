"""Whole nodes, as the client has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Nodes:
    """Whole nodes.

    Attributes:
        count: how many.
        selector: labels that each of them has to have.
    """

    count: int
    selector: Mapping[str, str] = field(default_factory=dict)
