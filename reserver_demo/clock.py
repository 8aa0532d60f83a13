"""Clocks as arguments, so that tests can control the time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The clock interface of the embedded cluster."""

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary time; never decreases."""

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the event loop's time, in seconds."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(seconds)


async def wait_for(event: asyncio.Event, clock: Clock, seconds: float) -> None:
    """Wait until an event is set, at most `seconds`."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def rfc3339(moment: datetime) -> str:
    """Return a time in Kubernetes' format: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> datetime:
    """Parse a time in Kubernetes' format."""
    return datetime.fromisoformat(text)
