"""The work queue: works on keys, bounded by parallel groups or by share of time.

The rules of client-go apply (util/workqueue, docs/adr/0024): a key that is added twice is given
once; a key in work is given again only when that ends; a failed key is given again later, with
growing delays. Two rules are Reserver's: keys of one group are given together, and while the API
server is away no key is given.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Generic, Protocol, TypeVar, cast

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

LATER = Backoff(1.0, 30.0)
"""Default back-off of a key that has failed, in seconds."""

AWAY = Backoff(0.2, 5.0)
"""Pauses of the queue while the API server is down, in seconds."""


class Time(Protocol):
    """The part of an event loop that the queue uses."""

    def time(self) -> float:
        """Return seconds."""

    def call_later(self, delay: float, callback: Callable[..., Any], /) -> Any:  # noqa: ANN401 - asyncio.TimerHandle or a test's
        """Call a function after a delay in seconds; return a handle with `cancel`."""


@dataclass(slots=True)
class _Failure:
    """The back-off of a failed operation, and the moment from which it may be retried."""

    what: object
    backoff: Backoff
    until: float


class Keys(Generic[K]):
    """The keys to give at a moment.

    No key, and no group, is given twice at once; no key that was added is lost, unless it is
    discarded; and groups are given in the order in which they were added, hastened ones first.
    """

    def __init__(
        self,
        backoff: Backoff,
        clock: Callable[[], float],
        group: Callable[[K], Hashable] = lambda key: key,
        most: int | None = None,
    ) -> None:
        """Begin empty; keys of one group are given together, and to one worker at a time.

        The clock returns seconds, and does not go back. Of a group at most `most` keys are given;
        the rest waits behind the other groups.
        """
        self._backoff = backoff
        self._clock = clock
        self._group = group
        self._most = most
        # A group without keys is itself the key.
        self._ready: OrderedDict[Hashable, OrderedDict[K, None] | None] = OrderedDict()
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

    def add(self, key: K, after_s: float = 0.0) -> None:
        """Add a key, due in at most `after_s` seconds; returns at once."""
        if after_s <= 0:
            self._ready_now(key)
        elif (at := self._clock() + after_s) < self._moments.get(key, inf):
            self._give_at(key, at)

    def hasten(self, key: K) -> None:
        """Give the group of a key before all others, if the group is ready."""
        if (group := self._group(key)) in self._ready:
            self._ready.move_to_end(group, last=False)

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

    def take(self, at_once: int) -> list[K]:
        """Give the keys of one group, until `done`; none if `at_once` groups are given already."""
        if self.has_some() and len(self._given) < at_once:
            for group in self._ready:
                if group not in self._given:
                    self._given.add(group)
                    keys = self._ready.pop(group)
                    if not keys or self._most is None or len(keys) <= self._most:
                        return list(keys or (cast("K", group),))
                    self._ready[group] = keys
                    return [keys.popitem(last=False)[0] for _ in range(self._most)]
        return []

    def take_all(self, most: int | None = None) -> list[K]:
        """Return the keys that are due, of at most `most` groups, and count them as done."""
        if not self.has_some():
            return []
        ready = self._ready
        if most is None or len(ready) <= most:
            self._ready = OrderedDict()
            return [key for group, keys in ready.items() for key in keys or (cast("K", group),)]
        taken = (ready.popitem(last=False) for _ in range(most))
        return [key for group, keys in taken for key in keys or (cast("K", group),)]

    def done(self, key: K) -> None:
        """Mark the group of a key as free to be given again."""
        self._given.discard(self._group(key))

    def put_off(self, key: K, what: object, most_s: float = inf) -> int:
        """Give a key again after its back-off; return the failures in a row of the same `what`."""
        self.has_some()  # Keys that are due now stay due.
        before = self._failures.get(key)
        is_again = before is not None and before.what == what
        backoff = before.backoff if before and is_again else replace(self._backoff)
        until = self._clock() + min(backoff.failed(), most_s)
        self._failures[key] = _Failure(what, backoff, until)
        self._give_at(key, until)
        return backoff.failures

    def rests(self, key: K, what: object = None) -> bool:
        """Return whether `what` failed for a key, and may not be retried yet."""
        failure = self._failures.get(key)
        return failure is not None and failure.what == what and self._clock() < failure.until

    def succeeded(self, key: K) -> None:
        """Reset the failures of a key."""
        self._failures.pop(key, None)

    def has_some(self) -> bool:
        """Return whether there is a key to give; keys that are due now join their group."""
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            at, _, key = heappop(self._later)
            if self._moments.get(key) == at:
                del self._moments[key]
                self._ready_now(key)
        return bool(self._ready) and now >= self._held_until

    def wait_s(self) -> float:
        """Return the seconds until the next delayed key is due; inf for none."""
        now, at = self._clock(), self._later[0][0] if self._later else inf
        return (min(at, self._held_until) if self._ready and now < self._held_until else at) - now

    def _ready_now(self, key: K) -> None:
        group = self._group(key)
        if group is key:  # The usual case; a dict for each key would double the memory.
            self._ready.setdefault(group, None)
            return
        if (keys := self._ready.get(group)) is None:
            keys = self._ready[group] = OrderedDict()
        keys[key] = None

    def _give_at(self, key: K, at: float) -> None:
        self._moments[key] = at
        heappush(self._later, (at, next(self._numbers), key))
        if len(self._later) > 2 * len(self._moments):  # Void ones may lie years ahead.
            self._later = sorted((at, next(self._numbers), k) for k, at in self._moments.items())


class WorkQueue(Keys[K]):
    """Works on keys, with a bound on parallel groups or on the share of time.

    Attributes:
        name: name of the queue, for the log and for metrics.
    """

    def __init__(
        self,
        name: str,
        backoff: Backoff = LATER,
        *,
        group: Callable[[K], Hashable] = lambda key: key,
        most: int | None = None,
        time: Time | None = None,
    ) -> None:
        """Begin empty; without `time` the queue uses the event loop's clock."""
        clock = lambda: self._loop.time()  # noqa: E731, PLW0108 - it runs later
        super().__init__(backoff, clock, group, most)
        self.name = name
        self._time = time
        self._away = replace(AWAY, chance=backoff.chance)
        self._changed = asyncio.Event()

    def add(self, key: K, after_s: float = 0.0) -> None:
        """Add a key, due in at most `after_s` seconds; returns at once."""
        super().add(key, after_s)
        self._changed.set()

    def failed(
        self, key: K, error: ApiError | None = None, what: object = None, most_s: float = inf
    ) -> int:
        """Add a key again after its back-off; return the failures in a row.

        Args:
            key: the key.
            error: the error. If the API server is down, its failures count, not those of the key.
            what: the operation that failed; another one resets the back-off.
            most_s: longest wait, in seconds.
        """
        self._changed.set()
        if error is None or not error.is_away:
            return self.put_off(key, what, most_s)
        self.add(key)
        if (now := self._clock()) >= self._held_until:  # Else an earlier request has set it.
            self._held_until = now + self._away.failed()
        return self._away.failures

    def succeeded(self, key: K) -> None:
        """Reset the failures of a key."""
        self._away.succeeded()
        super().succeeded(key)

    def take(self, at_once: int) -> list[K]:
        """Return the keys of one group; while the API server is away, only one group at a time."""
        return super().take(1 if self._away.failures else at_once)

    async def run(self, work: Callable[[list[K]], Awaitable[None]], at_once: int = 1) -> None:
        """Work on the keys until cancelled, on at most `at_once` groups at a time."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                keys = await self._until(partial(self.take, at_once))
                tasks.create_task(self._work(keys, work))

    async def passes(self, look: Callable[[Pacer], Awaitable[None]], least_s: float = 0.0) -> None:
        """Make a pass whenever there are keys, for at most a quarter of the time.

        A pass yields by its pacer; after it the queue rests for at least `least_s` seconds.
        """
        while True:
            await self._until(self.has_some)
            pacer = Pacer()
            with quarantined("pass", self.name):
                await look(pacer)
            await pacer.rest(least_s)

    @property
    def _loop(self) -> Time:
        return self._time or asyncio.get_running_loop()

    async def _work(self, keys: list[K], work: Callable[[list[K]], Awaitable[None]]) -> None:
        try:
            with quarantined("pass", self.name) as faults:
                await work(keys)
            if faults:
                for key in keys:
                    self.failed(key)
        finally:
            self.done(keys[0])
            self._changed.set()

    async def _until(self, look: Callable[[], T]) -> T:
        """Wait until `look` returns a true value, and return the value."""
        while not (found := look()):
            self._changed.clear()
            wait_s = self.wait_s()
            timer = self._loop.call_later(wait_s, self._changed.set) if wait_s < inf else None
            await self._changed.wait()
            if timer is not None:
                timer.cancel()
        return found
