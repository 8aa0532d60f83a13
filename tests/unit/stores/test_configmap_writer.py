"""Reservations that are written into ConfigMaps: several keys in one request."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.errors import Taken
from reserver.reservations.reservation import Ref
from reserver.stores.writer import MOST_BYTES
from tests.unit.k8s.fakes import NO_ANSWER, OVERTAKEN
from tests.unit.stores.desks import HOME, LABELS, KeyDesk, configmap, text
from tests.waiting import until

Make = Callable[..., KeyDesk]


@pytest.fixture
async def desk() -> AsyncIterator[Make]:
    async with asyncio.TaskGroup() as tasks:
        yield lambda *script: KeyDesk(tasks, *script)


async def test_the_first_keys_of_a_configmap_are_written_all_or_none(desk: Make) -> None:
    made = desk(configmap(7))
    assert await made.insert("a", "b") is None
    assert made.client.requests[0].body == [
        {"op": "test", "path": "/data", "value": None},
        {"op": "add", "path": "/data", "value": {"a": text("a"), "b": text("b")}},
    ]
    made.show(5, {})  # From before the write.
    assert made.held == 2
    made.show(7, {"a": text("a"), "b": text("b")})
    assert made.held == 2


async def test_keys_are_added_only_where_there_are_none(desk: Make) -> None:
    made = desk(OVERTAKEN, configmap(8, {"x": "", "a": "theirs"}))
    made.show(3, {"x": ""})
    outcome = await made.insert("a", "b")
    assert isinstance(outcome, Taken)
    assert made.held == 0
    assert [op["op"] for op in made.client.requests[0].body] == ["test", "test", "add", "add"]


async def test_what_somebody_writes_under_the_same_name_meanwhile_is_theirs(desk: Make) -> None:
    made = desk(OVERTAKEN, configmap(8, {"a": "theirs"}))
    made.show(3, {})
    task = made.insert("a")
    made.show(8, {"a": text("a", cpu=3)})
    assert made.held == 3
    assert isinstance(await task, Taken)
    assert made.held == 3


async def test_a_missing_configmap_is_made_with_its_label(desk: Make) -> None:
    made = desk(configmap(7, {"a": text("a")}))
    outcome(made.store.drop((HOME, "reservations")))
    assert await made.insert("a") is None
    (request,) = made.client.requests
    assert (request.verb, request.path) == ("create", f"/api/v1/namespaces/{HOME}/configmaps")
    assert request.body["metadata"]["labels"] == LABELS


async def test_a_configmap_that_lost_its_data_is_filled_again(desk: Make) -> None:
    made = desk(OVERTAKEN, configmap(8), configmap(9, {"a": text("a")}))
    made.show(3, {"gone": "x"})
    assert await made.insert("a") is None
    assert made.client.requests[2].body[1]["path"] == "/data"


async def test_a_store_that_is_deleted_holds_no_longer(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {})
    await made.insert("a")
    outcome(made.store.drop((HOME, "reservations")))
    assert made.held == 0


async def test_a_full_configmap_is_followed_by_the_next(desk: Make) -> None:
    made = desk()
    made.show(3, {"x": "y" * (MOST_BYTES - 100)})
    assert made.writer.new_ref({"k": 49}).configmap == "reservations"
    assert made.writer.new_ref({"k": 199}).configmap == "reservations-2"
    made.show(4, {"x": "y" * (MOST_BYTES - 100)}, "reservations-2")
    assert made.writer.new_ref({"k": 199}).configmap == "reservations-3"
    made.show(5, {"here": text("here")}, "reservations-2")
    assert made.writer.find("here") == Ref(HOME, "reservations-2", "here")


async def test_a_name_is_found_in_every_configmap_of_the_store_also_beside_a_gap(
    desk: Make,
) -> None:
    made = desk()
    made.show(3, {"x": text("x")})
    made.show(4, {"here": text("here")}, "reservations-5")
    made.show(5, {"last": text("last")}, "reservations-11")
    made.show(6, {"elsewhere": text("elsewhere")}, "reservations-01")
    assert made.writer.find("here") == Ref(HOME, "reservations-5", "here")
    assert made.writer.find("last") == Ref(HOME, "reservations-11", "last")
    assert made.writer.find("elsewhere") is None
    assert made.writer.new_ref({"k": MOST_BYTES - 10}).configmap == "reservations-2"


async def test_a_name_is_found_in_the_next_configmap_before_that_is_written(desk: Make) -> None:
    made = desk(configmap(7))
    for number, name in enumerate(("reservations", "reservations-2", "reservations-3")):
        made.show(number + 3, {f"x{number}": "y" * (MOST_BYTES - 100)}, name)
    task = made.insert("a", size=200)
    assert made.writer.find("a") == Ref(HOME, "reservations-4", "a")
    assert await task is None


async def queued(made: KeyDesk, *keys: str) -> list[asyncio.Task[Any]]:
    """Return the tasks that write each key once another request has been answered."""
    async with made.writer._turn("reservations"):
        tasks = [made.insert(key) for key in keys]
        await asyncio.sleep(0)
        assert not made.client.requests
    return tasks


async def test_what_queues_up_is_written_in_one_request(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {"x": ""})
    for task in await queued(made, "a", "b", "c"):
        assert await task is None
    (request,) = made.client.requests
    assert [op["path"] for op in request.body if op["op"] == "add"] == [
        "/data/a",
        "/data/b",
        "/data/c",
    ]
    made.show(7, {"x": "", "a": text("a"), "b": text("b"), "c": text("c")})
    assert made.held == 3


async def test_of_what_queues_up_one_that_is_taken_costs_no_other(desk: Make) -> None:
    there = {"x": "", "b": "theirs"}
    taken = (OVERTAKEN, configmap(8, there))
    made = desk(*taken, configmap(9), *taken, configmap(11))
    made.show(3, {"x": ""})
    first, second, third = [await task for task in await queued(made, "a", "b", "c")]
    assert (first, third) == (None, None)
    assert isinstance(second, Taken)
    assert made.held == 2


async def test_of_what_queues_up_without_an_answer_what_was_written_is_recognised(
    desk: Make,
) -> None:
    here = {"a": text("a"), "c": text("c")}  # The one in between was claimed and removed since.
    seen = (OVERTAKEN, configmap(8, here))
    made = desk(NO_ANSWER, *seen, *seen, configmap(9, here | {"b": text("b")}), *seen)
    made.show(3, {"x": ""})
    assert [await task for task in await queued(made, "a", "b", "c")] == [None, None, None]
    assert made.held == 3


async def test_a_change_waits_for_its_turn(desk: Make) -> None:
    made = desk(configmap(7))
    made.shows(4, a=1)
    async with made.writer._turn("reservations"):
        edit = made.edit(None)
        await asyncio.sleep(0)
        assert not made.client.requests
    await until(lambda: bool(made.client.requests))
    made.show(7, {})
    assert await edit
