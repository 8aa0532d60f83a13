"""An entry that is deleted before any watch shows it holds nothing; in either store."""

import asyncio
import json

import msgspec
import pytest

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import Metadata, decode
from reserver.reservations.reservation import Ref
from reserver.stores.cache import Expected
from reserver.stores.configmap.entries import read_key
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.entries import read_object
from tests.builders import NOW, held
from tests.unit.whole import OBJECTS, STORES, Whole, spec

SYSTEM = "reserver-system"
KEY, OBJECT = Ref(SYSTEM, "store", "k"), Ref.of_object(SYSTEM, "r")
TEXT = json.dumps(spec(1, node="worker-1"))


class Writing:
    """A reservation that is being written into one of the stores."""

    def __init__(self, whole: Whole, kind: str) -> None:
        self.whole, self.kind = whole, kind
        stores = whole.assembly.stores
        if kind == "configmap":
            stores.at(KEY).cache.expect(KEY, Expected(TEXT, read_key(KEY, TEXT, NOW)))
        else:
            metadata = {"name": "r", "namespace": SYSTEM}
            raw = json.dumps({"metadata": metadata, "spec": spec(1, node="worker-1")}).encode()
            entries = read_object(decode(ReservationObject, raw), NOW, SYSTEM)
            stores.at(OBJECT).cache.expect(OBJECT, Expected(TEXT, entries))

    def listed(self, revision: int, **data: str) -> None:
        """Show a list of the collection: for ConfigMaps one with data, if any."""
        view = self.whole.views[STORES if self.kind == "configmap" else OBJECTS]
        view.list_began()
        if data:
            metadata = {"name": "store", "namespace": SYSTEM, "resourceVersion": str(revision)}
            raw = json.dumps({"metadata": metadata, "data": data}).encode()
            outcome(view.listed(msgspec.Raw(raw)))
        outcome(view.list_ended(revision))

    def answered(self, revision: int) -> None:
        stores = self.whole.assembly.stores
        if self.kind == "configmap":
            stores.at(KEY).cache.written(KEY, Metadata("store", SYSTEM, "u", str(revision)))
        else:
            stores.at(OBJECT).cache.written(OBJECT, Metadata("r", SYSTEM, "uid-r", str(revision)))

    @property
    def holds(self) -> bool:
        return held(self.whole.state, "worker-1") > 0


@pytest.fixture(params=["configmap", "object"])
async def writing(request: pytest.FixtureRequest) -> Writing:
    async with asyncio.TaskGroup() as tasks:
        return Writing(Whole(tasks), request.param)


async def test_it_is_gone_before_its_answer_comes(writing: Writing) -> None:
    writing.listed(101)  # Written at 100, and deleted after it.
    assert writing.holds  # The write may come after the list.
    writing.answered(100)
    assert not writing.holds


async def test_it_was_there_before_and_is_gone_before_its_answer_comes(writing: Writing) -> None:
    if writing.kind == "configmap":
        writing.listed(90, other="{}")
    writing.listed(101)
    writing.answered(100)
    assert not writing.holds


async def test_it_is_written_after_the_list(writing: Writing) -> None:
    writing.listed(101)
    writing.answered(102)
    assert writing.holds


async def test_it_is_gone_after_its_answer(writing: Writing) -> None:
    writing.answered(100)
    assert writing.holds
    writing.listed(101)
    assert not writing.holds


async def test_its_list_is_older_than_its_answer(writing: Writing) -> None:
    if writing.kind == "object":
        view = writing.whole.views[OBJECTS]
        view.list_began()
        writing.answered(100)
        outcome(view.list_ended(99))
    else:
        writing.answered(100)
        writing.listed(99)
    assert writing.holds


async def test_a_deletion_that_is_seen_before_the_answer_counts(writing: Writing) -> None:
    whole = writing.whole
    if writing.kind == "configmap":
        raw = whole.show(STORES, "store", SYSTEM, data={"other": TEXT})
        whole.end(STORES, raw)
        gone_at = whole.client.revision
        assert writing.holds
        writing.answered(gone_at - 1)
    else:
        raw = whole.show(OBJECTS, "r", SYSTEM, spec=spec(1, node="worker-1"), uid="uid-r")
        whole.end(OBJECTS, raw)
        writing.answered(whole.client.revision)
    assert not writing.holds
