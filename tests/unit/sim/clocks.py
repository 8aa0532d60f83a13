"""A clock that tests drive."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._slept = asyncio.Condition()

    def now(self) -> datetime:
        return START + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._passed + seconds, wake))
        async with self._slept:
            self._slept.notify_all()
        await wake

    async def asleep(self, seconds: float) -> None:
        """Wait until a task sleeps that is due in so many seconds."""
        due = self._passed + seconds
        async with self._slept:
            await self._slept.wait_for(lambda: any(d == due for d, w in self._alive()))

    def _alive(self) -> list[tuple[float, asyncio.Future[None]]]:
        return [(due, wake) for due, wake in self._sleepers if not wake.done()]

    def advance(self, seconds: float) -> None:
        """Advance the clock by seconds, and wake the tasks that are due."""
        self._passed += seconds
        for due, wake in self._alive():
            if due <= self._passed:
                wake.set_result(None)
        self._sleepers = self._alive()
