"""Rounds that write PodMoves instead of evictions."""

from pathlib import Path
from typing import Any

import pytest

from reserver.errors import ConfigurationError
from reserver.k8s.objects.times import show_micro
from reserver.rebalance.outcomes import MoveOutcome, Result
from reserver.rebalance.pod_moves import MOST_OPEN
from tests.unit.k8s.fakes import refused
from tests.unit.rebalance.rounds.world import MOVE, NO_MOVES, NODES, OTHER, OWNED, REST, World


def pod_move(pod: str, phase: str = "", namespace: str = "shop", **labels: str) -> dict[str, Any]:
    created = "1970-01-01T00:15:00Z"
    metadata = {"name": f"move-{pod}", "namespace": namespace, "creationTimestamp": created}
    return {
        "metadata": metadata | {"labels": labels},
        "spec": {"pod": {"name": pod}},
        **({"status": {"phase": phase}} if phase else {}),
    }


async def test_with_reserve_first_a_round_writes_pod_moves_and_evicts_nobody(path: Path) -> None:
    script = [NO_MOVES, NODES, OWNED, *REST, {}, {}, {}, {}]
    world = World(path, *script, reserves_first=True, moves=(MOVE, OTHER))
    found = await world.rebalancer.round()
    assert [each.pod_move for each in found.outcomes] == [
        "rebalance-f4240-000",
        "rebalance-f4240-001",
    ]
    assert (world.evicted, found.left) == ([], 0)
    assert [each.path for each in world.client.requests if "podmoves" in each.path] == [
        "/apis/reserver.io/v1alpha1/podmoves",
        *["/apis/reserver.io/v1alpha1/namespaces/shop/podmoves"] * 2,
    ]


async def test_a_pod_that_a_pod_move_moves_is_left_alone_until_that_has_ended(path: Path) -> None:
    listed = {**NO_MOVES, "items": [pod_move("web-0"), pod_move("web-1", "Failed")]}
    script = [listed, NODES, OWNED, *REST]
    world = World(path, *script, dry_run=True, reserves_first=True, moves=(MOVE, OTHER))
    found = await world.rebalancer.round()
    assert (found.plan.moves, found.left) == ((OTHER,), 1)
    assert found.plan.notes == ("1 moves are left to the next round",)


@pytest.mark.parametrize("reason", ["GroupFailed", "PlanOutdated"])
@pytest.mark.parametrize(
    ("failures", "passed_s", "moves"),
    [(1, 299, []), (1, 300, ["web-0"]), (2, 599, []), (2, 600, ["web-0"]), (99, 3600, ["web-0"])],
)
async def test_a_pod_whose_moves_have_failed_rests_longer_each_time(
    path: Path, failures: int, passed_s: int, moves: list[str], reason: str
) -> None:
    failed = [pod_move("web-0", "Failed") for _ in range(failures)]
    grouped = pod_move("web-1", "Failed")
    for each in (*failed, grouped):
        each["status"] |= {"podUID": "uid-web-0", "finishedAt": show_micro(1000.0 - passed_s)}
    grouped["status"] |= {"podUID": "uid-web-1", "reason": reason}
    listed = {**NO_MOVES, "items": [*failed, grouped]}
    script = [listed, NODES, OWNED, *REST]
    world = World(path, *script, dry_run=True, reserves_first=True, moves=(MOVE, OTHER))
    found = await world.rebalancer.round()
    assert [each.pod.name for each in found.plan.moves] == [*moves, "web-1"]
    assert found.left == (not moves)


async def test_a_pending_pod_for_which_room_is_held_already_is_not_looked_at(path: Path) -> None:
    """Otherwise a plan would make room for the pod once more, on another node."""
    pending = [each | {"spec": {}} for each in OWNED["items"]]  # type: ignore[operator]
    script = [{**NO_MOVES, "items": [pod_move("web-0")]}, NODES, {**OWNED, "items": pending}, *REST]
    world = World(path, *script, dry_run=True, reserves_first=True, moves=())
    await world.rebalancer.round()
    (look,) = world.looks
    assert [pod.name.name for pod in look.cluster.pods] == ["web-1"]


async def test_a_round_waits_for_those_of_earlier_ones_and_not_for_other_moves(path: Path) -> None:
    own = {"reserver.io/rebalance-strategy": "S"}
    full = [pod_move(f"a-{n}", "Reserving", **own) for n in range(MOST_OPEN)]
    first, last = ({**NO_MOVES, "items": part} for part in (full[:30], full[30:]))
    first["metadata"] = {"continue": "more"}
    world = World(path, first, last, NODES, OWNED, *REST, reserves_first=True)
    found = await world.rebalancer.round()
    assert (found.plan.notes, found.outcomes) == (("1 moves are left to the next round",), ())
    others = {**NO_MOVES, "items": [pod_move(f"a-{n}") for n in range(MOST_OPEN)]}
    world = World(path, others, NODES, OWNED, *REST, dry_run=True, reserves_first=True)
    assert (await world.rebalancer.round()).plan.moves == (MOVE,)


async def test_the_label_of_rounds_on_a_tenants_own_moves_stops_no_other_namespace(
    path: Path,
) -> None:
    own = {"reserver.io/rebalance-strategy": "S"}
    forged = [pod_move(f"a-{n}", "", "mallory", **own) for n in range(10 * MOST_OPEN)]
    listed = {**NO_MOVES, "items": forged}
    world = World(path, listed, NODES, OWNED, *REST, dry_run=True, reserves_first=True)
    assert (await world.rebalancer.round()).plan.moves == (MOVE,)


async def test_without_the_crd_of_pod_moves_nothing_is_begun(path: Path) -> None:
    world = World(path, refused(404, "NotFound"), reserves_first=True)
    with pytest.raises(ConfigurationError, match="apply scheduler-config/components/moves"):
        await world.rebalancer.round()
    assert world.looks == []


async def test_the_end_of_the_pod_moves_of_a_round_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = pod_move("web-0", "Landing", **{"reserver.io/rebalance-strategy": "S"})
    forged = pod_move("web-1", **{"reserver.io/rebalance-strategy": "S"})
    under_way, slept = {**NO_MOVES, "items": [own, forged]}, list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    world = World(path, under_way, {**NO_MOVES, "items": [forged]}, reserves_first=True)
    written = MoveOutcome(MOVE, Result.BACKGROUND, 0.0, pod_move="move-web-0")
    await world.rebalancer.settle([written])
    assert len(slept) == 1
