"""A copy of a pod becomes ready and takes over before the pod is removed."""

from collections.abc import Mapping

import pytest

from reserver.errors import ApiError
from tests.unit.k8s.crashes import crash_at_each_write, done_or_not
from tests.unit.moves.api_server import PODS, Document
from tests.unit.moves.surge_world import DEPLOYMENT, HASH, SurgeWorld, deployment
from tests.unit.moves.surging.copies import (
    UNFIT,
    begun,
    beside_one_that_is_not_ready,
    copying,
    moved,
    sized,
    until,
)


async def test_a_copy_is_ready_and_adopted_before_the_pod_is_removed() -> None:
    world = await begun()
    status = await world.settle()
    moved(world)
    assert not world.evictions
    assert (status["from"], status["to"]) == ("worker-1", "worker-2")
    assert status["replacement"]["name"] == world.pods()[0]["metadata"]["name"]
    assert [each["type"] for each in status["conditions"]] == ["Surged", "Evicted", "Done"]


@done_or_not
async def test_reserver_is_killed_at_every_write_of_a_surge(*, is_done: bool) -> None:
    assert await crash_at_each_write(begun, moved, is_done=is_done) >= 10


async def test_the_copy_has_all_labels_but_the_hash_from_the_beginning() -> None:
    world = await begun()
    await until(world, "HandingOver")
    (copy,) = world.copies()
    assert copy["metadata"]["labels"] == {"app": "web"}
    assert len(world.service()) == 2


async def test_a_copy_has_to_be_ready_for_as_long_as_its_replica_set_asks_for() -> None:
    """The pods are ready since forty seconds before the start."""
    world = await begun(minReadySeconds=120)
    await world.rounds(15)
    assert (world.status["phase"], world.status["reason"]) == ("Surging", "WaitsForCopy")
    assert len(world.service()) == 2
    world.api.now += 90
    await world.settle()
    moved(world)


async def test_a_budget_that_allows_no_eviction_keeps_no_pod_from_surging() -> None:
    world = await begun()
    world.api.refusals = [ApiError(429, "TooManyRequests", "it would violate the budget")] * 99
    await world.settle()
    moved(world)


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteMany"])
async def test_a_pod_surges_if_several_nodes_may_use_its_volume_at_once(mode: str) -> None:
    world = SurgeWorld()
    await world.start()
    world.api.remove(f"{PODS}/web-0")
    world.add_volume("data", "worker-1", "worker-2", mode=mode)
    world.claims = ("data",)
    world.make_pod("worker-1")
    world.move("web-1", mode="SurgeFirst")
    status = await world.settle()
    assert status["reason"] == "Landed"
    surges = mode == "ReadWriteMany"
    assert bool(world.evictions) is not surges
    assert ("cannot use its volume claim data at once" in status.get("fallback", "")) is not surges


async def test_another_pod_that_is_not_ready_is_waited_for() -> None:
    world = await beside_one_that_is_not_ready()
    assert (world.status["phase"], world.status["reason"]) == ("Surging", "WaitsForOthers")
    assert "0 of the 1 other pods of ReplicaSet web are ready" in world.status["message"]
    assert not world.copies()
    world.becomes_ready = True
    status = await world.settle()
    assert (status["reason"], status.get("fallback")) == ("Landed", None)
    assert "web-0" not in {each["metadata"]["name"] for each in world.pods()}


async def test_another_pod_that_becomes_unready_delays_the_handover() -> None:
    world = await sized("1", replicas=2)
    world.move(mode="SurgeFirst")
    await copying(world)
    second = next(each for each in world.pods() if each["metadata"]["name"] != "web-0")
    world.api.put(PODS, second | {"status": {}})
    world._ready(world.copies()[0])
    await world.rounds(3)
    assert (world.status["phase"], world.status["reason"]) == ("Surging", "WaitsForOthers")
    world.becomes_ready = True
    assert (await world.settle())["reason"] == "Landed"


async def test_labels_that_admission_adds_stay() -> None:
    world = await begun()
    put = world.api.add

    def admit(collection: str, document: Document) -> Document:
        if collection == PODS:
            document["metadata"].setdefault("labels", {})["zone"] = "a"
        return put(collection, document)

    world.api.add = admit  # type: ignore[method-assign]
    await world.settle()
    (pod,) = world.pods()
    assert pod["metadata"]["labels"] == {**HASH, "zone": "a"}
    assert world.least == 1


