"""The node of a seat closes, goes, or is taken: before the eviction, and after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from reserver.base.pacer import Pacer
from reserver.errors import ApiError
from tests.unit.k8s.crashes import crash_at_each_write, done_or_not
from tests.unit.moves.api_server import PODS, SEATS
from tests.unit.moves.world import World

BLOCKED = ApiError(429, "TooManyRequests", "it would violate the pod's disruption budget")
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
FRESH = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
DEDICATED = {"key": "gpu", "effect": "NoSchedule"}
REMOVED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}

PASSING: dict[str, dict[str, Any] | None] = {
    "cordoned": {"unschedulable": True, "taints": [CORDON]},
    "not ready": {"taints": [NOT_READY]},
    "just joined": {"taints": [NOT_READY, FRESH]},
}
LASTING: dict[str, dict[str, Any] | None] = {
    "tainted": {"taints": [DEDICATED]},
    "cordoned and tainted": {"unschedulable": True, "taints": [CORDON, DEDICATED]},
    "removed by an autoscaler": {"taints": [REMOVED]},
    "deleted": None,
}


def close(world: World, node: str, how: dict[str, Any] | None) -> None:
    if how is None:
        world.api.remove(f"/api/v1/nodes/{node}")
    else:
        world.change_node(node, how)


def fill(world: World, node: str) -> None:
    """Fill a node with pods that no move moves."""
    world.others = (*world.others, *(f"full{len(world.others) + i}" for i in range(2)))
    for name in world.others[-2:]:
        world.make_pod(node, of=name)


async def until(world: World, phase: str, reason: str = "") -> None:
    for _ in range(30):
        if world.status.get("phase") == phase and reason in {"", world.status["reason"]}:
            return
        await world.round()
        world.api.now += 1
    raise AssertionError(f"{world.status}")


async def made(nodes: int = 3, **to: Any) -> World:
    """Return a world with a move from worker-1, for which worker-2 and worker-3 are left."""
    world = World(nodes=nodes)
    world.is_strict = True
    await world.start()
    world.move(to=to)
    return world


@pytest.mark.parametrize("how", PASSING)
@pytest.mark.parametrize("begins_closed", [True, False])
async def test_a_named_node_is_waited_for_while_it_is(how: str, *, begins_closed: bool) -> None:
    world = await made(node="worker-2")
    world.api.refusals = [BLOCKED] * 2
    if not begins_closed:
        await until(world, "Evicting")
    close(world, "worker-2", PASSING[how])
    await until(world, "Reserving", "WaitsForSeat")
    await world.rounds(20, 1)
    assert world.status["reason"] == "WaitsForSeat"
    assert "worker-2 does not accept the pod: it" in world.status["message"]
    before = len(world.evictions)
    world.change_node("worker-2", {})
    assert (await world.settle())["reason"] == "Landed"
    assert world.nodes_of("web") == ["worker-2"]
    assert before < len(world.evictions)


@pytest.mark.parametrize("how", PASSING)
async def test_a_named_node_that_stays_closed_ends_the_move_at_its_time(how: str) -> None:
    world = await made(node="worker-2")
    close(world, "worker-2", PASSING[how])
    world.edit(timeout="10s")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "worker-2 does not accept the pod" in status["message"]
    assert (len(world.evictions), world.nodes_of("web")) == (0, ["worker-1"])


@pytest.mark.parametrize("how", LASTING)
async def test_a_named_node_that_will_not_open_ends_the_move_at_once(how: str) -> None:
    world = await made(node="worker-2")
    world.api.refusals = [BLOCKED] * 9
    await until(world, "Evicting")
    sent = len(world.evictions)
    close(world, "worker-2", LASTING[how])
    status = await world.settle(rounds=5)
    assert (status["phase"], status["reason"]) == ("Failed", "SeatImpossible")
    assert (len(world.evictions), world.nodes_of("web")) == (sent, ["worker-1"])


@pytest.mark.parametrize("how", PASSING | LASTING)
async def test_a_seat_on_any_node_goes_to_another_one_before_the_eviction(how: str) -> None:
    world = await made()
    world.api.refusals = [BLOCKED]
    await until(world, "Evicting")
    closed = world.status["to"]
    (open_,) = {"worker-2", "worker-3"} - {closed}
    close(world, closed, (PASSING | LASTING)[how])
    status = await world.settle()
    assert (status["phase"], status["reason"], status["to"]) == ("Succeeded", "Landed", open_)


def remove_seat(world: World) -> None:
    (seat,) = world.api.of(SEATS)
    world.api.remove(f"{SEATS}/{seat['metadata']['name']}")


def remove_both(world: World, node: str) -> None:
    remove_seat(world)
    close(world, node, None)


CLOSINGS: dict[str, Callable[[World], None]] = {
    **{how: partial(close, node="worker-2", how=spec) for how, spec in (PASSING | LASTING).items()},
    "full of what no hold keeps away": lambda world: fill(world, "worker-2"),
    "gone, and so is the seat: somebody removed it": lambda world: remove_both(world, "worker-2"),
}
TARGETS: dict[str, dict[str, Any]] = {
    "a named node": {"node": "worker-2"},
    "labels": {"nodeSelector": {"host": "worker-2"}},
}


@pytest.mark.parametrize("left", ["worker-3", "worker-1"])
@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("how", CLOSINGS)
async def test_who_was_evicted_has_another_seat_once_its_node_is(
    how: str, to: str, left: str
) -> None:
    """One other node has room: the third node, or the node that the pod has left."""
    world = await made(**TARGETS[to])
    world.schedules = False
    for node in {"worker-1", "worker-3"} - {left}:
        fill(world, node)
    await until(world, "Landing")
    CLOSINGS[how](world)
    await world.rounds(12, 1)
    (seat,) = world.api.of(SEATS)
    assert seat["status"]["placements"] == [{"node": left, "slots": 1}]
    assert world.status["phase"] == "Landing"
    world.schedules = True
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "LandedElsewhere")
    assert (status["to"], world.nodes_of("web")) == (left, [left])


@pytest.mark.parametrize("how", ["cordoned", "deleted", "tainted"])
async def test_a_seat_is_kept_until_there_is_another_place(how: str) -> None:
    """No node has room: the seat stays, reports this, and moves to the first node with room."""
    world = await made(node="worker-2")
    world.schedules = False
    await until(world, "Landing")
    fill(world, "worker-1")
    fill(world, "worker-3")
    close(world, "worker-2", (PASSING | LASTING)[how])
    await world.rounds(10, 1)
    assert (world.status["phase"], world.status["reason"]) == ("Landing", "SeatLost")
    assert "worker-2" in world.status["message"] or how == "deleted"
    assert "Insufficient cpu" in world.status["message"]
    (seat,) = world.api.of(SEATS)
    assert seat["status"]["placements"] == [{"node": "worker-2", "slots": 1}]
    gone = world.others[-1]
    world.others = world.others[:-1]
    world.api.remove(f"{PODS}/{world.pods(gone)[0]['metadata']['name']}")
    await world.rounds(3)
    world.schedules = True
    status = await world.settle()
    assert (status["reason"], world.nodes_of("web")) == ("LandedElsewhere", ["worker-3"])


async def test_a_node_that_opens_again_has_its_seat_still() -> None:
    world = await made(node="worker-2")
    world.schedules = False
    await until(world, "Landing")
    fill(world, "worker-1")
    fill(world, "worker-3")
    close(world, "worker-2", PASSING["not ready"])
    await until(world, "Landing", "SeatLost")
    world.change_node("worker-2", {})
    world.schedules = True
    assert (await world.settle())["reason"] == "Landed"


async def test_a_seat_that_somebody_removes_is_written_again_for_the_replacement() -> None:
    world = await made(node="worker-2")
    world.schedules = False
    await until(world, "Landing")
    remove_seat(world)
    await until(world, "Landing", "SeatLost")
    world.schedules = True
    status = await world.settle()
    assert (status["phase"], status["reason"], status["to"]) == ("Succeeded", "Landed", "worker-2")


async def test_who_is_evicted_at_the_last_moment_has_its_seat_as_long_again() -> None:
    world = await made(node="worker-2")
    world.schedules = False
    world.edit(timeout="20s")
    created = world.api.now
    await until(world, "Evicting")
    world.api.now = created + 19.5
    await until(world, "Landing")
    while world.api.now < created + 35:
        await world.round()
        world.api.now += 1
    assert world.status["phase"] == "Landing"
    assert len(world.api.of(SEATS)) == 1
    world.schedules = True
    assert (await world.settle())["reason"] == "Landed"


async def test_a_move_that_ends_while_its_replacement_waits_says_that_it_has_no_seat() -> None:
    world = await made(node="worker-2")
    world.schedules = False
    world.edit(timeout="5s")
    await until(world, "Landing")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "web-1 waits for a node, and has no seat any more" in status["message"]


@pytest.mark.parametrize("how", ["cordoned", "deleted", "tainted"])
async def test_another_seat_is_held_before_anything_is_written(how: str) -> None:
    """A Filter call for a stranger requests the same room at the same moment."""
    world = await made(nodes=2, node="worker-2")
    world.schedules = False
    await until(world, "Landing")
    await world.round()
    written = len(world.api.writes)
    close(world, "worker-2", (PASSING | LASTING)[how])
    world.watch()
    await world.reserver.placer.look(world.reserver.state, Pacer())
    assert world.reserver.state.ledger.held_on("worker-1")["cpu"] == 2000
    assert len(world.api.writes) == written


async def test_where_a_seat_was_placed_anew_is_known_to_who_comes_after_a_crash() -> None:
    world = await made(nodes=2, node="worker-2")
    world.schedules = False
    await until(world, "Landing")
    world.cordon("worker-2")
    await world.rounds(3)
    await world.start()
    await world.round()
    assert world.reserver.state.ledger.held_on("worker-1")["cpu"] == 2000
    world.schedules = True
    assert (await world.settle())["reason"] == "LandedElsewhere"


@done_or_not
@pytest.mark.parametrize("how", ["cordoned", "deleted", "tainted"])
async def test_reserver_is_killed_at_every_write_while_a_node_closes(
    how: str, *, is_done: bool
) -> None:
    class Closing(World):
        """The named node closes once the pod has left."""

        has_closed = False

        def _schedule(self) -> None:
            if self.has_closed:
                super()._schedule()
            elif any(not node for node in self.nodes_of("web")):
                self.has_closed = True
                close(self, "worker-2", (PASSING | LASTING)[how])

    async def begin() -> World:
        world = Closing(nodes=3)
        world.is_strict = True
        await world.start()
        fill(world, "worker-1")
        world.watch()
        world.move(to={"node": "worker-2"})
        return world

    def judge(world: World) -> None:
        assert world.status["reason"] == "LandedElsewhere"
        assert world.nodes_of("web") == ["worker-3"]

    assert await crash_at_each_write(begin, judge, is_done=is_done) >= 8
