"""Moves that wait, are paused, or are blocked by a budget."""

import pytest

from reserver.moves.advance import advance
from reserver.moves.effects import EvictPod
from reserver.moves.observation import EffectAnswer, ObservedSeat
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.transitions import LAST_PAUSE_S
from tests.unit.moves.advance.steps import BLOCKED, CAME, NOT_YET, PLANNED
from tests.unit.moves.build import BACKED, NOW, UNPLACED, judged, leaving, move, seen, wanted

WAITS = {
    "its turn": (MovePhase.PENDING, seen(turn=NOT_YET), MoveReason.WAITS_FOR_TURN),
    "a budget, before it takes a seat": (
        MovePhase.PENDING,
        seen(turn=BLOCKED),
        MoveReason.BUDGET_BLOCKS,
    ),
    "its group": (
        MovePhase.EVICTING,
        seen(seat=BACKED, turn=NOT_YET._replace(waits_for_group=True)),
        MoveReason.WAITS_FOR_GROUP,
    ),
    "a seat that is backed": (
        MovePhase.EVICTING,
        seen(seat=UNPLACED),
        MoveReason.WAITS_FOR_SEAT,
    ),
    "a budget, when it evicts": (
        MovePhase.EVICTING,
        seen(seat=BACKED, answer=EffectAnswer.BLOCKED, said="429"),
        MoveReason.BUDGET_BLOCKS,
    ),
    "an answer that never came": (
        MovePhase.EVICTING,
        seen(seat=BACKED, answer=EffectAnswer.UNSURE, said="timeout"),
        MoveReason.EVICTION_RETRIED,
    ),
    "the replacement": (
        MovePhase.LANDING,
        seen(leaving(), BACKED, is_replaced=False),
        MoveReason.WAITS_FOR_REPLACEMENT,
    ),
}


def test_what_a_plan_supposed_is_not_asked_before_the_turn_of_a_move() -> None:
    early = seen(turn=NOT_YET, outdated="worker-2 has no room for it any more")
    assert judged(PLANNED, early) == (MovePhase.PENDING, MoveReason.WAITS_FOR_TURN)


@pytest.mark.parametrize("what", WAITS)
def test_no_pod_is_evicted_while_its_move_waits_for(what: str) -> None:
    phase, sight, reason = WAITS[what]
    step = advance(move(phase), sight, NOW)
    assert step.move.status.reason is reason
    assert not any(isinstance(effect, EvictPod) for effect in step.effects)
    assert not step.move.is_over


@pytest.mark.parametrize(
    ("phase", "seat"),
    [(MovePhase.PENDING, None), (MovePhase.RESERVING, None), (MovePhase.EVICTING, BACKED)],
)
def test_what_is_paused_begins_nothing_and_ends_at_its_deadline(
    phase: MovePhase, seat: ObservedSeat | None
) -> None:
    made = move(phase, wanted(paused=True))
    step = advance(made, seen(seat=seat), NOW)
    assert (step.effects, step.move.status.reason) == ((), MoveReason.PAUSED)
    assert judged(step.move, seen(seat=seat))[0] is phase
    assert advance(made, seen(seat=seat), made.deadline).move.is_over


def test_a_paused_move_whose_pod_has_left_lands_all_the_same() -> None:
    made = move(MovePhase.LANDING, wanted(paused=True))
    landed = seen(None, None, replacement=CAME, has_claimed=True)
    assert judged(made, landed) == (MovePhase.SUCCEEDED, MoveReason.LANDED)


def test_an_eviction_that_a_budget_forbids_is_retried_later_each_time() -> None:
    made, at, pauses = move(MovePhase.EVICTING), NOW, []
    for _ in range(6):
        step = advance(made, seen(seat=BACKED, answer=EffectAnswer.BLOCKED, said="429"), at)
        assert step.again_at is not None
        pauses.append(step.again_at - at)
        assert not advance(step.move, seen(seat=BACKED), step.again_at - 0.1).effects
        made, at = step.move, step.again_at
        (evict,) = advance(made, seen(seat=BACKED), at).effects
        assert isinstance(evict, EvictPod)
    assert pauses == [1, 2, 4, 8, LAST_PAUSE_S, LAST_PAUSE_S]


def test_an_accepted_eviction_is_not_sent_again_before_the_watch_shows_it() -> None:
    step = advance(move(MovePhase.EVICTING), seen(seat=BACKED, answer=EffectAnswer.EVICTED), NOW)
    assert advance(step.move, seen(seat=BACKED), NOW + 1).effects == ()
