"""A Reserver writes a set while others start: each order of their requests and watch events.

In the end the set is whole and acknowledged, or nothing is left of it, whichever Reserver dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import pytest

from tests.integration.interleaving import Reserver, Server

Choose = Callable[[int], int]
"""Returns which of so many turns is next."""

_ROUNDS = 6
"""Rounds of the event loop after which no task can go on by itself."""


class Play:
    """One order of requests, watch events, starts and ends.

    Attributes:
        api: the API server.
        writer: the Reserver that writes a set.
        others: the Reservers that have started meanwhile.
    """

    def __init__(
        self,
        choose: Choose,
        keys: str,
        *,
        lags: bool = False,
        dies: bool = False,
        meets: bool = True,
    ) -> None:
        """Play the order that `choose` picks.

        Args:
            choose: returns the index of the next turn.
            keys: of the set.
            lags: watches may show changes late.
            dies: the writer may die.
            meets: another one may start while it lives.
        """
        self.choose, self.keys = choose, keys
        self.lags, self.dies, self.meets = lags, dies, meets
        self.api = Server()
        self.others: list[Reserver] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self.writer = Reserver(self.api, tasks)
            self.writer.insert(self.keys)
            await self._go_on(tasks, is_first=True)
            if self.writer.writing is None or self.writer.writing.cancelled():
                self._start(tasks)
                await self._go_on(tasks, is_first=False)
            self._judge()
            for each in (self.writer, *self.others):
                each.die(is_lost=True)

    async def _go_on(self, tasks: asyncio.TaskGroup, *, is_first: bool) -> None:
        """Take turns until no Reserver has one."""
        while True:
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            reservers = (self.writer, *self.others)
            if not self.lags and sum(map(self._catch_up, reservers)):
                continue
            turns = [turn for each in reservers for turn in each.turns()]
            if is_first and self.meets and not self.others:
                turns.append(partial(self._start, tasks))
            if is_first and self.dies and not self._is_dead:
                ways = (True, False) if self.writer.pending else (True,)
                turns += [partial(self.writer.die, is_lost=is_lost) for is_lost in ways]
            if not turns:
                return
            turns[self.choose(len(turns))]()

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        self.others.append(Reserver(self.api, tasks))
        self.others[-1].start()

    @property
    def _is_dead(self) -> bool:
        return self.writer.cleaning.cancelled()

    @staticmethod
    def _catch_up(reserver: Reserver) -> bool:
        if reserver.shown == len(reserver.api.events) or reserver.cleaning.cancelled():
            return False
        reserver.see()
        return True

    def _judge(self) -> None:
        writing, there = self.writer.writing, set(self.api.items)
        assert writing is not None
        if self._is_dead:
            assert there in (set(), set(self.keys))
        else:
            assert there == (set(self.keys) if writing.result() is None else set())
        assert not any(
            "annotations" in item["metadata"] and item["metadata"]["annotations"]
            for item in self.api.items.values()
        )


def every(most: int) -> Iterator[Choose]:
    """Yield a chooser for each order, once."""
    chosen: list[int] = []
    for _ in range(most):
        numbers: list[int] = []

        def choose(number: int, numbers: list[int] = numbers) -> int:
            at = len(numbers)
            numbers.append(number)
            if at == len(chosen):
                chosen.append(0)
            return chosen[at]

        yield choose
        while chosen and chosen[-1] + 1 == numbers[len(chosen) - 1]:
            chosen.pop()
        if not chosen:
            return
        chosen[-1] += 1
    pytest.fail("there are more orders")


async def test_a_set_is_finished_or_taken_back_in_every_order_of_the_requests() -> None:
    orders = 0
    for choose in every(most=5_000):
        await Play(choose, "ab").run()
        orders += 1
    assert orders > 20


async def test_a_set_whose_writer_dies_is_finished_or_taken_back_in_every_order() -> None:
    orders = 0
    for choose in every(most=5_000):
        await Play(choose, "ab", dies=True, meets=False).run()
        orders += 1
    assert orders > 10


@pytest.mark.parametrize("seed", range(200))
async def test_a_set_is_finished_or_taken_back_however_far_watches_are_behind(seed: int) -> None:
    random = Random(seed)
    await Play(random.randrange, "abc", lags=True, dies=seed % 2 == 0).run()
