"""PodMoves are carried out, whatever comes in between, and whenever Reserver is killed."""

import json
from unittest.mock import ANY

import pytest

from reserver.base.pacer import Pacer
from reserver.cluster.pod import PodName
from reserver.stores.object import codec as reservation
from tests.unit.k8s.crashes import crash_at_each_write, done_or_not
from tests.unit.moves.api_server import MOVES, PODS, SEATS
from tests.unit.moves.mover.plans import BLOCKED, planned
from tests.unit.moves.world import World


async def test_a_pod_moves_to_its_seat_and_nothing_is_left(world: World) -> None:
    world.move()
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
    assert (status["from"], status["to"]) == ("worker-1", "worker-2")
    assert status["replacement"]["node"] == "worker-2"
    assert world.evictions == ["web-0"]


async def test_a_sibling_that_was_made_a_moment_ago_is_no_replacement(world: World) -> None:
    world.replicas = 2
    world.make_pod("worker-1")
    world.move()
    world.schedules = False
    while world.status.get("phase") != "Landing":
        await world.round()
    await world.rounds(3)
    world.schedules = True
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
    assert status["replacement"] == {"name": "web-2", "uid": ANY, "node": "worker-2"}


async def test_what_a_write_follows_from_is_written_before_it(world: World) -> None:
    world.move()
    await world.settle()
    mine = [write for write in world.api.writes if "/reservations/" not in write]
    before_seat, before_eviction = mine.index(SEATS), mine.index(f"{PODS}/web-0/eviction")
    assert 0 < before_seat < before_eviction
    assert f"{MOVES}/move" in mine[before_seat + 1 : before_eviction]


@done_or_not
async def test_reserver_is_killed_at_every_write_in_turn(*, is_done: bool) -> None:
    async def begin() -> World:
        world = World()
        await world.start()
        world.move()
        return world

    def judge(world: World) -> None:
        assert (world.status["phase"], world.status["reason"]) == ("Succeeded", "Landed")
        assert world.nodes_of("web") == ["worker-2"]

    assert await crash_at_each_write(begin, judge, is_done=is_done) >= 7


async def test_moves_wait_for_one_another_while_the_quota_has_room_for_one_seat() -> None:
    world = World()
    world.quota, world.replicas = "reservations=1", 2
    world.make_pod("worker-1")
    await world.start()
    world.move()
    world.move("web-1", "other")
    while world.api.objects[f"{MOVES}/other"].get("status", {}).get("phase") != "Succeeded":
        await world.round()
    assert world.status["reason"] == "Landed"


async def test_an_eviction_that_a_budget_blocks_is_sent_again_later_each_time(
    world: World,
) -> None:
    world.move()
    world.api.refusals = [BLOCKED] * 3
    status = await world.settle()
    assert status["reason"] == "Landed"
    assert len(world.evictions) == 4


async def test_an_eviction_is_sent_again_though_the_clock_was_set_back(world: World) -> None:
    """It waited for as long as the clock was set back."""
    world.move()
    world.api.refusals = [BLOCKED]
    while not world.evictions:
        await world.round()
    await world.rounds(2)
    world.api.now -= 3600
    assert (await world.settle())["reason"] == "Landed"


async def test_a_reservation_that_has_the_name_of_the_seat_is_left_alone(world: World) -> None:
    world.move()
    uid = world.api.objects[f"{MOVES}/move"]["metadata"]["uid"]
    spec = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "1"}, "node": "worker-2"}
    seat = {"metadata": {"name": f"move-{uid[:8]}", "namespace": "shop"}, "spec": spec}
    world.api.add(SEATS, seat)
    await world.rounds(10, 1)
    assert (world.status["phase"], world.status["reason"]) == ("Failed", "SeatRefused")
    assert len(world.api.of(SEATS)) == 1


async def test_a_move_is_kept_for_as_long_as_it_says(world: World) -> None:
    world.move(ttlSecondsAfterFinished=60)
    await world.settle()
    world.api.now += 50
    await world.round()
    assert world.api.of(MOVES)
    world.api.now += 11
    await world.round()
    assert not world.api.of(MOVES)


async def test_a_paused_move_takes_no_seat_until_it_goes_on(world: World) -> None:
    world.move(paused=True)
    await world.rounds(5)
    assert (world.status["phase"], world.status["reason"]) == ("Pending", "Paused")
    world.edit(paused=False)
    assert (await world.settle())["reason"] == "Landed"


