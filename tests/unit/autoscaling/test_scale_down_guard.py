"""The nodes that are protected from scale-down, and the duration."""

from __future__ import annotations

import dataclasses
from typing import Any

from reserver.autoscaling.scale_down_guard import AFTER_S, ScaleDownGuard
from reserver.k8s.objects.nodes import KEEPING, KEPT
from reserver.k8s.work_queue import WorkQueue
from tests.builders import NOW, node, reservation, state_of
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import Request, ScriptedClient, refused

HOLD = reservation("held", node="worker-1", cpu="1", expires=NOW + 60)
ALL = {KEPT: ",".join(KEEPING), **dict.fromkeys(KEEPING, "true")}


def shown(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": "worker-1", "resourceVersion": "7", "annotations": annotations}}


class Desk:
    """A node of a cluster, and the guard that keeps the node."""

    def __init__(self, *script: Any, is_kept: bool = False) -> None:
        self.time = ManualTime()
        self.client = ScriptedClient(*script)
        queue = WorkQueue[str]("guard", time=self.time)
        self.state = state_of()
        self.hosts: set[str] = set()
        self.guard = ScaleDownGuard(self.client, self.state, self.hosts.__contains__, queue)
        self._queue = queue
        self.see(is_kept=is_kept)

    def see(self, *, is_kept: bool) -> None:
        self.state.node_seen(dataclasses.replace(node("worker-1", cpu="4"), is_kept=is_kept))

    def hold(self) -> None:
        self.state.ledger.put(HOLD)
        self.guard.on_reservation_changed(HOLD.ref)

    def release(self) -> None:
        self.state.ledger.drop(HOLD.ref)
        self.guard.on_node_changed("worker-1")

    async def work(self, seconds: float = AFTER_S) -> list[Request]:
        """Advance the clock, in seconds; return the patches that follow."""
        self.client.requests.clear()
        self.time.now += seconds
        await worked_off(self.guard.run(), self._queue)
        return [each for each in self.client.requests if each.verb == "patch"]


async def test_a_node_is_kept_for_as_long_as_something_is_held_there() -> None:
    desk = Desk(shown(), {}, shown(**ALL), {})
    desk.hold()
    (patch,) = await desk.work()
    assert patch.path == "/api/v1/nodes/worker-1"
    assert patch.body == {"metadata": {"resourceVersion": "7", "annotations": ALL}}
    desk.see(is_kept=True)
    desk.release()
    (patch,) = await desk.work()
    assert patch.body["metadata"]["annotations"] == dict.fromkeys(ALL)
    assert desk.guard.writes == 2


async def test_a_node_is_kept_for_who_is_there_too() -> None:
    desk = Desk(shown(), {}, shown(**ALL), {})
    desk.hosts.add("worker-1")
    desk.guard.on_node_changed("worker-1")
    (patch,) = await desk.work()
    assert patch.body["metadata"]["annotations"] == ALL
    desk.see(is_kept=True)
    desk.hold()
    desk.hosts.clear()
    desk.guard.on_node_changed("worker-1")
    assert await desk.work() == []  # The node is held now.
    desk.release()
    assert len(await desk.work()) == 1


async def test_a_hold_that_comes_and_goes_costs_nothing() -> None:
    desk = Desk()
    desk.hold()
    desk.release()
    assert await desk.work() == []
    assert desk.client.requests == []


async def test_after_a_restart_what_is_kept_and_held_no_more_is_let_go() -> None:
    desk = Desk(shown(**ALL), {}, is_kept=True)
    desk.guard.on_node_changed("worker-1")
    assert len(await desk.work()) == 1


async def test_who_writes_the_node_meanwhile_is_not_overwritten() -> None:
    mine = {KEEPING[0]: "false"}
    desk = Desk(shown(), refused(409, "Conflict"), shown(**mine), {})
    desk.hold()
    assert len(await desk.work()) == 1
    (patch,) = await desk.work()
    assert patch.body["metadata"]["annotations"] == {KEPT: KEEPING[1], KEEPING[1]: "true"}


async def test_a_node_that_cannot_be_written_is_written_later_and_one_that_is_gone_is_not() -> None:
    desk = Desk(shown(), refused(403, "Forbidden"), shown(), {}, refused(404, "NotFound"))
    desk.hold()
    await desk.work()
    assert len(await desk.work(60)) == 1
    desk.hold()
    desk.release()
    desk.see(is_kept=True)
    desk.guard.on_node_changed("worker-1")
    assert await desk.work() == []
    assert await desk.work(600) == []
