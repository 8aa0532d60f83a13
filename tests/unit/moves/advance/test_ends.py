"""Moves that end: the reason, and the seat."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.moves.advance import advance
from reserver.moves.effects import ReleaseSeat
from reserver.moves.model import Move
from reserver.moves.observation import EffectAnswer, Observation, ObservedSeat
from reserver.moves.phases import MovePhase, MoveReason
from tests.unit.moves.advance.steps import BLOCKED, CAME, GONE_NODE, PLANNED
from tests.unit.moves.build import BACKED, NOW, POD, UNPLACED, judged, leaving, move, seen

ENDS: dict[str, tuple[MovePhase | Move, Observation, tuple[MovePhase, MoveReason]]] = {
    "its controller has all the pods that it wants": (
        MovePhase.LANDING,
        seen(None, BACKED, is_replaced=False),
        (MovePhase.SUCCEEDED, MoveReason.NOT_REPLACED),
    ),
    "it lands elsewhere": (
        MovePhase.LANDING,
        seen(None, BACKED, replacement=CAME),
        (MovePhase.SUCCEEDED, MoveReason.LANDED_ELSEWHERE),
    ),
    "it lands on the old node": (
        MovePhase.LANDING,
        seen(None, BACKED, replacement=CAME._replace(node="worker-1")),
        (MovePhase.FAILED, MoveReason.LANDED_ELSEWHERE),
    ),
    "the node dies before the eviction": (
        MovePhase.EVICTING,
        seen(seat=GONE_NODE),
        (MovePhase.FAILED, MoveReason.SEAT_IMPOSSIBLE),
    ),
    "no node that it may go to can use its volume": (
        MovePhase.PENDING,
        seen(confined="its volume pv (claim data) is on worker-1 only"),
        (MovePhase.FAILED, MoveReason.NOT_MOVABLE),
    ),
    "its volume turns out to be elsewhere before the eviction": (
        MovePhase.EVICTING,
        seen(seat=BACKED, confined="its volume pv (claim data) is on worker-1 only"),
        (MovePhase.FAILED, MoveReason.NOT_MOVABLE),
    ),
    "the seat is on the node that the pod leaves": (
        MovePhase.RESERVING,
        seen(seat=ObservedSeat(node="worker-1", is_backed=True)),
        (MovePhase.FAILED, MoveReason.SEAT_IMPOSSIBLE),
    ),
    "the seat's name is somebody else's": (
        MovePhase.RESERVING,
        seen(seat=ObservedSeat(is_foreign=True, is_backed=True, node="worker-2")),
        (MovePhase.FAILED, MoveReason.SEAT_REFUSED),
    ),
    "a webhook refuses the seat": (
        MovePhase.RESERVING,
        seen(answer=EffectAnswer.SEAT_REFUSED, said="denied"),
        (MovePhase.FAILED, MoveReason.SEAT_REFUSED),
    ),
    "a webhook refuses the eviction": (
        MovePhase.EVICTING,
        seen(seat=BACKED, answer=EffectAnswer.EVICTION_REFUSED, said="denied"),
        (MovePhase.FAILED, MoveReason.EVICTION_REFUSED),
    ),
    "it goes by itself before it has a seat": (
        MovePhase.RESERVING,
        seen(leaving(), UNPLACED),
        (MovePhase.ABORTED, MoveReason.POD_GONE),
    ),
    "it was being deleted when the move came": (
        MovePhase.PENDING,
        seen(leaving()),
        (MovePhase.ABORTED, MoveReason.POD_GONE),
    ),
    "another pod has its name": (
        MovePhase.RESERVING,
        seen(replace(POD, uid="uid-other"), BACKED),
        (MovePhase.ABORTED, MoveReason.POD_GONE),
    ),
    "there is no such pod": (
        MovePhase.PENDING,
        seen(None),
        (MovePhase.ABORTED, MoveReason.POD_GONE),
    ),
    "it has finished": (
        MovePhase.EVICTING,
        seen(replace(POD, is_finished=True), BACKED),
        (MovePhase.ABORTED, MoveReason.POD_FINISHED),
    ),
    "an older move has it": (
        MovePhase.PENDING,
        seen(rival="shop/first"),
        (MovePhase.ABORTED, MoveReason.MOVED_ALREADY),
    ),
    "a member of its group has failed": (
        MovePhase.EVICTING,
        seen(seat=BACKED, failed_member="shop/b"),
        (MovePhase.FAILED, MoveReason.GROUP_FAILED),
    ),
    "nobody makes it again": (
        MovePhase.PENDING,
        seen(replace(POD, controller=NO_CONTROLLER)),
        (MovePhase.FAILED, MoveReason.NO_CONTROLLER),
    ),
    "it is a daemon's": (
        MovePhase.PENDING,
        seen(replace(POD, controller=Controller("DaemonSet", "agent"))),
        (MovePhase.FAILED, MoveReason.NOT_MOVABLE),
    ),
    "it is a mirror pod": (
        MovePhase.PENDING,
        seen(replace(POD, is_mirror=True)),
        (MovePhase.FAILED, MoveReason.NOT_MOVABLE),
    ),
    "it is gone, though a plan supposed it there": (
        PLANNED,
        seen(None),
        (MovePhase.FAILED, MoveReason.PLAN_OUTDATED),
    ),
    "its node has no room any more, though a plan supposed some": (
        PLANNED,
        seen(outdated="worker-2 has no room for it any more"),
        (MovePhase.FAILED, MoveReason.PLAN_OUTDATED),
    ),
    "a budget blocks it, though a plan supposed none": (
        PLANNED,
        seen(turn=BLOCKED),
        (MovePhase.FAILED, MoveReason.PLAN_OUTDATED),
    ),
    "the pod that it made room for waits no more": (
        MovePhase.EVICTING,
        seen(seat=BACKED, is_needless=True),
        (MovePhase.ABORTED, MoveReason.NOT_NEEDED),
    ),
    "too many siblings wait": (
        MovePhase.PENDING,
        seen(waiting=frozenset(map(str, range(101)))),
        (MovePhase.FAILED, MoveReason.TOO_MANY_WAIT),
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_a_move_ends_with_its_reason_and_releases_its_seat_when(what: str) -> None:
    phase, sight, expected = ENDS[what]
    made = move(phase) if isinstance(phase, MovePhase) else phase
    step = advance(made, sight, NOW)
    assert (step.move.status.phase, step.move.status.reason) == expected
    assert step.move.status.message
    assert step.move.status.finished_at == NOW
    ours = made.status.seat and sight.seat is not None and not sight.seat.is_foreign
    released = (ReleaseSeat(seat=PodName("shop", move().seat_name)),)
    assert step.effects == (released if ours else ())


def test_a_seat_that_went_before_the_landing_was_written_down_may_have_been_claimed() -> None:
    """The write of the status is late: the search for the replacement waits for it."""
    step = advance(move(MovePhase.EVICTING), seen(None, None), NOW)
    assert (step.move.status.phase, step.move.is_over) == (MovePhase.LANDING, False)
    assert step.move.status.reason is MoveReason.WAITS_FOR_REPLACEMENT


IN_DOUBT: dict[str, Observation] = {
    "its node is gone": seen(seat=GONE_NODE),
    "its node is cordoned": seen(seat=replace(BACKED, closed="worker-2 is cordoned")),
    "its seat is no longer backed": seen(seat=UNPLACED),
    "its seat was removed": seen(),
    "its seat's name is somebody else's": seen(seat=ObservedSeat(is_foreign=True)),
    "its quota would not admit the seat": seen(seat=replace(BACKED, refused="exceeded quota")),
    "a member of its group has failed": seen(seat=BACKED, failed_member="shop/b"),
    "nobody needs the room any more": seen(seat=BACKED, is_needless=True),
    "its volume is elsewhere": seen(seat=BACKED, confined="its volume pv is on worker-1 only"),
    "an older move has it": seen(seat=BACKED, rival="shop/first"),
    "all is well": seen(seat=BACKED),
}


@pytest.mark.parametrize("late_s", [0.0, 1_000.0], ids=["in time", "after its time"])
@pytest.mark.parametrize("answer", [EffectAnswer.EVICTED, EffectAnswer.UNSURE])
@pytest.mark.parametrize("what", IN_DOUBT)
def test_nothing_ends_a_move_whose_pod_may_have_been_evicted(
    what: str, answer: EffectAnswer, late_s: float
) -> None:
    """The watch gets time to show that the pod leaves; then its replacement has the seat."""
    sight, at = IN_DOUBT[what], NOW + late_s
    step = advance(move(MovePhase.EVICTING), replace(sight, answer=answer, said="so"), at)
    assert (step.move.status.phase, step.effects) == (MovePhase.EVICTING, ())
    assert step.again_at is not None
    assert step.again_at > at
    step = advance(step.move, sight, at + 0.5)
    assert (step.move.status.phase, step.effects) == (MovePhase.EVICTING, ())
    step = advance(step.move, replace(sight, pod=leaving()), at + 0.9)
    assert step.move.status.phase is MovePhase.LANDING
    assert (
        advance(step.move, replace(sight, pod=None), at + 1).move.status.phase is MovePhase.LANDING
    )


def test_an_eviction_that_a_budget_forbids_leaves_no_doubt() -> None:
    step = advance(
        move(MovePhase.EVICTING), seen(seat=BACKED, answer=EffectAnswer.BLOCKED, said="429"), NOW
    )
    assert judged(step.move, seen(seat=GONE_NODE)) == (MovePhase.FAILED, MoveReason.SEAT_IMPOSSIBLE)
