"""Worlds in which a pod surges, up to a given step."""

from typing import Any

from reserver.k8s.objects.pod_annotations import SURGE_ANNOTATION
from tests.unit.moves.api_server import PODS
from tests.unit.moves.surge_world import HASH, SurgeWorld, deployment


async def begun(*, paused: bool = False, **spec: Any) -> SurgeWorld:
    world = SurgeWorld(**spec)
    await world.start()
    world.move(mode="SurgeFirst", paused=paused)
    return world


async def copying(world: SurgeWorld | None = None) -> SurgeWorld:
    """Return a world in which the pod has a copy that is not ready."""
    world = world or await begun()
    world.becomes_ready = False
    while not world.copies():
        await world.round()
    return world


async def sized(cpu: str, replicas: int = 1) -> SurgeWorld:
    """Return a world with all pods of the ReplicaSet, each with this CPU request."""
    world = SurgeWorld()
    world.replicas, world.cpu = replicas, cpu
    await world.start()
    await world.rounds(replicas - 1)
    return world


async def until(world: SurgeWorld, phase: str, rounds: int = 20) -> None:
    for _ in range(rounds):
        if world.status.get("phase") == phase:
            return
        await world.round()
    raise AssertionError(f"still {world.status}")


def moved(world: SurgeWorld) -> None:
    """Assert that the pod has moved without a gap, and that no copy and no seat is left."""
    assert (world.status["phase"], world.status["reason"]) == ("Succeeded", "Landed")
    assert world.nodes_of("web") == ["worker-2"]
    (pod,) = world.api.of(PODS)
    assert pod["metadata"]["labels"] == HASH
    assert SURGE_ANNOTATION not in pod["metadata"]["annotations"]
    assert [each["kind"] for each in pod["metadata"]["ownerReferences"]] == ["ReplicaSet"]
    assert world.least == 1


UNFIT = {
    "strategy Recreate": deployment(strategy={"type": "Recreate"}),
    "maxSurge 0": deployment(strategy={"rollingUpdate": {"maxSurge": 0}}),
    "is being rolled out": deployment() | {"status": {"replicas": 1, "observedGeneration": 1}},
}


async def beside_one_that_is_not_ready() -> SurgeWorld:
    """Return a world in which a pod surges while its sibling is never ready."""
    world = await sized("1", replicas=2)
    world.becomes_ready = False
    second = next(each for each in world.pods() if each["metadata"]["name"] != "web-0")
    world.api.put(PODS, second | {"status": {}})
    world.move(mode="SurgeFirst")
    await world.rounds(10)
    return world
