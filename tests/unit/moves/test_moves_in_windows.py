"""Moves that wait for their window, or leave it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from reserver.cluster.pod import Pod
from reserver.k8s.objects.pod_annotations import MOVE_WINDOW_ANNOTATION
from reserver.moves.windows import LOOK_AGAIN_S, MoveWindows
from tests.unit.k8s.crashes import crash_at_each_write, done_or_not
from tests.unit.moves.api_server import PODS
from tests.unit.moves.opening import HOUR, NIGHT, at
from tests.unit.moves.world import World


def annotate(world: World, window: str) -> None:
    document = world.api.objects[f"{PODS}/web-0"]
    metadata = {**document["metadata"], "annotations": {MOVE_WINDOW_ANNOTATION: window}}
    world.api.put(PODS, document | {"metadata": metadata})


@pytest.fixture
async def world() -> World:
    made = World()
    annotate(made, NIGHT)
    await made.start()
    return made


async def rounds(world: World, seconds: float = 0.0) -> dict[str, Any]:
    world.api.now += seconds
    world.reserver.features.mover.arbitration.changed()  # type: ignore[union-attr]  # as its clock does
    await world.rounds(6)
    return world.status


async def test_a_move_waits_for_its_window_and_has_its_time_from_then_on(world: World) -> None:
    world.move()
    status = await rounds(world)
    assert (status["phase"], status["reason"]) == ("Pending", "WaitsForWindow")
    assert status["windowOpensAt"] == "2030-03-17T22:00:00Z"
    status = await rounds(world, 4 * HOUR)
    assert status["reason"] == "WaitsForWindow"
    assert not world.evictions
    await rounds(world, HOUR)
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
    assert "windowOpensAt" not in status
    assert status["windowOpenedAt"] >= "2030-03-17T22:00:00"
    assert {each["type"] for each in status["conditions"]} == {"WindowOpened", "Evicted", "Done"}


async def test_an_urgent_move_does_not_wait_and_may_be_made_urgent_later(world: World) -> None:
    world.move()
    assert (await rounds(world))["reason"] == "WaitsForWindow"
    world.edit(urgent=True)
    assert (await world.settle())["reason"] == "Landed"


@pytest.mark.parametrize("paused", [False, True])
async def test_an_urgent_move_takes_the_place_of_one_that_stands_still(
    world: World, *, paused: bool
) -> None:
    """Otherwise a tenant's idle move would keep its pod from maintenance for weeks."""
    if paused:
        annotate(world, "")
    world.move(name="first", paused=paused)
    await rounds(world)
    world.api.now += 1
    world.move(name="second")
    await rounds(world, 1)
    assert world.status_of("second")["reason"] == "MovedAlready"
    world.move(name="third", urgent=True)
    await world.settle()
    assert world.status_of("third")["reason"] == "Landed"
    first = world.status_of("first")
    assert (first["phase"], first["reason"]) == ("Aborted", "MovedAlready")
    assert first["message"] == "shop/third moves the pod already; wait for it, or delete it"
    assert "windowOpensAt" not in first


async def test_what_may_not_be_moved_any_more_is_not_evicted_and_keeps_its_seat_for_its_time(
    world: World,
) -> None:
    world.move(timeout="8h")
    await rounds(world)
    world.api.now = at("2030-03-17T22:00")
    while world.status.get("phase") not in {"Reserving", "Evicting"}:
        world.reserver.features.mover.arbitration.changed()  # type: ignore[union-attr]
        await world.round()
    world.api.now = at("2030-03-18T04:00")
    status = await rounds(world)
    assert not world.evictions
    assert (status["phase"], status["reason"]) == ("Evicting", "WaitsForWindow")
    status = await rounds(world, 2 * HOUR)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


async def test_an_open_window_is_judged_each_minute_as_clocks_are_corrected(world: World) -> None:
    """Until the window is judged again, its moves take no step: they did not even time out."""
    world.move()
    await rounds(world, 5 * HOUR)
    arbitration = world.reserver.features.mover.arbitration  # type: ignore[union-attr]
    arbitration.queue.take_all()
    assert 0 < arbitration.queue.wait_s() <= LOOK_AGAIN_S


async def test_a_broken_annotation_fails_its_move_at_its_deadline_with_the_reason(
    world: World,
) -> None:
    annotate(world, "at night")
    world.move()
    status = await rounds(world)
    assert (status["phase"], status["reason"]) == ("Pending", "WaitsForWindow")
    assert "'at night' is no window" in status["message"]
    status = await rounds(world, 601.0)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "'at night' is no window" in status["message"]


async def test_a_group_begins_once_the_windows_of_all_are_open() -> None:
    world = World(nodes=3)
    world.replicas = 2
    world.make_pod("worker-1")
    annotate(world, NIGHT)
    await world.start()
    for number in (0, 1):
        world.move(f"web-{number}", f"m-{number}", group={"name": "g", "size": 2})
    await rounds(world)
    for number in (0, 1):
        assert world.status_of(f"m-{number}")["reason"] == "WaitsForWindow"
    assert (
        "a move of its group waits: its move window opens at" in world.status_of("m-1")["message"]
    )
    await rounds(world, 5 * HOUR)
    await world.rounds(60)
    assert {world.status_of(f"m-{n}")["phase"] for n in (0, 1)} == {"Succeeded"}


async def test_a_fault_in_judging_a_window_keeps_its_move_alone(
    monkeypatch: pytest.MonkeyPatch, faults: Counter[str]
) -> None:
    world = World(nodes=3)
    world.others = ("db",)
    world.make_pod("worker-1", of="db")
    await world.start()
    whole = MoveWindows.of

    def broken(self: MoveWindows, pod: Pod, now: float) -> object:
        if pod.name.name.startswith("db"):
            raise RuntimeError("a bug")
        return whole(self, pod, now)

    monkeypatch.setattr(MoveWindows, "of", broken)
    world.move("db-1", "other")
    world.move()
    assert (await world.settle())["reason"] == "Landed"
    assert world.status_of("other")["message"] == "its move window cannot be judged"
    assert faults["move"]
    faults.clear()


@done_or_not
async def test_reserver_is_killed_at_every_write_and_still_keeps_the_window(
    *, is_done: bool
) -> None:
    async def begin() -> World:
        world = World()
        world.api.now = at("2030-03-17T21:59:54")
        annotate(world, NIGHT)
        await world.start()
        world.move()
        return world

    def judge_end(world: World) -> None:
        status = world.status
        assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
        assert world.nodes_of("web") == ["worker-2"]
        assert status["evictedAt"] >= status["startedAt"] >= "2030-03-17T22:00:00"
        assert "windowOpensAt" not in status

    assert await crash_at_each_write(begin, judge_end, is_done=is_done) >= 8
