"""Which CapacityBuffers there are, and for how long."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from reserver.config import Settings
from reserver.errors import ConfigurationError
from reserver.kube.api.client import MERGE_PATCH, ApiClient
from reserver.kube.loops.buffers import AFTER_S, Buffers, check_served
from reserver.pacer import Pacer
from reserver.reservations.reservation import Reservation
from reserver.scheduling.buffers import MOST_BUFFERS
from reserver.wire.capacitybuffer import name_for
from reserver.wire.k8s.objects import Metadata
from tests.builders import NOW, node, parts, reservation, state_of
from tests.unit.kube.clocks import ManualTime, worked_off
from tests.unit.kube.fakes import NO_ANSWER, ScriptedClient, refused

WAITS = reservation("waits", node="", cpu="3")
FREE = dataclasses.replace(node("a", cpu="4"), is_kept=False)


class Api(ApiClient):
    """An API server that keeps what is applied.

    Attributes:
        objects: what is there, by path.
        writes: the verbs and paths that were asked for.
        refusal: what it answers, None to do as asked.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.writes: list[str] = []
        self.refusal: Exception | None = None

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type == "application/apply-patch+yaml"
        self._answer(f"apply {path}")
        self.objects[path.partition("?")[0]] = json.loads(json.dumps(body))
        return json.dumps({"metadata": {"name": "made", "uid": "u2"}}).encode()

    async def delete(self, path: str, options: object) -> bytes:
        assert options
        self._answer(f"delete {path}")
        if self.objects.pop(path, None) is None:
            raise refused(404, "NotFound")
        return b"{}"

    def _answer(self, asked: str) -> None:
        self.writes.append(asked)
        if self.refusal is not None:
            raise self.refusal


class Desk:
    """A state, an API server, and what writes buffers."""

    def __init__(self, *there: Reservation, is_new: bool = False) -> None:
        self.time, self.api = ManualTime(), Api()
        self.state = state_of(*there)
        self.buffers = Buffers(
            self.api,
            lambda: NOW,
            lambda _: (Metadata(name="store", uid="u1"), "ConfigMap"),
            self.time,
        )
        if not is_new:
            for each in there:
                self.buffers.touched(each.ref)

    def put(self, made: Reservation) -> None:
        self.state.ledger.put(made)
        self.buffers.touched(made.ref)

    def drop(self, made: Reservation) -> None:
        self.state.ledger.drop(made.ref)
        self.buffers.touched(made.ref)

    def place(self, made: Reservation, on: str) -> None:
        self.state.ledger.place(made.ref, parts({on: made.slots}))
        self.buffers.touched(made.ref)

    async def work(self, seconds: float = AFTER_S) -> list[str]:
        """Let time pass; return which buffers there are then, by their reservation."""
        self.time.now += seconds
        await self.buffers.look(self.state, Pacer())
        await worked_off(self.buffers.write(), self.buffers.unwritten)
        return sorted(
            each["metadata"]["annotations"]["reserver.io/reservation"].rsplit("/", 1)[1]
            for path, each in self.api.objects.items()
            if "capacitybuffers" in path
        )

    def template(self) -> Any:
        return next(each for path, each in self.api.objects.items() if "podtemplates" in path)


async def test_a_reservation_that_waits_has_a_buffer_until_its_node_is_kept() -> None:
    desk = Desk(WAITS)
    assert await desk.work(0) == []
    assert await desk.work() == ["waits"]
    assert desk.template()["metadata"]["ownerReferences"][0]["uid"] == "u2"
    desk.state.node_seen(FREE)
    desk.place(WAITS, "a")
    assert await desk.work() == ["waits"]
    desk.state.node_seen(dataclasses.replace(FREE, is_kept=True))
    desk.buffers.changed()
    assert await desk.work() == []
    assert desk.buffers.writes == 2


