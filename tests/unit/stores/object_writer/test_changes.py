"""Changes and deletions of objects that other clients write as well."""

import asyncio
import json

import msgspec
import pytest

from reserver.errors import ApiError
from reserver.k8s.objects.limits import HOME
from reserver.stores.edits import Edit
from tests.unit.k8s.fakes import OVERTAKEN, refused
from tests.unit.stores.desks import item, text
from tests.unit.stores.object_writer.desk import Make, ref
from tests.waiting import until

SEEN = json.dumps(item("a")["spec"])


async def test_a_change_names_what_it_was_made_for_and_waits_until_it_is_seen(desk: Make) -> None:
    made = desk(item("a", 9))
    made.show(item("a"))
    wanted = text("a", cpu=3)
    edit = asyncio.create_task(made.writer.edit(Edit(ref("a"), SEEN, wanted, "changed")))
    await until(lambda: made.is_waiting)
    made.show(item("a", 9, spec=wanted))
    assert await edit
    sent = msgspec.json.decode(msgspec.json.encode(made.client.requests[0].body))
    assert sent == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-a"},
        {"op": "test", "path": "/spec", "value": json.loads(SEEN)},
        {"op": "replace", "path": "/spec", "value": json.loads(wanted)},
    ]
    assert made.held == 3


async def test_one_that_was_too_long_to_keep_is_replaced_only_in_the_version_that_was_seen(
    desk: Make,
) -> None:
    long = json.dumps({**item("a")["spec"], "description": "x" * HOME.spec_bytes})
    made = desk(refused(404))
    made.show(item("a", 7, spec=long))
    latest = made.store.latest(ref("a"))
    assert latest is not None
    assert not await made.writer.edit(Edit(ref("a"), latest[0], text("a"), "changed"))
    (request,) = made.client.requests
    assert request.body[:2] == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-a"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
    ]


async def test_what_no_watch_has_shown_yet_is_changed_once_one_does(desk: Make) -> None:
    made = desk(item("a", 7), {})
    assert await made.insert("a") is None
    latest = made.store.latest(ref("a"))
    assert latest is not None
    release = asyncio.create_task(made.writer.edit(Edit(ref("a"), latest[0], None, "released")))
    await until(lambda: made.is_waiting)
    made.show(item("a", 7))
    await until(lambda: len(made.client.requests) == 2 and made.is_waiting)
    made.gone("a")
    assert await release


@pytest.mark.parametrize("answer", [OVERTAKEN, refused(404)])
async def test_a_change_of_what_somebody_else_changed_is_not_made(
    desk: Make, answer: ApiError
) -> None:
    made = desk(answer)
    made.show(item("a"))
    assert not await made.writer.edit(Edit(ref("a"), SEEN, text("a"), "changed"))
    assert not await made.writer.edit(Edit(ref("a"), "{}", text("a"), "changed"))
    assert not await made.writer.edit(Edit(ref("z"), SEEN, text("a"), "changed"))
    assert len(made.client.requests) == 1


async def test_a_status_that_is_written_meanwhile_is_no_reason_not_to_delete(desk: Make) -> None:
    made = desk(refused(409), item("a", 4), {})
    made.show(item("a"))
    release = asyncio.create_task(made.writer.edit(Edit(ref("a"), SEEN, None, "released")))
    await until(lambda: made.is_waiting)
    made.gone("a")
    assert await release
    versions = [
        request.body["preconditions"]["resourceVersion"]
        for request in made.client.requests
        if request.verb == "delete"
    ]
    assert versions == ["1", "4"]


async def test_what_somebody_else_changed_is_not_deleted(desk: Make) -> None:
    made = desk(refused(409), item("a", 4, spec=text("a", cpu=3)))
    made.show(item("a"))
    assert not await made.writer.edit(Edit(ref("a"), SEEN, None, "released"))
