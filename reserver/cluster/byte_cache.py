"""A cache bounded by bytes, not by entries: one large entry may displace many small ones."""

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
    """A cache that evicts the least recently used entry."""

    def __init__(self, most_bytes: int) -> None:
        """Cache up to `most_bytes` bytes, by the sizes that callers give."""
        self._most = most_bytes
        self._entries: LRUCache[K, tuple[int, V]] = LRUCache(most_bytes, getsizeof=_size)

    @property
    def size(self) -> int:
        """Bytes in use."""
        return int(self._entries.currsize)

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if it is not cached."""
        try:
            return self._entries[key][1]
        except KeyError:  # `LRUCache.get` looks up the key twice.
            return None

    def put(self, key: K, value: V, size: int) -> None:
        """Cache a value that takes `size` bytes with its key, unless that exceeds the bound."""
        if size <= self._most:
            self._entries[key] = (size, value)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def values(self) -> list[tuple[K, V]]:
        """Return all keys with their values, in no order."""
        return [(key, value) for key, (_, value) in self._entries.items()]


@lru_cache(_NAMES)
def same(name: str) -> str:
    """Return an equal string that was used lately: thousands of pods name the same node.

    Names have at most 253 characters, so the cache takes a few megabytes. CPython 3.12 never frees
    a string that `sys.intern` was given.
    """
    return name


def reckoned(written: int) -> int:
    """Estimate the memory of so many bytes of JSON and of the value decoded from them, in bytes."""
    return _LEAST + _GROWTH * written


def _size(entry: tuple[int, object]) -> int:
    return entry[0]
