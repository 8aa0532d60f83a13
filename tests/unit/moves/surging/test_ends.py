"""Surges that fail or are given up remove the copy."""

import pytest

from reserver.errors import ApiError
from reserver.k8s.objects.pod_annotations import COST_ANNOTATION, SURGE_ANNOTATION
from tests.unit.moves.api_server import MOVES, PODS
from tests.unit.moves.surge_world import DEPLOYMENT, SurgeWorld
from tests.unit.moves.surging.copies import begun, copying, until

FORBIDDEN = ApiError(403, "Forbidden", "exceeded quota: pods=1")


def kept(world: SurgeWorld) -> None:
    """Assert that the pod is unchanged on its node, and without a copy."""
    (pod,) = world.api.of(PODS)
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("web-0", "worker-1")
    assert not {COST_ANNOTATION, SURGE_ANNOTATION} & set(pod["metadata"].get("annotations", ()))
    assert world.least == 1


async def test_a_copy_that_a_quota_refuses_is_no_end_of_the_move() -> None:
    world = await begun()
    world.api.no_pods = FORBIDDEN
    status = await world.settle()
    assert "exceeded quota" in status["fallback"]
    assert status["reason"] == "Landed"
    assert "web-0" in world.evictions


async def test_a_copy_that_is_never_ready_is_removed_and_the_pod_stays() -> None:
    world = await begun()
    world.becomes_ready = False
    world.edit(timeout="10s")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "was not ready to take over in time" in status["message"]
    kept(world)


async def test_a_copy_that_somebody_deletes_ends_the_move_and_the_pod_stays() -> None:
    world = await copying()
    await world.rounds(3)
    (copy,) = world.copies()
    world.api.remove(f"{PODS}/{copy['metadata']['name']}")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "CopyLost")
    kept(world)


@pytest.mark.parametrize("at", ["Surging", "HandingOver"])
async def test_who_deletes_the_podmove_gets_the_pod_back_as_it_was(at: str) -> None:
    world = await begun()
    world.deletes = at != "HandingOver"
    await until(world, at)
    for _ in range(2):  # The copy is started, or the pod is marked.
        if not (world.marks() if at == "HandingOver" else world.copies()):
            await world.round()
    if at == "HandingOver" and not world.copies():
        world.deletes = True  # The pod was handed over, so the ReplicaSet chooses.
    world.api.remove(f"{MOVES}/move")
    for seat in world.api.of("/apis/reserver.io/v1alpha1/namespaces/shop/reservations"):
        world.api.remove(
            f"/apis/reserver.io/v1alpha1/namespaces/shop/reservations/{seat['metadata']['name']}"
        )
    for _ in range(4):
        world.deletes = True
        await world.round()
    (pod,) = world.api.of(PODS)
    assert not {COST_ANNOTATION, SURGE_ANNOTATION} & set(pod["metadata"].get("annotations", ()))
    assert world.least == 1


async def test_a_rollout_in_the_middle_ends_the_move_and_removes_the_copy() -> None:
    world = await copying()
    world.api.objects[DEPLOYMENT]["status"]["updatedReplicas"] = 0
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "SurgeOvertaken")
    kept(world)


async def test_a_workload_that_is_scaled_to_zero_in_the_middle_leaves_nothing() -> None:
    world = await copying()
    world.replicas = 0
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "NotReplaced")
    await world.rounds(3)
    assert not world.api.of(PODS)


async def test_a_pod_that_goes_by_itself_leaves_its_place_to_the_copy() -> None:
    world = await copying()
    world.api.remove(f"{PODS}/web-0")
    await world.round()
    world.becomes_ready = True
    await world.settle()
    assert world.status["phase"] == "Succeeded"
    await world.rounds(3)
    assert len(world.api.of(PODS)) == 1


async def test_a_deployment_that_is_deleted_in_the_middle_keeps_no_copy() -> None:
    world = await copying()
    del world.api.objects[DEPLOYMENT]
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Failed", "SurgeOvertaken")
    assert "there is no Deployment web" in status["message"]
    kept(world)


async def test_a_workload_that_is_deleted_with_its_pods_ends_the_move_and_leaves_no_copy() -> None:
    """As `kubectl delete deployment` does: the ReplicaSet goes, and then its pods."""
    world = await copying()
    await world.round()  # Stores that there is a copy.
    world.has_set = False
    del world.api.objects[DEPLOYMENT]
    world.api.remove(f"{PODS}/web-0")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "NotReplaced")
    await world.rounds(3)
    assert not world.api.of(PODS)


async def test_a_workload_that_is_deleted_in_the_foreground_succeeds_without_a_replacement() -> (
    None
):
    """Its ReplicaSet stays until its pods are gone, and makes no others."""
    world = await copying()
    await world.round()
    world.is_deleted = True
    world.api.remove(f"{PODS}/web-0")
    status = await world.settle()
    assert (status["phase"], status["reason"]) == ("Succeeded", "NotReplaced")
