"""Pods that cannot surge are evicted."""

import pytest

from tests.unit.moves.api_server import SETS
from tests.unit.moves.surge_world import DEPLOYMENT, HASH, SurgeWorld
from tests.unit.moves.surging.copies import UNFIT, begun, beside_one_that_is_not_ready, moved


@pytest.mark.parametrize("why", UNFIT)
async def test_a_deployment_that_must_not_surge_is_moved_by_eviction(why: str) -> None:
    world = await begun()
    world.api.objects[DEPLOYMENT] = UNFIT[why]
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
    assert why in status["fallback"]
    surged = next(each for each in status["conditions"] if each["type"] == "Surged")
    assert (surged["status"], surged["reason"]) == ("False", "FellBack")
    assert "web-0" in world.evictions
    assert world.least == 0


async def test_readiness_gates_surge_with_a_hash_and_not_without() -> None:
    gated = {"containers": [{"name": "main"}], "readinessGates": [{"conditionType": "lb"}]}
    made = {"metadata": {"labels": HASH}, "spec": gated}
    world = await begun(template=made)
    await world.settle()
    moved(world)
    world = await begun(template=made, selector={"matchLabels": {"app": "web"}})
    assert "readiness gates" in (await world.settle())["fallback"]


async def test_a_pod_beside_one_that_is_never_ready_is_moved_by_eviction() -> None:
    """The ReplicaSet would remove the unready pod instead of the moved pod."""
    world = await beside_one_that_is_not_ready()
    world.api.now += 290
    await world.round()
    assert world.status["reason"] == "WaitsForOthers"
    world.api.now += 20
    status = await world.settle()
    assert "0 of the 1 other pods" in status["fallback"]
    assert status["reason"] == "Landed"
    assert "web-0" in world.evictions


async def test_without_the_feature_a_move_says_so_and_evicts() -> None:
    world = SurgeWorld()
    world.settings = super(SurgeWorld, world).settings  # type: ignore[method-assign]
    await world.start()
    world.move(mode="SurgeFirst")
    status = await world.settle()
    assert "without featureGates.SurgeMoves" in status["fallback"]
    assert status["reason"] == "Landed"


async def test_a_pod_without_a_node_does_not_fall_back_to_an_eviction() -> None:
    world = SurgeWorld()
    world.schedules = False
    world.api.objects[DEPLOYMENT] = UNFIT["strategy Recreate"]
    await world.start()
    world.replicas = 2
    world.make_pod()
    world.move("web-1", mode="SurgeFirst")
    await world.rounds(3)
    assert "fallback" not in world.status
    world.schedules = True
    status = await world.settle()
    assert (status["reason"], world.evictions, status.get("fallback")) == ("Landed", [], None)


@pytest.mark.parametrize(
    ("large", "named"), [(f"{SETS}/web", "replicasets/web"), (DEPLOYMENT, "deployments/web")]
)
async def test_a_workload_that_is_too_large_to_be_read_is_moved_by_eviction(
    large: str, named: str
) -> None:
    fill = [{"name": "a"}] * 100_000
    world = await begun()
    if large == DEPLOYMENT:
        world.api.objects[DEPLOYMENT]["spec"]["env"] = fill
    else:
        world.set_spec["template"] = {"spec": {"env": fill}}
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "Landed")
    assert f"{named}: " in status["fallback"]
    assert "bytes are too many to be read" in status["fallback"]
    assert "web-0" in world.evictions
