"""An edit that somebody was faster than ends once it is seen what they have written."""

import asyncio

import pytest

from reserver.kube.stores.writer import Patience
from reserver.reservations.reservation import Ref
from reserver.wire.spec.edits import Edit
from tests.unit.kube.fakes import OVERTAKEN, refused
from tests.unit.kube.stores import test_configmap_writer as keys
from tests.unit.kube.stores import test_object_writer as items

HOME = "reserver-system"
STORES = ["configmap", "object"]


class Desk:
    """A writer, and a reservation in its store that the cleaner has removed."""

    def __init__(self, tasks: asyncio.TaskGroup, store: str, patience: Patience) -> None:
        self.desk: keys.Desk | items.Desk
        if store == "configmap":
            self.desk = keys.Desk(tasks, OVERTAKEN, patience=patience)
            self.desk.show(3, {"a": keys.TEXT})
            self.ref = Ref(HOME, "reservations", "a")
        else:
            self.desk = items.Desk(tasks, refused(404), refused(404), patience=patience)
            self.desk.show(items.item("a"))
            self.ref = Ref.of_object(HOME, "a")

    def release(self) -> asyncio.Task[bool]:
        latest = self.desk.store.latest(self.ref)
        assert latest is not None
        edit = Edit(self.ref, latest[0], None, "released")
        return asyncio.create_task(self.desk.booking.edit(edit))

    def show_what_the_cleaner_did(self) -> None:
        if isinstance(self.desk, keys.Desk):
            self.desk.show(4, {})
        else:
            self.desk.gone("a")


@pytest.mark.parametrize("store", STORES)
async def test_who_was_slower_than_the_cleaner_learns_that_it_is_gone(store: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        desk = Desk(tasks, store, Patience(0.0, 0.0))
        edit = desk.release()
        for _ in range(20):  # However often it has its turn.
            await asyncio.sleep(0)
        assert not desk.desk.client.script
        assert not edit.done()
        desk.show_what_the_cleaner_did()
        assert await edit is False
        assert desk.desk.store.latest(desk.ref) is None


@pytest.mark.parametrize("store", STORES)
async def test_a_watch_that_is_late_is_not_waited_for_without_end(store: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        assert await Desk(tasks, store, Patience(0.0, 0.0, 0.0)).release() is False
