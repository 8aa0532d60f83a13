"""A long pass gives way to other work."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from itertools import count

from reserver.pacer import Pacer


def _ticks(seconds: float) -> Iterator[float]:
    """Yield a time that goes on by so many seconds at each look."""
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


async def test_other_work_gets_its_turn_between_the_steps_of_a_long_decision() -> None:
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(work())
    assert await Pacer(0.005, _ticks(0.01).__next__).run(_counting(10)) == 10
    other.cancel()
    assert turns == 10
