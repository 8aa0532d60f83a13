"""PodMoves that fail, or that wait until their deadline."""

from typing import Any

import pytest

from reserver.errors import ApiError
from tests.unit.moves.api_server import PODS, SEATS, Document
from tests.unit.moves.mover.plans import BLOCKED, planned
from tests.unit.moves.world import World

FORBIDDEN = ApiError(403, "Forbidden", "a webhook says no")


async def test_a_seat_that_the_quota_would_never_admit_fails_its_move_at_once() -> None:
    world = World()
    world.quota = "reservations=0"
    await world.start()
    world.move()
    status = await world.settle(rounds=10)
    assert (status["phase"], status["reason"]) == ("Failed", "SeatRefused")
    assert "exceeded quota: default, requested: reservations=1" in status["message"]
    assert not world.evictions


async def test_an_eviction_that_is_refused_for_good_releases_the_seat(world: World) -> None:
    world.move()
    world.api.refusals = [FORBIDDEN]
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "EvictionRefused")
    assert "a webhook says no" in status["message"]
    assert len(world.api.of(PODS)) == 1


async def test_a_move_ends_at_its_deadline_and_says_what_it_waited_for(world: World) -> None:
    world.move(timeout="5s")
    world.api.refusals = [BLOCKED] * 9
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "Evicting" in status["message"]


async def test_a_workload_that_is_scaled_to_zero_is_not_replaced(world: World) -> None:
    world.move()
    world.schedules = False
    for _ in range(20):
        await world.round()
        world.api.now += 1
        if world.status.get("phase") == "Landing":
            world.replicas = 0
    assert (world.status["phase"], world.status["reason"]) == ("Succeeded", "NotReplaced")
    assert not world.api.of(SEATS)


@pytest.mark.parametrize(
    ("node", "phase"), [("worker-1", "Failed"), ("worker-3", "Failed"), ("worker-2", "Succeeded")]
)
@pytest.mark.parametrize("seconds", [0.3, 2.0])
async def test_a_replacement_that_another_scheduler_binds_is_one_though_it_came_early(
    node: str, phase: str, seconds: float
) -> None:
    """It was created before its pod was seen to go, and the move said that there is none."""
    world = World(nodes=3)
    await world.start()
    world.schedules = False
    world.move(to={"node": "worker-2"})
    while world.status.get("phase") != "Landing":
        await world.rounds(1, seconds)
    (pod,) = world.pods()
    assert pod["metadata"]["creationTimestamp"][:19] <= world.status["evictedAt"][:19]
    world.api.put(PODS, pod | {"spec": pod["spec"] | {"nodeName": node}})
    status = await world.settle(rounds=3)
    assert (status["phase"], status["reason"], status["to"]) == (phase, "LandedElsewhere", node)


async def test_an_older_sibling_replaces_nobody(world: World) -> None:
    world.make_pod("worker-1")
    world.replicas = 2
    world.api.now += 60
    world.move()
    world.schedules = False
    while world.status.get("phase") != "Landing":
        await world.rounds(1, 1)
    world.replicas = 1
    assert (await world.settle())["reason"] == "NotReplaced"


async def test_a_named_node_that_is_not_there_evicts_nobody(world: World) -> None:
    world.move(to={"node": "worker-9"})
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "SeatImpossible")
    assert "no node worker-9" in status["message"]


@pytest.mark.parametrize("others", [[], [{"key": "gpu", "effect": "NoSchedule"}]])
async def test_a_cordon_that_was_lifted_is_waited_for_until_its_taint_is_gone(
    world: World, others: list[dict[str, str]]
) -> None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    node = world.api.objects["/api/v1/nodes/worker-2"]
    world.api.put("/api/v1/nodes", node | {"spec": {"taints": [cordon, *others]}})
    world.move(to={"node": "worker-2"})
    await world.rounds(10, 1)
    assert (world.status["phase"], world.status["reason"]) == ("Reserving", "WaitsForSeat")
    assert "untolerated taint" in world.status["message"]
    world.api.put("/api/v1/nodes", node | {"spec": {"taints": others}})
    status = await world.settle()
    assert status["reason"] == ("SeatImpossible" if others else "Landed")