async def test_a_move_that_is_paused_hands_nothing_over_until_it_goes_on() -> None:
    world = await begun()
    await until(world, "Surging")
    while not world.copies():
        await world.round()
    world.edit(paused=True)
    await world.rounds(5)
    assert (world.status["phase"], world.status["reason"]) == ("Surging", "Paused")
    assert len(world.service()) == 2
    assert not world.marks()
    world.edit(paused=False)
    await world.settle()
    moved(world)


@pytest.mark.parametrize("at", ["Surging", "HandingOver"])
async def test_a_workload_that_an_autoscaler_scales_up_keeps_what_it_asks_for(at: str) -> None:
    world = await sized("1")
    world.move(mode="SurgeFirst")
    await until(world, at)
    world.replicas = 2
    status = await world.settle()
    await world.rounds(3)
    assert len(world.pods()) == 2
    assert not world.copies()
    assert not world.marks()
    assert world.least == 1
    assert status["reason"] == "Landed"
    assert "web-0" not in {each["metadata"]["name"] for each in world.pods()}


async def test_two_pods_of_one_workload_surge_at_once() -> None:
    world = await sized("500m", replicas=4)
    before = {pod["metadata"]["name"] for pod in world.pods()}
    leaving = sorted(before)[:2]
    world.least = 4
    for name in leaving:
        world.move(name, name, mode="SurgeFirst")
    most = 0
    for _ in range(40):
        await world.round()
        most = max(most, len(world.copies()))
        world.api.now += 1.0
    assert most == 2
    assert [world.status_of(name)["reason"] for name in leaving] == ["Landed", "Landed"]
    assert not {pod["metadata"]["name"] for pod in world.pods()} & set(leaving)
    assert (len(world.api.of(PODS)), world.least, world.marks()) == (4, 4, [])


async def test_a_workload_that_is_scaled_up_at_the_handover_may_keep_both() -> None:
    world = await sized("1")
    world.deletes = False
    world.move(mode="SurgeFirst")
    await until(world, "HandingOver")
    while world.copies():
        await world.round()
    world.replicas, world.deletes = 2, True
    world.api.now += 600
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "has kept web-0: was it scaled up?" in status["message"]
    await world.rounds(3)
    assert (len(world.pods()), world.marks(), world.least) == (2, [], 1)


async def test_a_rollout_while_a_move_is_paused_does_not_make_it_evict_later() -> None:
    world = await begun(paused=True)
    world.api.objects[DEPLOYMENT] = UNFIT["is being rolled out"]
    await world.rounds(3)
    assert "fallback" not in world.status
    world.api.objects[DEPLOYMENT] = deployment()
    world.edit(paused=False)
    await world.settle()
    moved(world)


async def test_a_feature_that_is_turned_off_with_a_copy_under_way_lets_it_take_over() -> None:
    world = await copying()
    world.settings = super(SurgeWorld, world).settings  # type: ignore[method-assign]
    await world.start()
    world.becomes_ready = True
    await world.settle()
    moved(world)


@pytest.mark.parametrize("missed", [1, 2])
async def test_an_api_server_that_does_not_answer_ends_no_surge(missed: int) -> None:
    """Only an answer shows whether the pod can still surge."""
    world = await copying()
    ask = world.api.get

    async def get(path: str, params: Mapping[str, str] | None = None) -> bytes:
        nonlocal missed
        if path.startswith("/apis/apps/v1/") and missed:
            missed -= 1
            raise ApiError(503, "ServiceUnavailable", "etcd has no leader")
        return await ask(path, params)

    world.api.get = get  # type: ignore[method-assign]
    world.becomes_ready = True
    await world.settle()
    assert missed == 0
    moved(world)


async def test_another_pod_of_the_name_of_a_pod_that_went_delays_no_handover() -> None:
    world = await copying()
    (copy,) = world.copies()
    world.api.remove(f"{PODS}/web-0")
    namesake = {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": {}}
    for each in (copy, world.api.add(PODS, namesake)):
        world._ready(each)
    await until(world, "Succeeded")
    assert world.status["reason"] == "Landed"
