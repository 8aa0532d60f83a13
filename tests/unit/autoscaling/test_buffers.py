"""The lifecycle of CapacityBuffers."""

from __future__ import annotations

import dataclasses

import pytest

from reserver.autoscaling.buffer_writer import check_served
from reserver.autoscaling.codec import name_for
from reserver.base.pacer import Pacer
from reserver.errors import ConfigurationError
from reserver.scheduling.buffers import MOST_BUFFERS
from reserver.settings.serve import Settings
from tests.builders import parts, reservation
from tests.unit.autoscaling.buffering import FREE, Desk
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

WAITS = reservation("waits", node="", cpu="3")


async def test_a_reservation_that_waits_has_a_buffer_until_its_node_is_kept() -> None:
    desk = Desk(WAITS)
    assert await desk.work(0) == []
    assert await desk.work() == ["waits"]
    assert desk.template()["metadata"]["ownerReferences"][0]["uid"] == "u2"
    desk.state.node_seen(FREE)
    desk.place(WAITS, "a")
    assert await desk.work() == ["waits"]
    desk.state.node_seen(dataclasses.replace(FREE, is_kept=True))
    desk.buffers.on_node_changed("any")
    assert await desk.work() == []
    assert desk.buffers.writer.writes == 2


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
    assert len(desk.buffers.writer) == 1  # Until the watch shows it.
    desk.buffers.writer.gone((WAITS.ref.namespace, name_for(WAITS.ref)))
    desk.api.writes.clear()
    await desk.work()
    assert (desk.api.writes, len(desk.buffers.writer)) == ([], 0)


async def test_a_buffer_is_written_again_only_when_what_it_says_changes() -> None:
    desk = Desk(WAITS)
    await desk.work()
    desk.api.writes.clear()
    desk.buffers.on_reservation_changed(WAITS.ref)
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
    desk.buffers.writer.gone((WAITS.ref.namespace, name_for(WAITS.ref)))
    assert await desk.work() == ["waits"]


async def test_a_successor_deletes_what_nobody_needs_and_goes_on_with_the_rest() -> None:
    other = reservation("other", node="", cpu="3")
    before = Desk(WAITS, other)
    assert await before.work() == ["other", "waits"]
    desk = Desk(WAITS, is_new=True)
    desk.api.objects = before.api.objects
    for each in (WAITS, other):
        desk.buffers.writer.seen((each.ref.namespace, name_for(each.ref)))
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
    desk.buffers.writer.seen((WAITS.ref.namespace, name_for(WAITS.ref)))
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
    desk.buffers.on_reservation_changed(WAITS.ref)
    desk.api.writes.clear()
    await desk.work(0.01)
    assert desk.api.writes == []
    desk.api.refusal = None
    assert await desk.work(60) == ["waits"]


async def test_serve_is_refused_where_there_are_no_capacity_buffers() -> None:
    with pytest.raises(ConfigurationError, match="install the CRD"):
        await check_served(ScriptedClient(refused(404, "NotFound")))
    await check_served(ScriptedClient({"items": []}))
    await check_served(ScriptedClient(NO_ANSWER))  # Without an answer, serve starts.


def test_buffers_are_refused_where_the_nodes_that_they_bring_would_be_removed() -> None:
    with pytest.raises(ConfigurationError, match="needs --keep-held-nodes"):
        Settings(capacity_buffers=True)
    assert Settings(capacity_buffers=True, keep_held_nodes=True).capacity_buffers
