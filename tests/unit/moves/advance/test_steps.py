"""The next step of a move, from its seat to its landing."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.moves.advance import advance
from reserver.moves.effects import EvictPod, HoldSeat, PlaceSeatAnew
from reserver.moves.observation import EffectAnswer, ObservedSeat
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.reservations.owner import Replaced
from tests.unit.moves.advance.steps import CAME, GONE_NODE
from tests.unit.moves.build import (
    BACKED,
    NOW,
    POD,
    UNPLACED,
    WEB,
    judged,
    leaving,
    move,
    seen,
    wanted,
)

EVICT_ONLY = wanted(mode=MoveMode.EVICT_ONLY)


def test_a_pod_is_evicted_once_its_seat_is_held_and_backed() -> None:
    step = advance(move(), seen(), NOW)
    (hold,) = step.effects
    assert isinstance(hold, HoldSeat)
    assert step.move.status.phase is MovePhase.RESERVING
    assert hold.seat == PodName("shop", step.move.status.seat)
    assert (hold.avoid, hold.expires_at) == ("worker-1", step.move.seat_until)
    assert hold.owner.controller == WEB

    step = advance(step.move, seen(seat=UNPLACED), NOW)
    assert step.effects == ()
    assert step.move.status.message == "no node has room"

    step = advance(step.move, seen(seat=BACKED), NOW)
    assert step.move.status.phase is MovePhase.EVICTING
    assert step.effects == (EvictPod(pod=PodName("shop", "web"), uid=POD.uid, grace_period_s=None),)

    step = advance(step.move, seen(leaving(), BACKED), NOW + 1)
    assert step.effects == ()
    assert step.move.status.evicted_at == NOW + 1

    landed = seen(None, None, replacement=CAME, has_claimed=True)
    step = advance(step.move, landed, NOW + 2)
    assert (step.move.status.phase, step.move.status.reason) == (
        MovePhase.SUCCEEDED,
        MoveReason.LANDED,
    )
    assert step.move.status.replacement == CAME
    assert step.again_at is None


def test_only_a_pod_that_comes_later_may_claim_the_seat() -> None:
    step = advance(move(), seen(waiting=frozenset({"uid-a", "uid-b"})), NOW)
    (hold,) = step.effects
    assert isinstance(hold, HoldSeat)
    assert hold.owner.replaces == Replaced(POD.uid, frozenset({"uid-a", "uid-b"}))


def test_the_seat_of_a_stateful_set_is_for_the_pod_of_that_name() -> None:
    pod = replace(POD, controller=Controller("StatefulSet", "web"))
    (hold,) = advance(move(), seen(pod), NOW).effects
    assert isinstance(hold, HoldSeat)
    assert hold.owner.pod == "web"


def test_a_move_says_why_its_replacement_cannot_be_made() -> None:
    step = advance(move(MovePhase.LANDING), seen(None, BACKED, failure="no more pods here"), NOW)
    waits = "Reserver waits for the replacement on worker-2"
    said = f"{waits}; ReplicaSet cannot create it: no more pods here"
    assert step.move.status.message == said


def test_a_pod_that_goes_by_itself_keeps_a_backed_seat_for_its_replacement() -> None:
    assert judged(move(MovePhase.RESERVING), seen(leaving(), BACKED))[0] is MovePhase.LANDING


def test_a_refusal_that_comes_after_the_pod_has_left_changes_nothing() -> None:
    late = seen(None, BACKED, answer=EffectAnswer.EVICTION_REFUSED, said="denied")
    assert judged(move(MovePhase.LANDING), late)[0] is MovePhase.LANDING


def test_evict_only_needs_no_seat_and_no_controller() -> None:
    bare = replace(POD, controller=NO_CONTROLLER)
    step = advance(move(spec=EVICT_ONLY), seen(bare), NOW)
    (evict,) = step.effects
    assert isinstance(evict, EvictPod)
    assert step.move.status.seat == ""


def test_evict_only_succeeds_wherever_the_replacement_lands() -> None:
    step = advance(move(spec=EVICT_ONLY), seen(leaving()), NOW)
    assert judged(step.move, seen(None)) == (MovePhase.ABORTED, MoveReason.POD_GONE)
    evicted = advance(move(spec=EVICT_ONLY), seen(), NOW).move
    gone = advance(evicted, seen(leaving()), NOW).move
    assert judged(gone, seen(None, replacement=CAME)) == (MovePhase.SUCCEEDED, MoveReason.LANDED)


def test_a_replacement_elsewhere_than_named_is_a_failure() -> None:
    made = move(MovePhase.LANDING, wanted(node="worker-3"))
    for has_claimed in (False, True):
        sight = seen(None, BACKED, replacement=CAME, has_strayed=True, has_claimed=has_claimed)
        assert judged(made, sight) == (MovePhase.FAILED, MoveReason.LANDED_ELSEWHERE)


def test_a_move_to_the_node_where_the_pod_is_fails() -> None:
    assert judged(move(spec=wanted(node="worker-1")), seen()) == (
        MovePhase.FAILED,
        MoveReason.NOT_MOVABLE,
    )


def test_the_name_of_a_seat_is_a_valid_name_of_its_own_for_each_move() -> None:
    first = replace(move(), name=PodName("shop", "a" * 199 + "." + "b" * 50))
    assert first.seat_name == "a" * 199 + "-01234567"
    assert replace(first, uid="fedcba9876543210").seat_name != first.seat_name


@pytest.mark.parametrize(
    ("seat", "anywhere"),
    [
        (replace(BACKED, closed="worker-2 is cordoned"), True),
        (GONE_NODE, True),
        (UNPLACED, True),
        (ObservedSeat(is_foreign=True), None),
        (replace(BACKED, is_backed=False, is_claimed=True), None),
        (BACKED, None),
    ],
)
def test_a_seat_of_no_use_is_placed_anew_once_the_pod_has_left(
    seat: ObservedSeat,
    anywhere: bool | None,  # noqa: FBT001 - a case
) -> None:
    step = advance(move(MovePhase.LANDING, wanted(node="worker-2")), seen(None, seat), NOW)
    assert not step.move.is_over
    name = PodName("shop", move().seat_name)
    effects = () if anywhere is None else (PlaceSeatAnew(seat=name, anywhere=anywhere),)
    assert step.effects == effects


def test_a_move_has_as_long_again_to_land_and_ten_minutes_at_most() -> None:
    for timeout_s, more_s in ((60.0, 60.0), (7200.0, 600.0)):
        made = move(MovePhase.LANDING, wanted(timeout_s=timeout_s))
        due = made.created_at + timeout_s
        late = replace(made, status=replace(made.status, evicted_at=due - 1))
        assert late.deadline == due - 1 + more_s
        early = replace(made, status=replace(made.status, evicted_at=made.created_at))
        assert early.deadline == max(due, made.created_at + more_s)
        assert late.seat_until > late.deadline
