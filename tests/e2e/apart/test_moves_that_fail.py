"""PodMoves when something goes wrong: nobody is evicted without a seat, and no seat is left."""

from __future__ import annotations

import pytest

from hack.chaos.moving.deadly import Deadly
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.yard import Yard

pytestmark = pytest.mark.controlplane


def test_for_a_pod_that_its_budget_keeps_no_seat_is_taken(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.keep("web")
    yard.move("web", pod, timeout="8s")
    yard.wait_phase("web", "Pending", reason="BudgetBlocks")
    assert not yard.seats()
    yard.corner.create_pod("other", {"cpu": "4"})
    assert yard.corner.wait_bound("other") == second
    yard.wait_phase("web", "Failed", reason="DeadlineExceeded")
    assert yard.pods("web")[0].metadata.name == pod


def test_a_seat_whose_node_dies_evicts_nobody(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod, to={"node": second})
    yard.corner.api.delete_node(second)
    yard.nodes.remove(second)
    yard.corner.nodes.remove(second)
    yard.wait_phase("web", "Failed", reason="SeatImpossible")
    yard.wait_released()
    yard.wait_phase("late", "Failed", reason="GroupFailed")
    assert yard.pods("web")[0].metadata.name == pod


def test_a_pod_whose_node_dies_while_it_waits_for_its_turn_has_its_seat(yard: Yard) -> None:
    """As with a kubelet that is gone, the pod never ends: its finalizer stays."""
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    keep = {"metadata": {"finalizers": ["e2e.reserver.io/kubelet"]}}
    yard.corner.api.patch_namespaced_pod(pod, yard.corner.name, keep)
    yard.wait_seated("web", pod)
    dead = {"key": "e2e.reserver.io/dead", "effect": "NoExecute"}
    yard.corner.api.patch_node(first, {"spec": {"taints": [dead]}})
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)
    assert yard.corner.pod(pod).metadata.deletion_timestamp
    yard.corner.api.patch_namespaced_pod(pod, yard.corner.name, {"metadata": {"finalizers": []}})


def test_a_seat_whose_node_dies_after_the_eviction_is_placed_anew(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    with yard.refusing_pods("not now"):
        yard.move("web", pod, to={"node": second})
        yard.wait_phase("web", "Landing")
        yard.corner.api.delete_node(second)
        yard.nodes.remove(second)
        yard.corner.nodes.remove(second)
        yard.wait_phase("web", "Landing", says=f"the replacement on {first}")
        assert yard.seats()
    yard.wait_phase("web", "Failed", reason="LandedElsewhere")
    yard.wait_on("web", first)


def test_a_replacement_that_is_refused_is_awaited_and_its_move_says_why(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    with yard.refusing_pods("no more pods in this namespace"):
        yard.move("web", pod)
        yard.wait_phase("web", "Landing", says="no more pods in this namespace")
        assert yard.seats()
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)
    yard.wait_released()


def test_a_budget_that_comes_after_the_seat_keeps_the_pod_until_it_allows(yard: Yard) -> None:
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod)
    yard.keep("web")
    yard.let_go()
    yard.wait_phase("web", "Evicting", reason="BudgetBlocks")
    assert yard.pods("web")[0].metadata.name == pod
    yard.keep_no_more("web")
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)


def test_a_deployment_that_is_rolled_out_meanwhile_ends_the_move(yard: Yard) -> None:
    """The new ReplicaSet's pod is no replacement of the old one's, and takes no seat of it."""
    first, _ = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod)
    yard.roll_out("web")
    yard.wait_phase("web", "Succeeded", reason="NotReplaced")
    wait_for(lambda: not [name for name in yard.seats() if "web" in name], "its seat is released")
    (new,) = yard.pods("web")
    assert "reserver.io/claims" not in (new.metadata.annotations or {})


def test_a_deployment_that_is_scaled_to_zero_meanwhile_ends_the_move(yard: Yard) -> None:
    first, _ = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod)
    yard.scale("web", 0)
    yard.wait_phase("web", "Succeeded", reason="NotReplaced")
    wait_for(lambda: not [name for name in yard.seats() if "web" in name], "its seat is released")


def test_a_statefulset_that_is_scaled_to_zero_meanwhile_ends_the_move(yard: Yard) -> None:
    first, _ = yard.nodes
    yard.deploy_stateful("db", first)
    yard.wait_seated("db", "db-0")
    scale = {"spec": {"replicas": 0}}
    yard.apps.patch_namespaced_stateful_set_scale("db", yard.corner.name, scale)
    yard.wait_phase("db", "Succeeded", reason="NotReplaced")


def test_a_move_that_is_deleted_leaves_no_seat(yard: Yard) -> None:
    first, _ = yard.nodes
    pod = yard.deploy("web", first)
    yard.wait_seated("web", pod)
    assert yard.seats()
    yard.delete("web")
    yard.delete("late")
    yard.wait_released()
    assert yard.pods("web")[0].metadata.name == pod


@pytest.mark.parametrize(
    ("at", "is_done"), [("/reservations", True), ("/eviction", False), ("/eviction", True)]
)
def test_reserver_is_killed_at_a_write_of_a_move_and_goes_on(
    yard: Yard, mover: ReserverProcess, mishaps: Deadly, at: str, *, is_done: bool
) -> None:
    """`hack.chaos.moving.writes` has every write; here those where most could go wrong."""
    first, second = yard.nodes
    pod = yard.deploy("web", first)
    mishaps.arm(mover.process.kill, at=at, is_done=is_done)
    yard.move("web", pod, to={"node": second})
    mover.wait_ended()
    mover.start()
    yard.wait_phase("web", "Succeeded", reason="Landed")
    yard.wait_on("web", second)
    yard.wait_released()
    evictions = [path for path in mishaps.writes if path.endswith("/eviction")]
    assert len(evictions) == (2 if at == "/eviction" and not is_done else 1), mishaps.writes
