"""Rounds that follow each other until no node can be emptied, and their last messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from reserver.cli.rebalance_run import _summary
from reserver.cluster.pod import PodName
from reserver.rebalance.emptying import Settled
from reserver.rebalance.metrics import DeschedulingMetrics
from reserver.rebalance.outcomes import MoveOutcome, Result
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.rounds import Rebalancer, Round
from reserver.rebalance.settings import Mode, RebalanceSettings
from reserver.rebalance.setup import _until_emptied


def made(name: str, result: Result = Result.BACKGROUND) -> Round:
    move = PlannedMove(
        pod=PodName("shop", name), uid=name, source="a", target="b", strategy="Defragment"
    )
    why = "refused" if result is Result.ERROR else ""
    outcome = MoveOutcome(move, result, 0.0, why, "" if why else f"move-{name}")
    return Round(plan=Plan(moves=(move,)), outcomes=(outcome,))


ENDS = Round(plan=Plan(), settled=Settled(("a", "b"), ("c",)))


class Scripted:
    """A rebalancer whose rounds are scripted.

    Attributes:
        asked: how many moves each round was allowed.
        waited: how often the end of PodMoves was waited for.
    """

    def __init__(self, *rounds: Round) -> None:
        self.script = list(rounds)
        self.asked: list[int | None] = []
        self.waited = 0

    async def round(self, *, most_moves: int | None) -> Round:
        self.asked.append(most_moves)
        return self.script.pop(0)

    async def give_back(self) -> Settled:
        return Settled((), ("a",))

    async def settle(self, outcomes: Sequence[MoveOutcome]) -> None:
        self.waited += len(outcomes)


async def until_emptied(scripted: Scripted, most_moves: int | None = None) -> Round:
    rebalancer = cast("Rebalancer", scripted)
    return await _until_emptied(rebalancer, DeschedulingMetrics(), lambda: 0.0, most_moves)


async def test_rounds_go_on_until_one_moves_nothing_and_moves_are_limited_in_all() -> None:
    scripted = Scripted(made("p"), made("q"), ENDS)
    done = await until_emptied(scripted, most_moves=2)
    assert (scripted.asked, scripted.waited, scripted.script) == ([2, 1, 0], 2, [])
    assert [move.pod.name for move in done.plan.moves] == ["p", "q"]
    assert done.settled == ENDS.settled


async def test_a_round_whose_moves_are_all_refused_is_the_last_and_its_nodes_are_opened() -> None:
    scripted = Scripted(made("p", Result.ERROR), ENDS)
    done = await until_emptied(scripted)
    assert done.settled == Settled((), ("a",))
    assert (len(scripted.script), scripted.waited) == (1, 0)


async def test_the_end_says_which_nodes_are_empty_for_good_and_which_are_given_back() -> None:
    done = await until_emptied(Scripted(made("p"), ENDS))
    for hand_over, end in ((False, ""), (True, ", left cordoned for an autoscaler")):
        settings = RebalanceSettings(defragment=True, mode=Mode.RESERVE_FIRST, hand_over=hand_over)
        said = _summary(settings, done).splitlines()
        assert said[0].startswith("1 PodMoves written, 0 pods evicted, 0 could not be")
        assert said[1:] == [
            f"2 nodes emptied for good{end}: a, b",
            "given back, as not all of their pods could leave: c",
        ]