async def test_one_that_finds_its_place_at_once_costs_nothing() -> None:
    desk = Desk(WAITS)
    desk.state.node_seen(FREE)
    desk.place(WAITS, "a")
    assert await desk.work() == []
    desk.put(reservation("other", node="", cpu="1"))
    desk.drop(reservation("other", node="", cpu="1"))
    assert await desk.work() == []
    assert desk.api.writes == []


async def test_a_buffer_goes_with_its_reservation() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.drop(WAITS)
    assert await desk.work() == []
    assert len(desk.buffers) == 1  # Until the watch shows it.
    desk.buffers.gone((WAITS.ref.namespace, name_for(WAITS.ref)))
    desk.api.writes.clear()
    await desk.work()
    assert (desk.api.writes, len(desk.buffers)) == ([], 0)


async def test_a_buffer_is_written_again_only_when_what_it_says_changes() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.api.writes.clear()
    desk.buffers.touched(WAITS.ref)
    await desk.work()
    assert desk.api.writes == []
    desk.state.node_seen(FREE)
    desk.put(reservation("held", node="a", cpu="2"))
    await desk.work()
    assert len(desk.api.writes) == 2
    affinity = desk.template()["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["a"]


async def test_a_buffer_that_somebody_deletes_comes_back() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.api.objects.clear()
    desk.buffers.gone((WAITS.ref.namespace, name_for(WAITS.ref)))
    assert await desk.work() == ["waits"]


async def test_a_successor_deletes_what_nobody_needs_and_goes_on_with_the_rest() -> None:
    other = reservation("other", node="", cpu="3")
    before = Desk(WAITS, other)
    assert await before.work() == ["other", "waits"]
    desk = Desk(WAITS, is_new=True)
    desk.api.objects = before.api.objects
    for each in (WAITS, other):
        desk.buffers.seen((each.ref.namespace, name_for(each.ref)))
    await desk.buffers.begin(desk.state, Pacer())
    assert await desk.work() == ["waits"]
    assert len([each for each in desk.api.writes if each.startswith("apply")]) == 2


async def test_a_successor_leaves_the_buffer_of_a_node_that_is_not_kept_yet() -> None:
    before = Desk(WAITS)
    await before.work()
    desk = Desk(WAITS, is_new=True)
    desk.api.objects = before.api.objects
    desk.state.node_seen(FREE)
    desk.state.ledger.place(WAITS.ref, parts({"a": 1}))
    desk.buffers.seen((WAITS.ref.namespace, name_for(WAITS.ref)))
    await desk.buffers.begin(desk.state, Pacer())
    assert await desk.work() == ["waits"]
    assert desk.api.writes == []


async def test_a_namespace_has_so_many_buffers_and_the_next_when_one_goes() -> None:
    many = [reservation(f"r{number:03}", node="", cpu="3") for number in range(MOST_BUFFERS + 2)]
    desk = Desk(*many)
    names = [each.ref.key for each in many]
    assert await desk.work() == names[:-2]
    desk.drop(many[0])
    assert await desk.work() == names[1:-1]


async def test_what_cannot_be_written_is_tried_again_later_and_later() -> None:
    desk = Desk(WAITS)
    desk.api.refusal = refused(403, "Forbidden")
    assert await desk.work() == []
    desk.buffers.touched(WAITS.ref)
    desk.api.writes.clear()
    await desk.work(0.01)
    assert desk.api.writes == []
    desk.api.refusal = None
    assert await desk.work(60) == ["waits"]


async def test_serve_is_refused_where_there_are_no_capacity_buffers() -> None:
    with pytest.raises(ConfigurationError, match="install the CRD"):
        await check_served(ScriptedClient(refused(404, "NotFound")))
    await check_served(ScriptedClient({"items": []}))
    await check_served(ScriptedClient(NO_ANSWER))  # It will be there, or not.


def test_buffers_are_refused_where_the_nodes_that_they_bring_would_be_removed() -> None:
    with pytest.raises(ConfigurationError, match="needs --keep-held-nodes"):
        Settings(capacity_buffers=True)
    assert Settings(capacity_buffers=True, keep_held_nodes=True).capacity_buffers
