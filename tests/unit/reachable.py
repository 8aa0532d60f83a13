"""The sizes of all containers that can be reached from an object."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from cachetools import Cache

from reserver.base.fairness import FairMemory
from reserver.cluster import headroom
from reserver.process.hold_metrics import MOST_NAMESPACES
from reserver.reservations.accounts import MOST_OWNERS, MOST_WEEKS, Accounts
from reserver.stores.archive import SHARD_BYTES, SHARDS, Archive

SPARE_TURNS = 10
SPARE_ENTRIES = 10
BOUNDED = {
    "_turns": SPARE_TURNS + 4 * 10,
    "_wait_queue": SPARE_ENTRIES + 2 * 10 + 1,
    "_changed": headroom._MOST_CHANGES,
    "_core_seconds": MOST_NAMESPACES + 1,
    "_refused_at": MOST_NAMESPACES + 2 * 10,
}
"""The bounds of collections that do not shrink at once, by name."""


def sizes(thing: object) -> dict[str, int]:
    """Return the size of each container that can be reached from an object, by its path.

    Caches and the archive, which are bounded, are passed over.
    """
    found: dict[str, int] = {}
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [("", thing)]
    while todo:
        path, one = todo.pop()
        if id(one) in seen or isinstance(one, str | bytes | type) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            found[path] = found.get(path, 0) + one.size
            continue
        if isinstance(one, asyncio.Queue):
            found[path] = found.get(path, 0) + one.qsize()
            continue
        if isinstance(one, Archive | Accounts | Cache | FairMemory):
            check_bound(one, path)
            continue
        bound = BOUNDED.get(path.rpartition(".")[2])
        if bound is not None and isinstance(one, list | dict):
            assert len(one) <= bound, path
            continue
        todo += ((f"{path}.{name}", value) for name, value in attributes(one))
        if isinstance(one, Mapping):
            found[path] = found.get(path, 0) + len(one)
            todo += ((f"{path}[]", value) for value in tuple(one.values()))
        elif isinstance(one, list | tuple | set | frozenset):
            found[path] = found.get(path, 0) + len(one)
            todo += ((f"{path}[]", value) for value in one)
    return found


def check_bound(
    one: Archive | Accounts | Cache[Any, Any] | FairMemory[Any, Any], path: str
) -> None:
    if isinstance(one, Archive):
        assert max(map(one.size, range(SHARDS))) <= SHARD_BYTES, path
    elif isinstance(one, Accounts):
        assert len(list(one)) <= MOST_WEEKS * (MOST_OWNERS + 1) * 2, path
    elif isinstance(one, FairMemory):
        assert len(one) == sum(map(len, one._of.values())) <= one._most, path
    else:
        assert one.maxsize < float("inf"), path


def attributes(thing: object) -> Iterator[tuple[str, object]]:
    if not type(thing).__module__.startswith("reserver"):
        return
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(thing, name):
                yield name, getattr(thing, name)
