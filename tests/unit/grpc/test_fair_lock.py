"""Creations are decided one at a time, those of each consumer in turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reserver.base.pacer import present_consumer
from reserver.grpc.concurrency import FairLock
from reserver.grpc.creation import Creation
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW, state_of
from tests.unit.extender.fakes import FakeReadiness
from tests.unit.grpc.services import Nothing

GREEDY, OTHER = "system:serviceaccount:greedy", "system:serviceaccount:shop"


async def test_a_creation_waits_for_one_of_another_consumer_however_many_it_has_sent() -> None:
    decided: list[str] = []

    class Slow(Creation):
        async def _decide(self, *_: Any) -> Any:
            decided.append(present_consumer.get())
            await asyncio.sleep(0)

        async def _finish(self, *_: Any) -> Any:
            return [pb.Reservation()]

    nothing: Any = Nothing()
    creation = Slow(state_of(), lambda: NOW, nothing, nothing, FakeReadiness())

    async def create(user: str, number: int) -> None:
        present_consumer.set(user)
        await creation.one(pb.CreateRequest(name=f"one-{number}"))

    users = [*[GREEDY] * 50, OTHER]
    await asyncio.gather(*(create(user, number) for number, user in enumerate(users)))
    assert len(decided) == len(users)
    assert decided.index(OTHER) <= 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_the_lock_is_held_by_one_and_passed_on_whoever_gives_up(calls: list[Any]) -> None:
    async def scene() -> None:
        lock, inside, had = FairLock(), set[int](), set[int]()

        async def hold(number: int, consumer: str) -> None:
            present_consumer.set(consumer)
            async with lock.held():
                assert not inside
                inside.add(number)
                had.add(number)
                try:
                    await asyncio.sleep(0)
                finally:
                    inside.discard(number)

        tasks = [asyncio.create_task(hold(n, consumer)) for n, (consumer, _) in enumerate(calls)]
        for task, (_, gives_up) in zip(tasks, calls, strict=True):
            await asyncio.sleep(0)
            if gives_up:
                task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert had >= {number for number, (_, gives_up) in enumerate(calls) if not gives_up}
        async with asyncio.timeout(5), lock.held():
            pass

    asyncio.run(scene())
