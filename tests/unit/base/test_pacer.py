"""A long pass gives way to other work."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from itertools import count

import pytest

from reserver.base.pacer import Pacer, outcome, present_consumer


def _ticks(seconds: float) -> Iterator[float]:
    """Yield the times of a clock that advances by so many seconds per reading."""
    return (number * seconds for number in count())


def _counting(turns: int) -> Generator[None, None, int]:
    for _ in range(turns):
        yield
    return turns


async def test_a_pass_goes_on_while_its_turn_lasts() -> None:
    pacer = Pacer(0.005, _ticks(0.001).__next__)
    assert [await pacer.give_way() for _ in range(4)] == [False] * 4
    assert await pacer.give_way()
    assert not await pacer.give_way()


async def test_to_wait_is_no_work() -> None:
    now = 0.0

    async def elsewhere() -> str:
        nonlocal now
        now += 60.0
        return "came"

    pacer = Pacer(0.005, lambda: now)
    assert await pacer.awaited(elsewhere()) == "came"
    assert not await pacer.give_way()
    now += 0.006
    assert await pacer.give_way()


async def test_other_work_gets_its_turn_between_the_steps_of_a_long_decision() -> None:
    turns: list[str] = []

    async def work() -> None:
        while True:
            turns.append("work")
            await asyncio.sleep(0)

    def steps() -> Generator[None, None, int]:
        for _ in range(10):
            turns.append("step")
            yield
        return 10

    other = asyncio.create_task(work())
    assert await Pacer(0.005, _ticks(0.01).__next__).run(steps()) == 10
    other.cancel()
    assert turns.count("step") == 10
    assert "step, step" not in ", ".join(turns)


async def test_a_call_waits_for_one_turn_however_many_passes_there_are() -> None:
    turns: list[str] = []

    async def work() -> None:
        while True:
            turns.append("call")
            await asyncio.sleep(0)

    async def long_pass() -> None:
        pacer = Pacer(0.005, _ticks(0.01).__next__)
        for _ in range(20):
            await pacer.give_way()
            turns.append("pass")

    other = asyncio.create_task(work())
    async with asyncio.TaskGroup() as passes:
        for _ in range(8):
            passes.create_task(long_pass())
    other.cancel()
    assert turns.count("pass") == 8 * 20
    assert "pass, pass" not in ", ".join(turns)


async def test_a_pass_that_is_cancelled_costs_the_others_no_turn() -> None:
    async def long_pass() -> None:
        pacer = Pacer(0.005, _ticks(0.01).__next__)
        for _ in range(20):
            await pacer.give_way()

    cancelled = [asyncio.create_task(long_pass()) for _ in range(3)]
    other = asyncio.create_task(long_pass())
    await asyncio.sleep(0)
    for task in cancelled:
        task.cancel()
    await other


async def test_a_decision_that_is_cancelled_is_closed() -> None:
    closed = asyncio.Event()

    def steps() -> Generator[None, None, None]:
        try:
            while True:
                yield
        finally:
            closed.set()

    deciding = asyncio.create_task(Pacer(0.005, _ticks(0.01).__next__).run(steps()))
    await asyncio.sleep(0)
    deciding.cancel()
    await asyncio.wait([deciding])
    assert closed.is_set()


async def test_a_pass_takes_a_quarter_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    pacer = Pacer(1.0, _ticks(1.0).__next__)
    for _ in range(3):
        await pacer.give_way()  # Each worked for a second.
    await pacer.rest()
    await pacer.rest(least_s=60.0)
    assert rests == [3 * 4.0, 60.0]


def test_what_nobody_waits_for_is_decided_in_one_go() -> None:
    assert outcome(_counting(10)) == 10


async def test_a_call_of_several_steps_waits_for_one_turn_at_most() -> None:
    turns = 0

    async def long_pass() -> None:
        nonlocal turns
        pacer = Pacer(turn_s=0.0)
        while True:
            await pacer.give_way()
            turns += 1

    passes = [asyncio.create_task(long_pass()) for _ in range(3)]
    for _ in range(100):
        await asyncio.sleep(0)
    before = turns
    for _ in range(4):  # One turn each to read, decide, answer and send.
        await asyncio.sleep(0)
    assert before > 3
    assert turns - before <= 1
    for each in passes:
        each.cancel()
    await asyncio.gather(*passes, return_exceptions=True)


async def test_passes_of_many_calls_of_one_client_delay_the_pass_of_another_by_one() -> None:
    turns: list[str] = []

    async def long_pass(client: str) -> None:
        present_consumer.set(client)
        pacer = Pacer(turn_s=0.0)
        while True:
            await pacer.give_way()
            turns.append(client)

    clients = [*["greedy"] * 50, "other"]
    passes = [asyncio.create_task(long_pass(client)) for client in clients]
    for _ in range(300):
        await asyncio.sleep(0)
    assert len(turns) > 40
    assert abs(turns.count("greedy") - turns.count("other")) <= 1
    for each in passes:
        each.cancel()
    await asyncio.gather(*passes, return_exceptions=True)
