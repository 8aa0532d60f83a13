"""The work queue: works on keys (`work_keys`), bounded in how many at once or for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from reserver.base.pacer import Backoff, Pacer
from reserver.base.quarantine import quarantined
from reserver.errors import ApiError
from reserver.k8s.work_keys import K, Keys

T = TypeVar("T")

LATER = Backoff(1.0, 30.0)
"""How long a key waits that has failed, unless somebody knows better."""

AWAY = Backoff(0.2, 5.0)
"""How long the queue pauses when the API server is down."""


class Timer(Protocol):
    """A callback that is due later."""

    def cancel(self) -> None:
        """Do not do it."""


class Time(Protocol):
    """The part of an event loop that the queue needs."""

    def time(self) -> float:
        """Return seconds."""

    def call_later(self, delay: float, callback: Callable[..., Any], /) -> Timer:
        """Call a function after a delay in seconds."""


class WorkQueue(Generic[K]):
    """Works on keys, with a bound on how many at once or on the share of time.

    Attributes:
        name: of who works, for the log and for metrics.
    """

    def __init__(
        self,
        name: str,
        backoff: Backoff = LATER,
        *,
        group: Callable[[K], Hashable] = lambda key: key,
        time: Time | None = None,
    ) -> None:
        """Begin empty; keys of one group are given together, and to one at a time.

        Without `time` that of the event loop passes.
        """
        self.name = name
        self._time = time
        self._keys = Keys(backoff, group)
        self._away = replace(AWAY, chance=backoff.chance)
        self._changed = asyncio.Event()

    @property
    def depth(self) -> int:
        """How many groups of keys are worked on, or wait only for their turn."""
        return self._keys.depth

    def add(self, key: K, after_s: float = 0.0) -> None:
        """Add a key, due in at most so many seconds; returns at once."""
        self._keys.add(key, self._now + after_s if after_s > 0 else -inf)
        self._changed.set()

    def discard(self, key: K) -> None:
        """Remove a key, and forget its failures."""
        self._keys.discard(key)

    def is_delayed(self, key: K) -> bool:
        """Return whether a key waits for a moment, and not for its turn only."""
        return self._keys.is_delayed(key)

    def take_all(self, most: int | None = None) -> list[K]:
        """Return all keys that are due, of so many groups at most, for one pass."""
        return self._keys.take_all(self._now, most)

    def failed(
        self, key: K, error: ApiError | None = None, what: object = None, most_s: float = inf
    ) -> int:
        """Add a key again after its back-off; return how often it has failed in a row.

        Args:
            error: why it failed. If the API server is down, that is no failure of the key.
            what: what failed; for something else the back-off starts over.
            most_s: how long to wait at most, in seconds.
        """
        self._changed.set()
        if error is None or not error.is_away:
            return self._keys.failed(key, what, self._now, most_s)
        self._keys.add(key)
        if not self._keys.is_held(self._now):  # Else one who asked before has found out.
            self._keys.hold(self._now + self._away.failed())
        return self._away.failures

    def rests(self, key: K, what: object = None) -> bool:
        """Return whether the same has failed, and may not be tried again yet."""
        return self._keys.rests(key, what, self._now)

    def succeeded(self, key: K) -> None:
        """Forget how often a key has failed."""
        self._away.succeeded()
        self._keys.succeeded(key)

    async def run(self, work: Callable[[list[K]], Awaitable[None]], at_once: int = 1) -> None:
        """Work on the keys until cancelled, on so many groups at once."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                keys = await self._until(partial(self._take, at_once))
                tasks.create_task(self._work(keys, work))

    async def passes(self, look: Callable[[Pacer], Awaitable[None]], least_s: float = 0.0) -> None:
        """Make a pass whenever there are keys, for a quarter of the time at most.

        A pass gives way by its pacer; after it comes a rest of `least_s` seconds at least.
        """
        while True:
            await self._until(self._keys.has_some)
            pacer = Pacer()
            with quarantined("pass", self.name):
                await look(pacer)
            await pacer.rest(least_s)

    @property
    def _loop(self) -> Time:
        return self._time or asyncio.get_running_loop()

    @property
    def _now(self) -> float:
        return self._loop.time()

    def _take(self, at_once: int, now: float) -> list[K]:
        """Return what may be worked on now; while the API server is away, one asks for all."""
        return self._keys.take(now, 1 if self._away.failures else at_once)

    async def _work(self, keys: list[K], work: Callable[[list[K]], Awaitable[None]]) -> None:
        try:
            with quarantined("pass", self.name) as faults:
                await work(keys)
            if faults:
                for key in keys:
                    self.failed(key)
        finally:
            self._keys.done(keys[0])
            self._changed.set()

    async def _until(self, look: Callable[[float], T]) -> T:
        """Wait until there is something to be seen, and return it."""
        while True:
            now = self._now
            if found := look(now):
                return found
            self._changed.clear()
            at = self._keys.next_at(now)
            timer = self._loop.call_later(at - now, self._changed.set) if at < inf else None
            await self._changed.wait()
            if timer is not None:
                timer.cancel()
