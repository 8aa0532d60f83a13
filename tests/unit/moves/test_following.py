"""The next step of a move that follows another one, in each situation."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import PodName
from reserver.moves.advance import FIRST_WRITTEN_S, advance
from reserver.moves.effects import EvictPod, HoldSeat
from reserver.moves.model import MAX_TIMEOUT_S, MoveGroup, Replacement
from reserver.moves.observation import MoveTurn, Observation, ObservedMove
from reserver.moves.phases import MovePhase, MoveReason
from reserver.reservations.owner import Replaced
from tests.unit.moves.build import BACKED, NOW, POD, judged, move, seen, wanted

NOT_YET = MoveTurn(may_begin=False, may_evict=False, why="2 moves of worker-1 are under way")
BLOCKED = NOT_YET._replace(why="the budget web allows none", is_blocked=True)
PLANNED = move(spec=wanted(uid=POD.uid, node="worker-2", group=MoveGroup("rebalance-1", 1)))
FOLLOWS = move(spec=wanted(after="first", node="worker-2", group=MoveGroup("rebalance-1", 1)))
LANDING = ObservedMove(MovePhase.LANDING, "WaitsForReplacement")
LANDED = ObservedMove(MovePhase.SUCCEEDED, "Landed", Replacement("web-1", "uid-1", "worker-3"))
FOLLOWED: dict[str, tuple[Observation, tuple[MovePhase, MoveReason]]] = {
    "it is not written yet": (seen(), (MovePhase.PENDING, MoveReason.WAITS_FOR_MOVE)),
    "it has not ended": (seen(first=LANDING), (MovePhase.PENDING, MoveReason.WAITS_FOR_MOVE)),
    "its pod has come": (seen(first=LANDED), (MovePhase.PENDING, MoveReason.WAITS_FOR_TURN)),
    "it has failed": (
        seen(first=ObservedMove(MovePhase.FAILED, "SeatImpossible")),
        (MovePhase.ABORTED, MoveReason.NOTHING_TO_FOLLOW),
    ),
    "it was aborted": (
        seen(first=ObservedMove(MovePhase.ABORTED, "PodGone")),
        (MovePhase.ABORTED, MoveReason.NOTHING_TO_FOLLOW),
    ),
    "no pod has come": (
        seen(first=ObservedMove(MovePhase.SUCCEEDED, "NotReplaced")),
        (MovePhase.ABORTED, MoveReason.NOTHING_TO_FOLLOW),
    ),
    "it never brings one": (
        seen(first=LANDING._replace(problem="it follows itself")),
        (MovePhase.ABORTED, MoveReason.NOTHING_TO_FOLLOW),
    ),
    "it fails with its group": (
        seen(first=ObservedMove(MovePhase.FAILED, "GroupFailed"), failed_member="shop/other"),
        (MovePhase.ABORTED, MoveReason.NOTHING_TO_FOLLOW),
    ),
    "another one of the group fails": (
        seen(first=LANDING, failed_member="shop/other"),
        (MovePhase.FAILED, MoveReason.GROUP_FAILED),
    ),
    "nobody needs the room that the group makes": (
        seen(first=LANDING, is_needless=True),
        (MovePhase.ABORTED, MoveReason.NOT_NEEDED),
    ),
}


@pytest.mark.parametrize(("what", "now"), FOLLOWED.values(), ids=FOLLOWED)
def test_a_move_that_follows_another_waits_for_its_pod_or_ends(
    what: Observation, now: tuple[MovePhase, MoveReason]
) -> None:
    assert judged(FOLLOWS, what) == now
    assert advance(FOLLOWS, what, NOW).effects == ()


def test_one_that_follows_nothing_ends_once_that_would_be_written() -> None:
    late = NOW - 10 + FIRST_WRITTEN_S
    assert advance(FOLLOWS, seen(), late - 0.1).move.status.phase is MovePhase.PENDING
    step = advance(FOLLOWS, seen(), late)
    assert step.move.status.phase is MovePhase.ABORTED
    assert step.move.status.message == "there is no PodMove first in the namespace shop"


def test_one_that_waits_for_another_is_looked_at_again_in_time() -> None:
    again_at = advance(FOLLOWS, seen(), NOW).again_at
    assert again_at is not None
    assert advance(FOLLOWS, seen(), again_at).move.status.phase is MovePhase.ABORTED


def test_the_time_of_one_that_follows_begins_when_its_pod_has_come() -> None:
    hours = 20 * 3600
    found = advance(FOLLOWS, seen(first=LANDED), NOW + hours).move
    status = found.status
    assert (status.pod, status.uid, status.found_at) == ("web-1", "uid-1", NOW + hours)
    assert found.pod == PodName("shop", "web-1")
    assert found.deadline == NOW + hours + found.spec.timeout_s
    assert not found.is_entering


def test_one_that_waits_for_another_waits_as_long_as_a_move_may_take_and_no_longer() -> None:
    assert FOLLOWS.deadline == FOLLOWS.created_at + MAX_TIMEOUT_S
    first = ObservedMove(MovePhase.LANDING)
    assert judged(FOLLOWS, seen(first=first)) == (MovePhase.PENDING, MoveReason.WAITS_FOR_MOVE)
    ended = advance(FOLLOWS, seen(first=first), FOLLOWS.deadline).move.status
    assert (ended.phase, ended.reason) == (MovePhase.FAILED, MoveReason.DEADLINE_EXCEEDED)


def test_what_follows_moves_the_pod_that_has_come_and_not_the_first_one() -> None:
    found = advance(FOLLOWS, seen(first=LANDED), NOW).move
    pod = replace(POD, uid="uid-1", node="worker-3")
    (hold,) = advance(found, seen(pod), NOW).effects
    assert isinstance(hold, HoldSeat)
    assert hold.owner.replaces == Replaced("uid-1", frozenset())
    assert hold.avoid == "worker-3"
    step = advance(advance(found, seen(pod), NOW).move, seen(pod, BACKED), NOW)
    assert step.effects == (
        EvictPod(pod=PodName("shop", "web-1"), uid="uid-1", grace_period_s=None),
    )
    assert judged(found, seen(POD)) == (MovePhase.FAILED, MoveReason.PLAN_OUTDATED)


def test_a_budget_that_blocks_a_pod_that_has_just_come_is_waited_for() -> None:
    found = advance(FOLLOWS, seen(first=LANDED), NOW).move
    pod = replace(POD, uid="uid-1", node="worker-3")
    assert judged(found, seen(pod, turn=BLOCKED)) == (MovePhase.PENDING, MoveReason.BUDGET_BLOCKS)
    assert judged(found, seen(pod, outdated="worker-2 is gone"))[1] is MoveReason.PLAN_OUTDATED
    assert judged(PLANNED, seen(turn=BLOCKED))[1] is MoveReason.PLAN_OUTDATED
