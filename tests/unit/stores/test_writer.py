"""A created entry holds from the decision, a changed one from its watch event; in both stores."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from reserver.errors import ApiError, Taken
from reserver.reservations.enums import Phase
from reserver.stores.writer import Patience
from tests.builders import pod
from tests.unit.k8s.fakes import refused
from tests.unit.stores.desks import Desk, ItemDesk, KeyDesk, text
from tests.waiting import until

Kind = type[KeyDesk] | type[ItemDesk]
Make = Callable[..., Desk]


@pytest.fixture(params=[KeyDesk, ItemDesk], ids=["configmap", "object"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
async def desk(kind: Kind) -> AsyncIterator[Make]:
    async with asyncio.TaskGroup() as tasks:
        yield lambda *script, **more: kind(tasks, *script, **more)


async def test_what_is_written_holds_before_it_is(desk: Make, kind: Kind) -> None:
    made = desk(*kind.written)
    task = made.insert("a")
    assert made.held == 1
    assert made.writer.find("a") == made.ref("a")
    assert await task is None
    assert made.held == 1
    made.shows(7, a=1)
    assert made.held == 1
    made.shows(9)  # Another client removes the entry.
    assert made.held == 0
    assert made.writer.find("a") is None


async def test_its_owner_may_land_before_the_write_is_known(desk: Make, kind: Kind) -> None:
    made = desk(*kind.written)
    task = made.insert("a")
    (seat,) = [reservation for reservation, _ in made.state.ledger]
    owner = pod("owner-a", node="worker-1", claims=[seat], cpu="1")
    made.state.pod_seen(owner)
    assert made.state.ledger.phase(seat.ref) is Phase.CLAIMED
    assert made.held == 0
    assert await task is None
    made.shows(7, a=1)
    assert made.state.ledger.phase(seat.ref) is Phase.CLAIMED
    assert made.store.due_edit(made.ref("a"), 0.0) is not None


async def test_a_watch_that_is_faster_than_the_answer_does_no_harm(desk: Make, kind: Kind) -> None:
    made = desk(*kind.written)
    task = made.insert("a")
    made.shows(7, a=1)
    made.shows(9)
    assert await task is None
    assert made.held == 0
    assert made.writer.find("a") is None


async def test_what_came_and_went_between_two_lists_holds_no_more(desk: Make, kind: Kind) -> None:
    made = desk(*kind.written)
    assert await made.insert("a") is None
    assert made.held == 1
    made.shows(9)
    assert made.held == 0


async def test_of_what_is_refused_nothing_holds_any_more(desk: Make) -> None:
    made = desk(refused(403, "Forbidden"))
    assert isinstance(await made.insert("a", "b"), ApiError)
    assert made.held == 0
    assert made.writer.find("a") is None
    assert len(made.client.requests) == 1


async def test_nothing_that_is_there_is_overwritten(desk: Make, kind: Kind) -> None:
    made = desk(*kind.taken)
    assert isinstance(await made.insert("a", "b"), Taken)
    assert made.held == 0


async def test_a_write_without_an_answer_is_sent_again_and_recognised(
    desk: Make, kind: Kind
) -> None:
    made = desk(*kind.unsure)
    assert await made.insert("a") is None
    assert made.held == 1
    assert not made.client.script


async def test_a_write_without_an_answer_after_which_another_one_is_there_failed(
    desk: Make, kind: Kind
) -> None:
    made = desk(*kind.unsure_taken)
    assert isinstance(await made.insert("a"), Taken)
    assert made.held == 0


async def test_a_change_returns_once_it_is_shown(desk: Make, kind: Kind) -> None:
    made = desk(*kind.changed)
    made.shows(5, a=1)
    edit = made.edit(text("a", cpu=3))
    await until(lambda: made.is_waiting)
    assert not edit.done()
    made.shows(9, a=3)
    assert await edit
    assert made.held == 3


async def test_what_is_released_is_so_once_it_is_shown(desk: Make, kind: Kind) -> None:
    made = desk(*kind.changed)
    made.shows(5, a=1)
    edit = made.edit(None)
    await until(lambda: made.is_waiting)
    assert not edit.done()
    made.shows(9)
    assert await edit
    assert made.held == 0


async def test_a_change_of_what_somebody_else_changed_is_not_made(desk: Make, kind: Kind) -> None:
    made = desk(*kind.forestalled)
    made.shows(5, a=1)
    assert not await made.edit(text("a", cpu=3))
    assert made.held == 1


async def test_who_was_slower_than_the_cleaner_learns_that_it_is_gone(
    desk: Make, kind: Kind
) -> None:
    made = desk(*kind.forestalled, patience=Patience(0.0, 0.0))
    made.shows(5, a=1)
    edit = made.edit(None)
    for _ in range(20):  # However often it has its turn.
        await asyncio.sleep(0)
    assert not made.client.script
    assert not edit.done()
    made.shows(9)
    assert await edit is False
    assert made.store.latest(made.ref("a")) is None


async def test_a_watch_that_is_late_is_not_waited_for_without_end(desk: Make, kind: Kind) -> None:
    made = desk(*kind.forestalled)
    made.shows(5, a=1)
    assert await made.edit(None) is False
    assert made.store.latest(made.ref("a")) is not None
