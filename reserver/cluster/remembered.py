"""What was found out before, within a bound on bytes: one large thing may be worth many."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

_GROWTH = 16
_LEAST = 1024

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """What was found out before; what was not asked for for longest is forgotten first."""

    def __init__(self, most_bytes: int) -> None:
        """Remember as much as takes so many bytes, as whoever puts it reckons."""
        self._most = most_bytes
        self._known: LRUCache[K, tuple[int, V]] = LRUCache(most_bytes, getsizeof=_size)

    @property
    def size(self) -> int:
        """What is remembered takes, in bytes."""
        return int(self._known.currsize)

    def get(self, key: K) -> V | None:
        """Return what is known, None for nothing."""
        known = self._known.get(key)
        return known[1] if known else None

    def put(self, key: K, value: V, size: int) -> None:
        """Remember something that takes so many bytes with its key; not if that is too much."""
        if size <= self._most:
            self._known[key] = (size, value)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def values(self) -> list[tuple[K, V]]:
        """Return all that is known, as it is in no order."""
        return [(key, value) for key, (_, value) in self._known.items()]


def reckoned(written: int) -> int:
    """Return about what so many bytes of JSON take in memory once they are read, themselves too."""
    return _LEAST + _GROWTH * written


def _size(known: tuple[int, object]) -> int:
    return known[0]
