"""A cache bounded by bytes, not by entries: one large entry may take as much as many small ones."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Generic, TypeVar

from cachetools import LRUCache

_GROWTH = 16
_LEAST = 1024
_NAMES = 2**14

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """A cache that forgets what was used least recently."""

    def __init__(self, most_bytes: int) -> None:
        """Remember up to `most_bytes`, by the sizes that callers give."""
        self._most = most_bytes
        self._known: LRUCache[K, tuple[int, V]] = LRUCache(most_bytes, getsizeof=_size)

    @property
    def size(self) -> int:
        """How many bytes are in use."""
        return int(self._known.currsize)

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if it is not remembered."""
        try:
            return self._known[key][1]
        except KeyError:  # `LRUCache.get` looks twice.
            return None

    def put(self, key: K, value: V, size: int) -> None:
        """Remember a value that takes `size` bytes with its key, unless that exceeds the bound."""
        if size <= self._most:
            self._known[key] = (size, value)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def values(self) -> list[tuple[K, V]]:
        """Return keys and values, in no order."""
        return [(key, value) for key, (_, value) in self._known.items()]


@lru_cache(_NAMES)
def same(name: str) -> str:
    """Return a name as the object that it was lately: thousands may be on the same node.

    Names have 253 characters at most, so these are a few megabytes. What `sys.intern` is given,
    CPython 3.12 never frees.
    """
    return name


def reckoned(written: int) -> int:
    """Estimate what so many bytes of JSON and the value read from them take in memory."""
    return _LEAST + _GROWTH * written


def _size(known: tuple[int, object]) -> int:
    return known[0]
