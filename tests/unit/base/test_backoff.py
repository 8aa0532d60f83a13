"""Retries come later and later, and not from all clients at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.base.pacer import Backoff, pause_s


def test_it_waits_twice_as_long_each_time_up_to_an_end_and_begins_anew() -> None:
    backoff = Backoff(1.0, 5.0, chance=lambda: 1.0)
    assert [backoff.failed() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    backoff.succeeded()
    assert backoff.failed() == 1.0


@given(st.integers(1, 10_000), st.floats(0.001, 10), st.floats(0.001, 1000), st.floats(0, 1))
def test_at_most_half_of_it_is_left_off_by_chance(
    failures: int, first_s: float, last_s: float, chance: float
) -> None:
    longest = pause_s(failures, first_s, last_s, 1.0)
    assert longest <= last_s
    assert longest / 2 <= pause_s(failures, first_s, last_s, chance) <= longest


def test_who_failed_together_does_not_come_back_together() -> None:
    assert len({Backoff(1.0, 5.0).failed() for _ in range(100)}) > 90


async def test_to_sleep_counts_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("asyncio.sleep", sleep)
    backoff = Backoff(1.0, 5.0, chance=lambda: 0.0)
    await backoff.sleep()
    await backoff.sleep()
    assert slept == [0.5, 1.0]