async def test_a_seat_that_goes_before_its_claim_is_seen_is_no_failure(world: World) -> None:
    """The watch of Reservations may be ahead of the watch of pods."""
    world.move()
    world.schedules = False
    await world.rounds(20, 0.1)
    assert world.status["phase"] == "Landing"
    (seat,) = world.api.of(SEATS)
    (identity,) = [each.identity for each, _ in world.reserver.state.ledger]
    world.api.remove(f"{SEATS}/{seat['metadata']['name']}")
    await world.round()
    assert world.status["phase"] == "Landing"
    (pod,) = world.api.of(PODS)
    pod["spec"]["nodeName"] = "worker-2"
    pod["metadata"]["annotations"] = {"reserver.io/claims": json.dumps([identity])}
    world.api.put(PODS, pod)
    assert (await world.settle())["reason"] == "Landed"


async def test_a_lost_seat_is_written_again_though_the_clock_was_set_back(world: World) -> None:
    """An evicted pod was without a seat for as long as the clock was set back."""
    world.move()
    world.schedules = False
    await world.rounds(20, 0.1)
    (seat,) = world.api.of(SEATS)
    world.api.remove(f"{SEATS}/{seat['metadata']['name']}")
    await world.round()
    world.api.now -= 3600
    await world.rounds(5, 0.1)
    assert len(world.api.of(SEATS)) == 1


async def test_nobody_is_evicted_for_a_seat_that_may_be_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seat is removed while the watch of Reservations is broken."""
    monkeypatch.setattr("reserver.process.readiness.STALE_AFTER_S", 0.0)  # Wait for no watch.
    world.move()
    while world.status.get("phase") != "Evicting":
        await world.round()
    (seat,) = world.api.of(SEATS)
    world.api.remove(f"{SEATS}/{seat['metadata']['name']}")
    world.break_watch(reservation.COLLECTION)
    mover = world.reserver.features.mover
    assert mover is not None
    for _ in range(3):
        await mover.arbitration.look(Pacer())
        await mover.step(PodName("shop", "move"))
    assert not world.evictions
    world.mend_watch(reservation.COLLECTION)
    assert (await world.settle())["reason"] == "Landed"


async def test_nobody_is_evicted_while_etcd_may_be_another_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server keeps the request, for an etcd that may come back as it was before."""
    world.move()
    while world.status.get("phase") != "Evicting":
        await world.round()

    async def silent(*_: object) -> bool:
        return False

    with monkeypatch.context() as patched:
        patched.setattr("tests.unit.moves.world.SteadyEtcd.agrees", silent)
        await world.rounds(3)
    assert not world.evictions
    assert (await world.settle())["reason"] == "Landed"


async def test_a_pod_without_a_node_has_room_held_until_it_lands_there(world: World) -> None:
    world.replicas, world.schedules = 2, False
    world.make_pod()
    world.move("web-1", to={"node": "worker-1"})
    await world.rounds(5)
    assert (world.status["phase"], world.status["reason"]) == ("Reserving", "WaitsForPod")
    assert len(world.api.of(SEATS)) == 1
    world.schedules = True
    status = await world.settle()
    assert (status["phase"], status["reason"], status["to"]) == ("Succeeded", "Landed", "worker-1")
    assert not world.evictions


async def test_room_on_a_node_that_is_named_is_held_there_before_there_is_any(world: World) -> None:
    world.replicas, world.schedules = 3, False
    world.make_pod("worker-1")
    world.make_pod()
    world.move("web-2", to={"node": "worker-1"})
    await world.rounds(5)
    assert (world.status["phase"], world.status["reason"]) == ("Reserving", "WaitsForSeat")
    (seat,) = world.api.of(SEATS)
    assert seat["status"]["placements"] == [{"node": "worker-1", "slots": 1}]
    world.replicas, world.schedules = 2, True
    world.api.remove(f"{PODS}/web-1")
    status = await world.settle()
    assert (status["reason"], status["to"]) == ("Landed", "worker-1")


async def test_room_that_another_move_is_to_leave_counts_as_there(world: World) -> None:
    for _ in range(2):
        world.make_pod("worker-2")
    world.replicas = 3
    world.move("web-1", name="leaves", paused=True)
    planned(world)
    await world.rounds(3)
    assert (world.status["phase"], world.status["reason"]) == ("Reserving", "WaitsForSeat")
    await world.rounds(2)
    (seat,) = world.api.of(SEATS)
    assert seat["status"]["placements"] == [{"node": "worker-2", "slots": 1}]
    assert world.status["to"] == "worker-2"
