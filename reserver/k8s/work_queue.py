"""The work queue: works on keys (`work_keys`), bounded by parallel groups or by share of time."""

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
"""Default back-off of a key that has failed, in seconds."""

AWAY = Backoff(0.2, 5.0)
"""Pauses of the queue while the API server is down, in seconds."""


class Timer(Protocol):
    """A callback that is due later."""

    def cancel(self) -> None:
        """Cancel the callback."""


class Time(Protocol):
    """The part of an event loop that the queue uses."""

    def time(self) -> float:
        """Return seconds."""

    def call_later(self, delay: float, callback: Callable[..., Any], /) -> Timer:
        """Call a function after a delay in seconds."""


class WorkQueue(Generic[K]):
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
        time: Time | None = None,
    ) -> None:
        """Begin empty; keys of one group are given together, and to one worker at a time.

        Without `time` the queue uses the event loop's clock.
        """
        self.name = name
        self._time = time
        self._keys = Keys(backoff, group)
        self._away = replace(AWAY, chance=backoff.chance)
        self._changed = asyncio.Event()

    @property
    def depth(self) -> int:
        """Number of groups that are worked on, or ready for work."""
        return self._keys.depth

    def add(self, key: K, after_s: float = 0.0) -> None:
        """Add a key, due in at most `after_s` seconds; returns at once."""
        self._keys.add(key, self._now + after_s if after_s > 0 else -inf)
        self._changed.set()

    def discard(self, key: K) -> None:
        """Remove a key and its failures."""
        self._keys.discard(key)

    def is_delayed(self, key: K) -> bool:
        """Return whether a key waits for a moment, and is not ready."""
        return self._keys.is_delayed(key)

    def take_all(self, most: int | None = None) -> list[K]:
        """Return the keys that are due, of at most `most` groups, for one pass."""
        return self._keys.take_all(self._now, most)

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
            return self._keys.failed(key, what, self._now, most_s)
        self._keys.add(key)
        if not self._keys.is_held(self._now):  # Else an earlier request has held the keys already.
            self._keys.hold(self._now + self._away.failed())
        return self._away.failures

    def rests(self, key: K, what: object = None) -> bool:
        """Return whether `what` failed for a key, and may not be retried yet."""
        return self._keys.rests(key, what, self._now)

    def succeeded(self, key: K) -> None:
        """Reset the failures of a key."""
        self._away.succeeded()
        self._keys.succeeded(key)

    async def run(self, work: Callable[[list[K]], Awaitable[None]], at_once: int = 1) -> None:
        """Work on the keys until cancelled, on at most `at_once` groups at a time."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                keys = await self._until(partial(self._take, at_once))
                tasks.create_task(self._work(keys, work))

    async def passes(self, look: Callable[[Pacer], Awaitable[None]], least_s: float = 0.0) -> None:
        """Make a pass whenever there are keys, for at most a quarter of the time.

        A pass yields by its pacer; after it the queue rests for at least `least_s` seconds.
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
        """Return the keys of one group; while the API server is away, only one group at a time."""
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
        """Wait until `look` returns a true value, and return the value."""
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
