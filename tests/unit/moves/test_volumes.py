"""A seat is one that the pod can use: its volumes do not come along."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.stores.object.codec import MOST_CLAIMS
from tests.unit.moves.api_server import CLAIMS, CSI_NODES, MOVES, PODS, SEATS, VOLUMES
from tests.unit.moves.test_closing import until
from tests.unit.moves.world import World

BLOCKED = ApiError(429, "TooManyRequests", "it would violate the pod's disruption budget")
ALL = ("worker-1", "worker-2", "worker-3")


async def made(*nodes: str, claims: tuple[str, ...] = ("data",)) -> World:
    """Return three nodes, and a pod on the first one whose volumes only these nodes can use."""
    world = World(nodes=3)
    world.is_strict, world.claims = True, claims
    world.api.remove(f"{PODS}/web-0")
    world.make_pod("worker-1")
    for claim in claims:
        world.add_volume(claim, *nodes)
    await world.start()
    return world


def name(world: World) -> str:
    return str(world.pods()[0]["metadata"]["name"])


@pytest.mark.parametrize("to", [{"node": "worker-2"}, {}, {"nodeSelector": {"host": "worker-2"}}])
async def test_a_pod_whose_volume_is_on_its_node_is_not_moved(to: dict[str, Any]) -> None:
    world = await made("worker-1")
    world.move(name(world), to=to)
    status = await world.settle(rounds=5)
    assert (status["phase"], status["reason"]) == ("Failed", "NotMovable")
    assert status["message"] == "its volume pv-data (claim data) is on worker-1 only"
    assert (len(world.evictions), SEATS in world.api.writes) == (0, False)


async def test_a_pod_goes_where_its_volume_can_be_used() -> None:
    world = await made("worker-1", "worker-3")
    world.move(name(world))
    status = await world.settle()
    assert (status["reason"], status["to"]) == ("Landed", "worker-3")


@pytest.mark.parametrize("more", [0, 1])
async def test_a_pod_with_more_volumes_than_a_seat_takes_is_not_moved(more: int) -> None:
    """The last volume was not in the seat, so that its node could not use it."""
    claims = tuple(f"d{n:02}" for n in range(MOST_CLAIMS + more))
    world = await made(*ALL, claims=claims)
    metadata = {"name": "move", "namespace": "shop", "uid": "0123456789"}
    world.api.add(MOVES, {"metadata": metadata, "spec": {"pod": {"name": name(world)}}})
    status = await world.settle(rounds=12)
    assert (status["reason"], len(world.evictions)) == [("Landed", 1), ("NotMovable", 0)][more]
    said = "it uses 33 PersistentVolumeClaims, and a seat takes 32 at most"
    assert status["message"] == said or not more


async def test_a_named_node_that_cannot_use_the_volume_is_refused_with_those_that_can() -> None:
    world = await made("worker-1", "worker-3")
    world.move(name(world), to={"node": "worker-2"})
    status = await world.settle(rounds=5)
    assert status["reason"] == "NotMovable"
    assert status["message"] == "its volume pv-data (claim data) is on worker-1, worker-3 only"


async def test_volumes_that_no_other_node_can_use_together_are_named_together() -> None:
    world = await made("worker-1", "worker-2", claims=("data", "logs"))
    volume = world.api.objects[f"{VOLUMES}/pv-logs"]
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    terms[0]["matchExpressions"][0]["values"] = ["worker-1", "worker-3"]
    world.api.put(VOLUMES, volume)
    world.move(name(world))
    status = await world.settle(rounds=5)
    together = "pv-data (claim data) and pv-logs (claim logs) are together on worker-1 only"
    assert (status["reason"], status["message"]) == ("NotMovable", f"its volumes {together}")


async def test_a_volume_of_another_zone_is_refused() -> None:
    world = await made(*ALL)
    volume = world.api.objects[f"{VOLUMES}/pv-data"]
    del volume["spec"]["nodeAffinity"]
    volume["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    world.api.put(VOLUMES, volume)
    for node, zone in zip(ALL, "aab", strict=True):
        document = world.api.objects[f"/api/v1/nodes/{node}"]
        document["metadata"]["labels"] |= {"topology.kubernetes.io/zone": zone}
        world.api.put("/api/v1/nodes", document)
    world.move(name(world), to={"node": "worker-3"})
    status = await world.settle(rounds=5)
    assert status["reason"] == "NotMovable"
    assert status["message"] == "its volume pv-data (claim data) is on worker-1, worker-2 only"


async def test_a_volume_that_is_bound_elsewhere_meanwhile_keeps_the_pod_where_it_is() -> None:
    world = await made(*ALL)
    world.move(name(world), to={"node": "worker-2"})
    world.api.refusals = [BLOCKED] * 9
    await until(world, "Evicting", "BudgetBlocks")
    world.api.remove(f"{CLAIMS}/data")
    world.api.remove(f"{VOLUMES}/pv-data")
    world.add_volume("data", "worker-1")
    sent = len(world.evictions)
    status = await world.settle(rounds=5)
    assert (status["phase"], status["reason"]) == ("Failed", "NotMovable")
    assert (len(world.evictions), world.nodes_of("web")) == (sent, ["worker-1"])


async def test_a_node_that_closes_after_the_eviction_is_left_for_one_with_the_volume() -> None:
    """worker-3 is empty, but cannot use the volume: the pod waits for worker-1."""
    world = await made("worker-1", "worker-2")
    world.schedules = False
    world.move(name(world), to={"node": "worker-2"})
    await until(world, "Landing")
    world.cordon("worker-2")
    await world.rounds(5, 1)
    (seat,) = world.api.of(SEATS)
    assert seat["status"]["placements"] == [{"node": "worker-1", "slots": 1}]
    world.schedules = True
    assert (await world.settle())["reason"] == "LandedElsewhere"
    assert world.nodes_of("web") == ["worker-1"]


async def test_a_claim_that_only_one_pod_may_use_is_free_for_its_replacement() -> None:
    world = await made(*ALL)
    claim = world.api.objects[f"{CLAIMS}/data"]
    claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
    world.api.put(CLAIMS, claim)
    world.move(name(world), to={"node": "worker-3"})
    assert (await world.settle())["reason"] == "Landed"


async def test_a_volume_that_is_made_anew_for_each_pod_keeps_nobody() -> None:
    world = await made("worker-1")
    pod = world.pods()[0]
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    world.api.put(PODS, pod)
    world.claims = ()
    world.add_volume(f"{name(world)}-scratch", "worker-1")
    world.move(name(world))
    assert (await world.settle())["reason"] == "Landed"


async def test_a_claim_that_is_being_deleted_keeps_its_pod_until_it_is_not() -> None:
    world = await made(*ALL)
    claim = world.api.objects[f"{CLAIMS}/data"]
    claim["metadata"]["deletionTimestamp"] = "2030-03-17T17:46:40Z"
    world.api.put(CLAIMS, claim)
    world.move(name(world))
    await world.rounds(8, 1)
    assert (world.status["reason"], len(world.evictions)) == ("WaitsForSeat", 0)
    assert 'persistentvolumeclaim "data" is being deleted' in world.status["message"]
    world.api.remove(f"{CLAIMS}/data")
    world.api.remove(f"{VOLUMES}/pv-data")
    world.add_volume("data", "worker-1", "worker-2")
    assert (await world.settle())["reason"] == "Landed"


async def test_one_pod_that_cannot_be_moved_keeps_its_whole_group() -> None:
    world = await made("worker-1")
    world.claims, world.others = (), ("b",)
    world.make_pod("worker-1", of="b")
    group = {"name": "drain", "size": 2}
    world.move(name(world), group=group)
    world.move(world.pods("b")[0]["metadata"]["name"], "other", group=group)
    await world.settle()
    assert world.status["reason"] == "NotMovable"
    await world.rounds(5)
    assert world.status_of("other")["reason"] == "GroupFailed"
    assert len(world.evictions) == 0


async def test_a_pod_without_a_node_has_room_held_only_where_its_volume_is() -> None:
    world = await made("worker-3")
    world.replicas, world.schedules = 2, False
    world.make_pod()
    waiting = world.pods()[1]["metadata"]["name"]
    world.move(waiting)
    await until(world, "Reserving", "WaitsForPod")
    (seat,) = world.api.of(SEATS)
    assert seat["status"]["placements"] == [{"node": "worker-3", "slots": 1}]


async def test_evict_only_asks_no_volume() -> None:
    world = await made("worker-1")
    world.move(name(world), mode="EvictOnly")
    await until(world, "Evicting")


async def test_a_node_that_can_attach_no_more_volumes_is_passed_over() -> None:
    """worker-2 can attach one volume, and has one already."""
    world = await made(*ALL)
    world.limit_volumes("worker-2", 1)
    world.claims, world.others = ("own",), ("b",)
    world.add_volume("own", *ALL)
    world.make_pod("worker-2", of="b")
    world.claims = ("data",)
    world.move(name(world))
    status = await world.settle()
    assert (status["reason"], status["to"]) == ("Landed", "worker-3")


async def test_a_named_node_that_can_attach_no_more_volumes_is_waited_for() -> None:
    world = await made(*ALL)
    world.limit_volumes("worker-2", 1)
    world.claims, world.others = ("own",), ("b",)
    world.add_volume("own", *ALL)
    world.make_pod("worker-2", of="b")
    world.claims = ("data",)
    world.move(name(world), to={"node": "worker-2"})
    await world.rounds(8, 1)
    assert (world.status["reason"], len(world.evictions)) == ("WaitsForSeat", 0)
    assert "exceed max volume count" in world.status["message"]
    world.others = ()
    world.api.remove(f"{PODS}/{world.pods('b')[0]['metadata']['name']}")
    assert (await world.settle())["reason"] == "Landed"


async def test_a_volume_that_is_attached_there_already_counts_once() -> None:
    world = await made(*ALL)
    world.limit_volumes("worker-2", 1)
    world.others = ("b",)
    world.make_pod("worker-2", of="b")  # The pod uses the same claim.
    world.move(name(world), to={"node": "worker-2"})
    assert (await world.settle())["reason"] == "Landed"


async def test_two_seats_do_not_count_on_the_same_attachment() -> None:
    """Each node can attach one volume, and two pods move to two other nodes."""
    world = await made(*ALL)
    for node in ALL[1:]:
        world.limit_volumes(node, 1)
    world.claims, world.others = ("own",), ("b",)
    world.add_volume("own", *ALL)
    world.make_pod("worker-1", of="b")
    group = {"name": "drain", "size": 2}
    world.claims = ("data",)
    world.schedules = False
    world.move(name(world), group=group)
    world.move(world.pods("b")[0]["metadata"]["name"], "other", group=group)
    await world.rounds(6, 1)
    placed = [seat["status"]["placements"][0]["node"] for seat in world.api.of(SEATS)]
    assert sorted(placed) == ["worker-2", "worker-3"]


async def test_a_node_without_a_limit_attaches_all() -> None:
    world = await made(*ALL)
    document = {"metadata": {"name": "worker-2"}, "spec": {"drivers": [{"name": "disks"}]}}
    world.api.add(CSI_NODES, document)
    world.move(name(world), to={"node": "worker-2"})
    assert (await world.settle())["reason"] == "Landed"


async def test_a_claim_that_names_its_volume_is_judged_before_it_is_said_to_be_bound() -> None:
    world = await made("worker-1")
    claim = world.api.objects[f"{CLAIMS}/data"]
    del claim["metadata"]["annotations"]
    world.api.put(CLAIMS, claim)
    world.move(name(world), to={"node": "worker-2"})
    status = await world.settle(rounds=5)
    assert (status["reason"], len(world.evictions)) == ("NotMovable", 0)
