"""A unit test that takes a minute hangs; Hypothesis draws as for `tests/property`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.drawing import load_profile

load_profile()

LIMIT_S = 60
FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("unit")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds of each `asyncio.sleep`, which takes no time in these tests."""
    slept: list[float] = []
    yield_once = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await yield_once(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept
