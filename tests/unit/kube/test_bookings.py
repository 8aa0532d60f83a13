"""An edit that somebody was faster than ends once it is seen what they have written."""

import asyncio

import pytest

from reserver.kube.stores import bookings
from reserver.kube.stores.bookings import Bookings
from reserver.kube.stores.both import Stores
from reserver.reservations.reservation import Ref
from reserver.wire.spec.edits import Edit
from tests.unit.kube import test_booking, test_object_booking
from tests.unit.kube.fakes import OVERTAKEN, refused

HOME = "reserver-system"
STORES = ["configmap", "object"]


class Desk:
    """Both bookings, and a reservation in one of their stores that the cleaner has removed."""

    def __init__(self, tasks: asyncio.TaskGroup, store: str) -> None:
        self.keys = test_booking.Desk(tasks, OVERTAKEN)
        self.items = test_object_booking.Desk(tasks, refused(404), refused(404))
        stores = Stores(self.keys.store, self.items.store)
        self.bookings = Bookings(stores, self.keys.booking, self.items.booking, self.keys.booking)
        self.keys.show(3, {"a": test_booking.TEXT})
        self.items.show(test_object_booking.item("a"))
        self.is_configmap = store == "configmap"
        self.ref = Ref(HOME, "reservations", "a") if self.is_configmap else Ref.of_object(HOME, "a")

    def release(self) -> asyncio.Task[bool]:
        latest = self.bookings.stores.latest(self.ref)
        assert latest is not None
        edit = Edit(self.ref, latest[0], None, "released")
        return asyncio.create_task(self.bookings.edit(edit))

    @property
    def has_asked(self) -> bool:
        return not (self.keys if self.is_configmap else self.items).client.script

    def show_what_the_cleaner_did(self) -> None:
        if self.is_configmap:
            self.keys.show(4, {})
        else:
            self.items.gone("a")


@pytest.mark.parametrize("store", STORES)
async def test_who_was_slower_than_the_cleaner_learns_that_it_is_gone(store: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        desk = Desk(tasks, store)
        edit = desk.release()
        for _ in range(20):  # However often it has its turn.
            await asyncio.sleep(0)
        assert desk.has_asked
        assert not edit.done()
        desk.show_what_the_cleaner_did()
        assert await edit is False
        assert desk.bookings.stores.latest(desk.ref) is None


@pytest.mark.parametrize("store", STORES)
async def test_a_watch_that_is_late_is_not_waited_for_without_end(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookings, "BEHIND_S", 0.0)
    async with asyncio.TaskGroup() as tasks:
        assert await Desk(tasks, store).release() is False
