"""A round reads the cluster, decides and evicts."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reserver.cluster.pod import PodName
from reserver.k8s.objects.move_windows import parse
from reserver.rebalance.emptying import Settled
from reserver.rebalance.measured_load import Rounds
from reserver.rebalance.outcomes import Result
from reserver.rebalance.plan import Plan
from reserver.rebalance.rounds import SAMPLE_S, Round
from tests.unit.k8s.fakes import NO_ANSWER
from tests.unit.rebalance.rounds.world import CLUSTER, MOVE, OTHER, World


async def test_a_round_looks_decides_and_evicts(path: Path) -> None:
    world = World(path, *CLUSTER, {}, {})
    found = await world.rebalancer.round()
    assert [each.result for each in found.outcomes] == [Result.SUCCESS]
    (look,) = world.looks
    assert [pod.name for pod in look.cluster.pods] == [MOVE.pod]
    assert len(world.evicted) == 1


async def test_without_seats_a_pod_is_evicted_once_and_its_further_steps_are_named(
    path: Path,
) -> None:
    """An evicted pod lands on another node than the plan assumed."""
    steps = replace(MOVE, target="n2"), replace(MOVE, source="n2", target="n3")
    world = World(path, *CLUSTER, {}, {}, moves=steps)
    found = await world.rebalancer.round()
    assert [each.move for each in found.outcomes] == [steps[0]]
    assert found.plan.notes == ("an evicted pod is not moved again: 1 further moves are left out",)


async def test_a_dry_run_evicts_nothing(path: Path) -> None:
    world = World(path, *CLUSTER, dry_run=True)
    found = await world.rebalancer.round()
    assert (found.plan.moves, found.outcomes) == ((MOVE,), ())
    assert world.evicted == []


async def test_what_a_round_remembers_is_handed_to_the_next(path: Path) -> None:
    world = World(path, *CLUSTER, *CLUSTER, dry_run=True)
    await world.rebalancer.round()
    await world.rebalancer.round()
    assert world.looks[1].rounds == {"p": Rounds({}, 1.0)}


async def test_a_round_that_fails_is_followed_by_another(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(path, NO_ANSWER, *CLUSTER, dry_run=True)
    reported: list[str] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.now += seconds
        if len(reported) > 1:
            raise asyncio.CancelledError

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await world.rebalancer.run(60.0, lambda outcome, _: reported.append(outcome))
    assert reported == ["failed", "done"]
    assert slept == [SAMPLE_S] * 5


async def test_the_next_round_comes_though_the_clock_was_set_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(path, NO_ANSWER, *CLUSTER, dry_run=True)
    reported: list[str] = []

    async def sleep(_: float) -> None:
        if world.now < 0:
            raise asyncio.CancelledError
        world.now -= 3600

    monkeypatch.setattr("reserver.rebalance.rounds.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await world.rebalancer.run(60.0, lambda outcome, _: reported.append(outcome))
    assert reported == ["failed", "done"]


async def test_rounds_as_one_name_each_node_and_move_once() -> None:
    first = Round(plan=Plan(moves=(MOVE,)), settled=Settled(("a",), ("b",)))
    later = Round(plan=Plan(moves=(OTHER,)), settled=Settled(("c",), ("b",)))
    both = first.followed_by(later)
    assert (both.plan.moves, both.settled) == ((MOVE, OTHER), Settled(("a", "c"), ("b",)))


async def test_outside_of_its_windows_a_round_moves_nothing_and_says_until_when(path: Path) -> None:
    world = World(path, *CLUSTER, {}, {})
    world.rebalancer.windows = (parse("0 22 * * * 6h"),)
    world.now = 1_896_084_000.0
    found = await world.rebalancer.round()
    assert found.plan.notes == (
        "rounds move nothing before 2030-01-31T22:00:00Z, by --move-window",
    )
    assert not world.client.requests
    world.now += 12 * 3600
    assert (await world.rebalancer.round()).outcomes


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_round_says_what_each_move_costs_and_gains(path: Path, *, dry_run: bool) -> None:
    moves = replace(MOVE, cost=2.0, gain=12.5), replace(MOVE, pod=PodName("shop", "web-1"))
    world = World(path, *CLUSTER, *[{}] * 4, moves=moves, dry_run=dry_run)
    with capture_logs() as logs:
        await world.rebalancer.round()
    said = [each for each in logs if each["event"] in {"would evict pod", "evicted pod"}]
    assert [(each["cost"], each.get("gain")) for each in said] == [(2.0, 12.5), (1.0, None)]
