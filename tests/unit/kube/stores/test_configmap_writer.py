import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reserver.errors import ApiError, Taken
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.writer import ConfigMapWriter
from reserver.kube.stores.writer import MOST_BYTES, Patience
from reserver.pacer import outcome
from reserver.reservations.reservation import Phase, Ref
from reserver.scheduling.state import State
from reserver.wire.k8s.objects import ConfigMapObject, Metadata
from reserver.wire.spec.edits import Edit
from reserver.wire.spec.entries import read_key
from tests.builders import NOW, held, node, pod, state_of
from tests.unit.kube.fakes import AT_ONCE, NO_ANSWER, OVERTAKEN, ScriptedClient, refused

NAMESPACE = "reserver-system"
TEXT = (
    '{"owners":[{"pod":{"name":"owner","namespace":"shop"}}],'
    '"resources":{"cpu":2},"node":"worker-1","ttl":0}'
)
LABELS = {"reserver.io/store": "true"}


def configmap(version: int, data: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    metadata = {"name": "reservations", "namespace": NAMESPACE, "resourceVersion": str(version)}
    return {"metadata": metadata | {"labels": labels or LABELS}, "data": data or {}}


class Desk:
    """A booking on a store, with an API server that plays a script."""

    def __init__(
        self, tasks: asyncio.TaskGroup, *script: Any, patience: Patience = AT_ONCE
    ) -> None:
        self.client = ScriptedClient(*script)
        self.state: State = state_of(node("worker-1", cpu="4"))
        self.store = ConfigMapCache(self.state.ledger, lambda: NOW, lambda *_: None)
        self.booking = ConfigMapWriter(self.client, self.store, NAMESPACE, tasks, patience)

    def show(self, version: int, data: dict[str, str], configmap_: str = "reservations") -> None:
        metadata = Metadata(configmap_, NAMESPACE, "u", str(version))
        outcome(self.store.put(ConfigMapObject(metadata, data)))

    def insert(self, *keys: str, text: str = TEXT, size: int = 0) -> asyncio.Task[Any]:
        place = self.booking.place(dict.fromkeys(keys, size))
        texts = dict.fromkeys(keys, text)
        entries = {k: read_key(place._replace(key=k), t, NOW) for k, t in texts.items()}
        return self.booking.insert(place, texts, entries)


Make = Callable[..., Desk]


@pytest.fixture
async def desk() -> AsyncIterator[Make]:
    async with asyncio.TaskGroup() as tasks:
        yield lambda *script: Desk(tasks, *script)


async def test_what_is_booked_holds_before_it_is_written(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {})
    task = made.insert("a")
    assert held(made.state, "worker-1") == 2000
    assert made.booking.find("a") == Ref(NAMESPACE, "reservations", "a")
    assert await task is None
    assert made.client.requests[0].body == [
        {"op": "test", "path": "/data", "value": None},
        {"op": "add", "path": "/data", "value": {"a": TEXT}},
    ]
    made.show(5, {})  # From before the write.
    assert held(made.state, "worker-1") == 2000
    made.show(7, {"a": TEXT})
    assert held(made.state, "worker-1") == 2000
    made.show(9, {})  # Somebody removes it.
    assert held(made.state, "worker-1") == 0
    assert made.booking.find("a") is None


async def test_nothing_that_is_there_is_overwritten(desk: Make) -> None:
    made = desk(OVERTAKEN, configmap(8, {"x": "", "a": "theirs"}))
    made.show(3, {"x": ""})
    outcome = await made.insert("a", "b")
    assert isinstance(outcome, Taken)
    assert held(made.state, "worker-1") == 0
    assert [op["op"] for op in made.client.requests[0].body] == ["test", "test", "add", "add"]


async def test_what_somebody_writes_under_the_same_name_meanwhile_is_theirs(desk: Make) -> None:
    made = desk(OVERTAKEN, configmap(8, {"a": "theirs"}))
    made.show(3, {})
    task = made.insert("a")
    made.show(8, {"a": TEXT.replace('"cpu":2', '"cpu":1')})
    assert held(made.state, "worker-1") == 1000
    assert isinstance(await task, Taken)
    assert held(made.state, "worker-1") == 1000


async def test_a_missing_configmap_is_made_with_its_label(desk: Make) -> None:
    made = desk(configmap(7, {"a": TEXT}))
    assert await made.insert("a") is None
    (request,) = made.client.requests
    assert (request.verb, request.path) == ("create", f"/api/v1/namespaces/{NAMESPACE}/configmaps")
    assert request.body["metadata"]["labels"] == LABELS


async def test_a_configmap_that_lost_its_data_is_filled_again(desk: Make) -> None:
    made = desk(OVERTAKEN, configmap(8), configmap(9, {"a": TEXT}))
    made.show(3, {"gone": "x"})
    assert await made.insert("a") is None
    assert made.client.requests[2].body[1]["path"] == "/data"


async def test_a_write_without_an_answer_is_sent_again_and_recognised(desk: Make) -> None:
    made = desk(NO_ANSWER, OVERTAKEN, configmap(8, {"a": TEXT}))
    made.show(3, {})
    assert await made.insert("a") is None
    assert held(made.state, "worker-1") == 2000


async def test_what_the_api_server_refuses_holds_no_longer(desk: Make) -> None:
    made = desk(refused(403, "Forbidden"))
    made.show(3, {})
    outcome = await made.insert("a", "b")
    assert isinstance(outcome, ApiError)
    assert held(made.state, "worker-1") == 0


async def test_what_came_and_went_unseen_holds_no_longer(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {})
    task = made.insert("a")
    made.show(9, {})  # A list after changes were missed.
    assert await task is None
    assert held(made.state, "worker-1") == 0


async def test_a_store_that_is_deleted_holds_no_longer(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {})
    await made.insert("a")
    outcome(made.store.drop((NAMESPACE, "reservations")))
    assert held(made.state, "worker-1") == 0


async def test_the_owner_may_land_before_the_write_is_known(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {})
    task = made.insert("a")
    (seat,) = made.state.ledger.seats(pod("owner"))
    made.state.assume(pod("owner", cpu="2"), "worker-1", (seat.identity,))
    assert held(made.state, "worker-1") == 0
    assert await task is None
    made.show(7, {"a": TEXT})
    assert made.state.ledger.phase(seat.ref) is Phase.CLAIMED


async def test_a_full_configmap_is_followed_by_the_next(desk: Make) -> None:
    made = desk()
    made.show(3, {"x": "y" * (MOST_BYTES - 100)})
    assert made.booking.place({"k": 49}).configmap == "reservations"
    assert made.booking.place({"k": 199}).configmap == "reservations-2"
    made.show(4, {"x": "y" * (MOST_BYTES - 100)}, "reservations-2")
    assert made.booking.place({"k": 199}).configmap == "reservations-3"
    made.show(5, {"here": TEXT}, "reservations-2")
    assert made.booking.find("here") == Ref(NAMESPACE, "reservations-2", "here")


async def test_a_name_is_found_in_every_configmap_of_the_store_also_beside_a_gap(
    desk: Make,
) -> None:
    made = desk()
    made.show(3, {"x": TEXT})
    made.show(4, {"here": TEXT}, "reservations-5")
    made.show(5, {"last": TEXT}, "reservations-11")
    made.show(6, {"elsewhere": TEXT}, "reservations-01")
    assert made.booking.find("here") == Ref(NAMESPACE, "reservations-5", "here")
    assert made.booking.find("last") == Ref(NAMESPACE, "reservations-11", "last")
    assert made.booking.find("elsewhere") is None
    assert made.booking.place({"k": MOST_BYTES - 10}).configmap == "reservations-2"


async def test_a_name_is_found_in_the_next_configmap_before_that_is_written(desk: Make) -> None:
    made = desk(configmap(7))
    for number, name in enumerate(("reservations", "reservations-2", "reservations-3")):
        made.show(number + 3, {f"x{number}": "y" * (MOST_BYTES - 100)}, name)
    task = made.insert("a", size=200)
    assert made.booking.find("a") == Ref(NAMESPACE, "reservations-4", "a")
    assert await task is None


async def test_an_edit_returns_once_it_is_in_force(desk: Make) -> None:
    made = desk(configmap(8), OVERTAKEN)
    made.show(3, {"a": TEXT})
    edit = Edit(Ref(NAMESPACE, "reservations", "a"), TEXT, None, "released")
    task = asyncio.create_task(made.booking.edit(edit))
    await asyncio.sleep(0)
    assert not task.done()
    made.show(8, {})
    assert await task
    assert held(made.state, "worker-1") == 0
    assert not await made.booking.edit(edit)


async def queued(made: Desk, *keys: str) -> list[asyncio.Task[Any]]:
    """Return what is written for each key once another request has been answered."""
    async with made.booking._turn("reservations"):
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
    made.show(7, {"x": "", "a": TEXT, "b": TEXT, "c": TEXT})
    assert held(made.state, "worker-1") == 6000


async def test_of_what_queues_up_one_that_is_taken_costs_no_other(desk: Make) -> None:
    there = {"x": "", "b": "theirs"}
    taken = (OVERTAKEN, configmap(8, there))
    made = desk(*taken, configmap(9), *taken, configmap(11))
    made.show(3, {"x": ""})
    first, second, third = [await task for task in await queued(made, "a", "b", "c")]
    assert (first, third) == (None, None)
    assert isinstance(second, Taken)
    assert held(made.state, "worker-1") == 4000


async def test_of_what_queues_up_without_an_answer_what_was_written_is_recognised(
    desk: Make,
) -> None:
    here = {"a": TEXT, "c": TEXT}  # The one in between was claimed and removed since.
    seen = (OVERTAKEN, configmap(8, here))
    made = desk(NO_ANSWER, *seen, *seen, configmap(9, here | {"b": TEXT}), *seen)
    made.show(3, {"x": ""})
    assert [await task for task in await queued(made, "a", "b", "c")] == [None, None, None]
    assert held(made.state, "worker-1") == 6000


async def test_a_change_waits_for_its_turn(desk: Make) -> None:
    made = desk(configmap(7))
    made.show(3, {"a": TEXT})
    async with made.booking._turn("reservations"):
        edit = asyncio.create_task(
            made.booking.edit(
                Edit(made.booking.place({})._replace(key="a"), TEXT, None, "released")
            )
        )
        await asyncio.sleep(0)
        assert not made.client.requests
    while not made.client.requests:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)
    made.show(7, {})
    assert await edit
