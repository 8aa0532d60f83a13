import asyncio

import pytest


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long was slept, which takes no time in these tests."""
    slept: list[float] = []
    yield_once = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await yield_once(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept
