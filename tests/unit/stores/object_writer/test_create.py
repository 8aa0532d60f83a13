"""Reservations that are created as objects: held from the decision on."""

import pytest

from reserver.errors import TooMany
from reserver.stores.object import entries
from tests.unit.stores.desks import HOME, item, text
from tests.unit.stores.object_writer.desk import Make

COLLECTION = f"/apis/reserver.io/v1alpha1/namespaces/{HOME}/reservations"


async def test_an_object_is_created_with_its_spec_as_it_was_decided(desk: Make) -> None:
    made = desk(item("a", 7))
    assert await made.insert("a") is None
    (request,) = made.client.requests
    assert (request.verb, request.path) == ("create", COLLECTION)
    assert request.body["metadata"] == {"name": "a", "namespace": HOME}
    assert bytes(request.body["spec"]) == text("a").encode()


async def test_what_an_admission_webhook_changes_holds_what_it_says_then(desk: Make) -> None:
    made = desk(item("a", 7))
    task = made.insert("a")
    made.show(item("a", 7, spec=text("a", cpu=3)))
    assert await task is None
    assert made.held == 3
    made.gone("a")
    assert made.held == 0


async def test_what_came_and_went_between_two_lists_holds_no_more(desk: Make) -> None:
    made = desk(item("a", 7))
    assert await made.insert("a") is None
    assert (HOME, "a") in made.store.names()
    made.gone("a")
    assert made.held == 0


async def test_one_of_the_name_that_went_before_does_not_take_the_hold_with_it(desk: Make) -> None:
    made = desk(item("a", 7))
    assert await made.insert("a") is None
    made.show(item("a", 2, uid="former"))
    made.gone("a")
    assert made.held == 1
    made.show(item("a", 7))
    assert made.held == 1


async def test_no_object_is_written_that_would_not_be_read(
    desk: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MOST_OBJECTS", 1)
    made = desk()
    made.show(item("theirs", namespace="shop"))
    outcome = await made.insert("a", namespace="shop")
    assert isinstance(outcome, TooMany)
    assert "of namespace shop are read, and no more; delete some" in str(outcome)
    assert (made.client.requests, made.held) == ([], 1)


async def test_a_written_object_holds_though_its_namespace_was_filled_meanwhile(
    desk: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MOST_OBJECTS", 1)
    made = desk(item("a", 7, namespace="shop"))
    assert await made.insert("a", namespace="shop") is None
    made.show(item("theirs", 6, namespace="shop"))
    made.show(item("a", 7, namespace="shop"))
    assert made.held == 2
    made.show(item("late", 8, namespace="shop"))
    assert made.held == 2
