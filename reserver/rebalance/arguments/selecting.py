"""Which pods a strategy looks at."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.cluster.labels import EVERYTHING, Selector


@dataclass(frozen=True, slots=True)
class Choice:
    """What to look at, by name: only `include` if there is any, never `exclude`.

    Both empty chooses everything. It chooses namespaces, and kinds of owners.
    """

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Return whether a name is chosen."""
        return (not self.include or name in self.include) and name not in self.exclude


ALL = Choice()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selecting:
    """What the arguments of most strategies have in common.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at.
    """

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
