"""A set of keys to work on; each key is in it once, however often it is added.

The rules of client-go apply (util/workqueue, docs/adr/0024): a key that is added twice is given
once; a key in work is given again only when that ends; a failed key is given again later, with
growing delays. Two rules are Reserver's: keys of one group are given together, and while the API
server is away no key is given. This module is pure: moments are arguments.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Generic, TypeVar, cast

from reserver.base.pacer import Backoff

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Failure:
    """The back-off of a key that failed.

    Attributes:
        what: the operation that failed.
        backoff: its delays.
        until: the moment from which it may be retried.
    """

    what: object
    backoff: Backoff
    until: float


class Keys(Generic[K]):
    """The keys to give at a moment. Moments are seconds of any clock that does not go back.

    No key, and no group, is given twice at once; no key that was added is lost, unless it is
    discarded; and groups are given in the order in which they were added.
    """

    def __init__(self, backoff: Backoff, group: Callable[[K], Hashable] = lambda key: key) -> None:
        """Begin empty; keys of one group are given together, and to one worker at a time."""
        self._backoff = backoff
        self._group = group
        self._ready: OrderedDict[Hashable, dict[K, None] | None] = OrderedDict()  # None: the key.
        self._given: set[Hashable] = set()
        self._later: list[tuple[float, int, K]] = []  # A heap.
        self._moments: dict[K, float] = {}  # Other entries of the heap are void.
        self._numbers = count()
        self._failures: dict[K, _Failure] = {}
        self._held_until = -inf

    @property
    def depth(self) -> int:
        """Number of groups that are given, or can be given without delay."""
        return len(self._ready) + sum(group not in self._ready for group in self._given)

    def add(self, key: K, at: float = -inf) -> None:
        """Give a key at a moment, or at its earlier moment if it has one."""
        if at == -inf:
            self._ready_now(key)
        elif at < self._moments.get(key, inf):
            self._give_at(key, at)

    def is_delayed(self, key: K) -> bool:
        """Return whether a key waits for a moment, and is not ready."""
        group = self._group(key)
        is_ready = group in self._ready and key in (self._ready[group] or (group,))
        return key in self._moments and not is_ready

    def discard(self, key: K) -> None:
        """Remove a key and its failures."""
        group = self._group(key)
        waiting = self._ready.get(group)
        if waiting is not None:
            waiting.pop(key, None)
        if not waiting:
            self._ready.pop(group, None)
        self._moments.pop(key, None)
        self._failures.pop(key, None)

    def take(self, now: float, at_once: int) -> list[K]:
        """Give the keys of one group, until `done`; none if `at_once` groups are given already."""
        if self.has_some(now) and len(self._given) < at_once:
            for group in self._ready:
                if group not in self._given:
                    self._given.add(group)
                    return _of(group, self._ready.pop(group))
        return []

    def take_all(self, now: float, most: int | None = None) -> list[K]:
        """Give all keys of at most `most` groups, and count them as done.

        The caller works on them one by one.
        """
        if not self.has_some(now):
            return []
        ready = self._ready
        if most is None or len(ready) <= most:
            self._ready = OrderedDict()
            return [key for group, keys in ready.items() for key in _of(group, keys)]
        taken = (ready.popitem(last=False) for _ in range(most))
        return [key for group, keys in taken for key in _of(group, keys)]

    def done(self, key: K) -> None:
        """Mark the group of a key as free to be given again."""
        self._given.discard(self._group(key))

    def failed(self, key: K, what: object, now: float, most_s: float = inf) -> int:
        """Give a key again after its back-off; return the failures in a row of the same `what`.

        Another `what` than before resets the back-off.
        """
        self.has_some(now)  # Keys that are due now stay due.
        before = self._failures.get(key)
        is_again = before is not None and before.what == what
        backoff = before.backoff if before and is_again else replace(self._backoff)
        until = now + min(backoff.failed(), most_s)
        self._failures[key] = _Failure(what, backoff, until)
        self._give_at(key, until)
        return backoff.failures

    def rests(self, key: K, what: object, now: float) -> bool:
        """Return whether `what` failed for a key, and may not be retried yet."""
        failure = self._failures.get(key)
        return failure is not None and now < failure.until and failure.what == what

    def succeeded(self, key: K) -> None:
        """Reset the failures of a key."""
        self._failures.pop(key, None)

    def hold(self, until: float) -> None:
        """Give no key before a moment."""
        self._held_until = until

    def is_held(self, now: float) -> bool:
        """Return whether all keys are held back."""
        return now < self._held_until

    def has_some(self, now: float) -> bool:
        """Return whether there is a key to give; keys that are due now join their group."""
        while self._later and self._later[0][0] <= now:
            at, _, key = heappop(self._later)
            if self._moments.get(key) == at:
                del self._moments[key]
                self.add(key)
        return bool(self._ready) and not self.is_held(now)

    def next_at(self, now: float) -> float:
        """Return the moment of the next delayed key; inf for none."""
        held = self._held_until if self._ready and self.is_held(now) else inf
        return min(held, self._later[0][0] if self._later else inf)

    def _ready_now(self, key: K) -> None:
        group = self._group(key)
        if group is key:  # The usual case; a dict for each key would double the memory.
            self._ready.setdefault(group, None)
            return
        keys = self._ready.get(group)
        if keys is None:
            self._ready[group] = {key: None}
        else:
            keys[key] = None

    def _give_at(self, key: K, at: float) -> None:
        self._moments[key] = at
        heappush(self._later, (at, next(self._numbers), key))


def _of(group: Hashable, keys: dict[K, None] | None) -> list[K]:
    """Return the keys of a group; a group without a dict is itself the key."""
    return list(keys) if keys is not None else [cast("K", group)]
