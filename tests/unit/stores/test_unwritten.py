"""A failed write is reported at its object, and tried again seldom."""

import asyncio
import json
from typing import Any

import pytest

from reserver.base.pacer import Pacer
from reserver.errors import ApiError
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from tests.builders import NOW
from tests.unit.k8s.clocks import worked_off
from tests.unit.k8s.fakes import always
from tests.unit.whole import OBJECTS, STORES, Whole, spec

IMMUTABLE = ApiError(
    422,
    "Invalid",
    'ConfigMap "store" is invalid: data: Forbidden: field is immutable when `immutable` is set',
)
POLICY = ApiError(422, "Invalid", "ValidatingAdmissionPolicy 'frozen' denied request: not today")
FORBIDDEN = ApiError(403, "Forbidden", "reserver cannot patch resource configmaps")
LARGE = ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")

ERRORS = pytest.mark.parametrize("error", [IMMUTABLE, POLICY, FORBIDDEN, LARGE], ids=str)
ENTRY = Ref("reserver-system", "store", "k")


def message(whole: Whole, ref: Ref) -> str:
    """Return the message in the status of a reservation."""
    reservation = whole.state.ledger.get(ref)
    assert reservation is not None
    status = ShortNodes.of(whole.state.snapshot).status(reservation, whole.state.ledger)
    return status.message


async def tidied(whole: Whole) -> list[tuple[str, str]]:
    """Carry out the due writes; return their events: reason and message."""
    await whole.assembly.placer.look(whole.state, Pacer())
    cleaner = whole.assembly.cleaner
    await worked_off(cleaner.run(whole.assembly.stores, always), cleaner.queue)
    await whole.assembly.placer.look(whole.state, Pacer())
    events = [(event.reason, event.message) for event in whole.assembly.recorder.queue.take_all()]
    return [each for each in events if each[0] == "NotWritten"]


async def shown(whole: Whole, **written: Any) -> None:
    data = {"k": json.dumps(written)}
    whole.show(STORES, "store", "reserver-system", data=data)


@ERRORS
async def test_a_place_that_cannot_be_written_down_is_told(error: ApiError) -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        whole.client.failure = error
        await shown(whole, **spec(1))
        events = await tidied(whole)
        assert len(events) == 1
        assert error.message in events[0][1]
        assert error.message in message(whole, ENTRY)
        whole.now += 5
        assert await tidied(whole) == []  # The event was sent before.


@ERRORS
async def test_an_entry_that_is_over_and_cannot_be_removed_is_told(error: ApiError) -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        await shown(whole, **spec(1, node="worker-1", expiresAt="2030-03-17T17:46:45Z"))
        whole.now = NOW + 10
        whole.state.ledger.advance(whole.now)
        whole.client.failure = error
        events = await tidied(whole)
        assert len(events) == 1
        assert error.message in events[0][1]
        said = message(whole, ENTRY)
        assert "expiresAt has passed" in said
        assert error.message in said


@ERRORS
async def test_a_time_to_live_that_cannot_be_stamped_is_told_until_it_can(error: ApiError) -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        whole.client.failure = error
        entry = spec(1, node="worker-1", ttl="1h")
        del entry["expiresAt"]
        await shown(whole, **entry)
        assert len(await tidied(whole)) == 1
        assert error.message in message(whole, ENTRY)
        whole.client.failure = None
        entry["slots"] = 2
        await shown(whole, **entry)
        await tidied(whole)
        assert message(whole, ENTRY) == ""


@ERRORS
async def test_an_object_that_is_over_and_cannot_be_deleted_is_told(error: ApiError) -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        over = spec(1, node="worker-1", expiresAt="2030-03-17T17:46:45Z")
        whole.show(OBJECTS, "r", "team", spec=over)
        whole.now = NOW + 10
        whole.state.ledger.advance(whole.now)
        whole.client.failure = error
        assert len(await tidied(whole)) == 1
        assert error.message in message(whole, Ref.of_object("team", "r"))


async def test_a_status_that_cannot_be_written_is_told() -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        await shown(whole, **spec(1, node="worker-1"))
        (event,) = whole.assembly.recorder.queue.take_all()
        assert event.reason == "NoNamespace"  # As the owners of that spec name none.
        whole.client.failure = IMMUTABLE
        await whole.assembly.stores.at(ENTRY).statuses.write(whole.state)
        (event,) = whole.assembly.recorder.queue.take_all()
        assert event.reason == "StatusNotWritten"
        assert "immutable" in event.message
