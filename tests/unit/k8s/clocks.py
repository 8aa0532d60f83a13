"""Time that passes only when a test lets it, for work queues."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from reserver.k8s.work_queue import WorkQueue


class Alarm:
    """A callback, and its time in seconds."""

    def __init__(self, time: "ManualTime", at: float, callback: Callable[..., Any]) -> None:
        self.at, self.ring = at, callback
        self._time = time

    def cancel(self) -> None:
        if self in self._time.alarms:
            self._time.alarms.remove(self)


class ManualTime:
    """A clock that a test advances.

    Attributes:
        now: seconds.
        alarms: the callbacks that are not due yet.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[Alarm] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., Any], /) -> Alarm:
        self.alarms.append(Alarm(self, self.now + delay, callback))
        return self.alarms[-1]

    async def settle(self) -> None:
        """Run all tasks that wait for no time."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def go_by(self, seconds: float) -> None:
        """Advance the clock by seconds, and run the callbacks that become due."""
        end = self.now + seconds
        await self.settle()
        while self.alarms and min(alarm.at for alarm in self.alarms) <= end:
            due = min(self.alarms, key=lambda alarm: alarm.at)
            due.cancel()
            self.now = max(self.now, due.at)
            due.ring()
            await self.settle()
        self.now = end


async def worked_off(running: Coroutine[Any, Any, None], queue: WorkQueue[Any]) -> None:
    """Run a worker until the queue has nothing due at the present time."""
    task = asyncio.create_task(running)
    while not task.done() and (queue._given or queue.has_some()):  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