async def test_labels_that_no_node_has_wait_until_the_deadline(world: World) -> None:
    world.move(to={"nodeSelector": {"zone": "a"}}, timeout="10s")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert not world.evictions


async def test_a_move_that_cannot_be_read_says_so_and_costs_no_other(world: World) -> None:
    world.move(to={"nodeSelector": {"not a label": "x"}})
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidSpec")
    assert "spec.to.nodeSelector" in status["message"]
    world.edit(to={"nodeSelector": {}})
    await world.rounds(3)
    assert world.status["message"] == status["message"]  # And not that its reason is unknown.


@pytest.mark.parametrize(
    ("pods", "node", "said"),
    [
        (2, {}, "worker-2 has no room for it any more"),
        (0, {"unschedulable": True}, "cordoned"),
        (0, {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "taint"),
        (0, None, "there is no node worker-2"),
    ],
    ids=["full", "cordoned", "tainted", "gone"],
)
async def test_a_move_of_a_plan_fails_before_it_begins_if_its_node_is_not_as_supposed(
    world: World, pods: int, node: dict[str, Any] | None, said: str
) -> None:
    for _ in range(pods):
        world.make_pod("worker-2")
    world.replicas += pods
    if node is None:
        world.api.remove("/api/v1/nodes/worker-2")
    else:
        document = world.api.objects["/api/v1/nodes/worker-2"]
        world.api.put("/api/v1/nodes", document | {"spec": node})
    planned(world)
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "PlanOutdated")
    assert said in status["message"]
    assert SEATS not in world.api.writes


async def test_a_replacement_has_a_seat_though_the_first_one_expired_before_anybody_looked(
    world: World,
) -> None:
    """Reserver was away for longer than the seat lasts; the second one had expired at once."""
    world.move()
    world.schedules = False
    while not world.evictions:
        await world.round()
    world.api.now += 3600
    (expired,) = world.api.of(SEATS)
    world.api.remove(f"{SEATS}/{expired['metadata']['name']}")  # By the cleaner.
    await world.start()
    await world.rounds(12, 1)
    assert world.status["reason"] == "WaitsForReplacement"
    (pod,) = world.reserver.state.pods.values()
    assert [seat.node for seat in world.reserver.state.ledger.seats(pod)] == ["worker-2"]
    world.schedules = True
    assert (await world.settle())["reason"] == "Landed"


class Stateful(World):
    """A StatefulSet of one pod."""

    def make_pod(self, node: str = "", of: str = "web") -> Document:
        made = super().make_pod(node, of)
        self.api.remove(f"{PODS}/{made['metadata']['name']}")
        owner: Document = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": of}
        owner |= {"uid": "u", "controller": True}
        metadata = {"name": f"{of}-0", "namespace": "shop", "ownerReferences": [owner]}
        wanted = {"metadata": {"name": of}, "spec": {"replicas": 1}}
        self.api.objects[f"/apis/apps/v1/namespaces/shop/statefulsets/{of}"] = wanted
        return self.api.add(PODS, {"metadata": metadata, "spec": made["spec"]})


async def test_a_pod_of_a_stateful_set_is_replaced_though_the_clock_was_set_back() -> None:
    """The replacement was taken for an older pod until the move timed out."""
    world = Stateful()
    await world.start()
    world.move(mode="EvictOnly")
    world.replicas = 0
    await world.rounds(10)
    assert world.status["phase"] == "Landing"
    world.api.now -= 3600
    world.replicas = 1
    assert (await world.settle())["reason"] == "Landed"


async def test_a_pod_that_was_replaced_while_nobody_looked_is_not_said_to_have_no_replacement(
    world: World,
) -> None:
    """Reserver is killed just after an eviction without a seat, and is back a minute later."""
    world.move(mode="EvictOnly")
    for _ in range(9):
        if world.status.get("phase") == "Evicting":
            break
        await world.round()
    assert world.status["phase"] == "Evicting"
    world.api.now += 1.0
    world.api.remove(f"{PODS}/web-0")
    world.make_pod("worker-2")
    world.api.now += 60.0
    await world.start()
    status = await world.settle()
    assert (status["phase"], status["to"]) == ("Succeeded", "worker-2")
    assert status["reason"] != "NotReplaced"
