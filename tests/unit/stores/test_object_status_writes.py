"""Writes of statuses: their order, their retries and their cost."""

import asyncio
from functools import partial
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from reserver.base.pacer import Pacer
from reserver.reservations.reservation import Ref
from reserver.stores import status
from reserver.stores.object import status as object_status
from reserver.stores.object.status import SWEEP_EVERY_S
from tests.builders import node
from tests.unit.k8s.fakes import NO_ANSWER, never, refused
from tests.unit.stores.objects import World
from tests.unit.stores.test_object_cache import made


async def test_a_status_waits_until_it_may_be_written() -> None:
    """Another etcd may have taken over, whose object has the same version."""
    world = World()
    world.put(*(made(name) for name in ("a", "b", "c")))
    await world.writer.write(world.state, never)
    assert not world.client.requests
    assert len(await world.write()) == 3


@pytest.mark.parametrize("error", [NO_ANSWER, refused(500), refused(403), refused(409)])
async def test_a_write_that_fails_is_made_later_and_delays_no_other(error: Exception) -> None:
    world = World()
    world.put(made("a"), made("b"))
    assert len(await world.write(error)) == 2
    assert world.writer.writes == 1
    assert len(await world.write(later=40)) == 1
    assert await world.write(later=40) == []
    assert world.writer.writes == 2


async def test_each_that_is_refused_is_tried_again_later_and_later_and_one_line_says_why() -> None:
    world = World()
    world.put(made("a"), made("b"))
    with capture_logs() as logs:
        await world.write(refused(403), refused(403))
        assert await world.write() == []
        assert len(await world.write(refused(403), refused(403), later=1.0)) == 2
        assert await world.write(later=0.9) == []
        assert len(await world.write(later=1.1)) == 2
    assert [entry["event"] for entry in logs] == ["status cannot be written, retrying"]


async def test_an_object_that_went_meanwhile_is_passed_over() -> None:
    world = World()
    world.put(made())
    await world.write(refused(404))
    assert await world.write(later=1) == []
    world.put(made("other"))
    world.store.drop(("shop", "other"))
    assert await world.write() == []


async def test_a_status_that_somebody_wrote_is_set_right_within_a_minute() -> None:
    world = World()
    world.put(made())
    (status,) = await world.write()
    world.put(made(status=status | {"phase": "Failed"}, revision=5))
    assert await world.write(later=1) == []
    (again,) = await world.write(later=SWEEP_EVERY_S)
    assert again == status


async def test_a_thousand_at_once_are_written_once_each() -> None:
    world = World(node("worker-1", cpu="64", pods="20000"))
    world.put(*(made(f"r-{number}", resources={"cpu": "1m"}) for number in range(1000)))
    assert len(await world.write()) == 1000
    assert await world.write() == []


async def test_touched_data_keys_are_the_business_of_another_writer() -> None:
    world = World()
    world.writer.queue.add(Ref("shop", "store", "web"))
    assert await world.write() == []


async def test_a_sweep_gives_way_between_two_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.put(*(made(f"r-{number}", resources={"cpu": "1m"}) for number in range(50)))
    await world.write()
    monkeypatch.setattr(object_status, "Pacer", partial(Pacer, 0.0))  # However fast the machine is.
    depths = [world.writer.queue.depth]

    async def watch() -> None:
        while True:
            depths.append(world.writer.queue.depth)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    assert await world.write(later=SWEEP_EVERY_S) == []
    watching.cancel()
    assert max(depths) == 50
    assert max(after - before for before, after in pairwise(depths)) == 1


async def test_a_pass_takes_what_is_due_in_parts_and_not_what_comes_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status, "_TAKEN_AT_ONCE", 2)
    world = World()
    for number in range(5):
        world.writer.queue.add(Ref.of_object("shop", f"r-{number}"))
    parts: list[list[str]] = []
    for part in world.writer._due_refs():
        parts.append([ref.key for ref in part])
        world.writer.queue.add(Ref.of_object("shop", f"late-{len(parts)}"))
    assert parts == [["r-0", "r-1"], ["r-2", "r-3"], ["r-4"]]
    assert [ref.key for ref in world.writer.queue.take_all()] == ["late-1", "late-2", "late-3"]
