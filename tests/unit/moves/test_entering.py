"""Room for a pod without a node in each situation."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import NO_CONTROLLER, PodName
from reserver.moves.advance import advance
from reserver.moves.effects import HoldSeat, ReleaseSeat
from reserver.moves.model import Move
from reserver.moves.observation import ObservedSeat
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.reservations.owner import OwnerRule
from tests.unit.moves.build import BACKED, NOW, POD, judged, move, seen, wanted

SHORT = ObservedSeat(node="worker-2", obstacle="worker-2 is short of cpu")
EVICT_ONLY = wanted(mode=MoveMode.EVICT_ONLY)
HOMELESS = replace(POD, node="", controller=NO_CONTROLLER)


def entering() -> Move:
    """Return the move of a pod without a node, whose room is held but not backed."""
    step = advance(move(spec=wanted(node="worker-2")), seen(HOMELESS), NOW)
    return advance(step.move, seen(HOMELESS, SHORT), NOW).move


def test_a_pod_without_a_node_has_its_room_held_until_it_lands_and_is_never_evicted() -> None:
    step = advance(move(spec=wanted(node="worker-2")), seen(HOMELESS), NOW)
    (hold,) = step.effects
    assert isinstance(hold, HoldSeat)
    assert hold.owner == OwnerRule(namespace="shop", pod="web")
    assert (hold.node, hold.avoid) == ("worker-2", "")
    step = advance(entering(), seen(HOMELESS, BACKED), NOW + 1)
    assert (step.effects, step.move.status.reason) == ((), MoveReason.WAITS_FOR_POD)
    landed = seen(replace(HOMELESS, node="worker-2"), BACKED, has_claimed=True)
    step = advance(step.move, landed, NOW + 2)
    assert (step.move.status.phase, step.move.status.reason) == (
        MovePhase.SUCCEEDED,
        MoveReason.LANDED,
    )
    assert step.move.status.evicted_at is None


ENTERING_ENDS = {
    "it goes": (seen(None, SHORT), (MovePhase.ABORTED, MoveReason.POD_GONE)),
    "it is being deleted while its room is backed": (
        seen(replace(HOMELESS, is_leaving=True), BACKED),
        (MovePhase.ABORTED, MoveReason.POD_GONE),
    ),
    "it finds another node": (
        seen(replace(HOMELESS, node="worker-3"), SHORT),
        (MovePhase.SUCCEEDED, MoveReason.LANDED_ELSEWHERE),
    ),
    "a move that makes room fails": (
        seen(HOMELESS, SHORT, failed_member="shop/b"),
        (MovePhase.FAILED, MoveReason.GROUP_FAILED),
    ),
}


@pytest.mark.parametrize("what", ENTERING_ENDS)
def test_room_that_is_held_for_a_pod_without_a_node_is_released_when(what: str) -> None:
    sight, expected = ENTERING_ENDS[what]
    step = advance(entering(), sight, NOW)
    assert (step.move.status.phase, step.move.status.reason) == expected
    assert step.effects == (ReleaseSeat(seat=PodName("shop", move().seat_name)),)


def test_evict_only_moves_no_pod_that_has_no_node() -> None:
    assert judged(move(spec=EVICT_ONLY), seen(HOMELESS)) == (
        MovePhase.FAILED,
        MoveReason.NOT_MOVABLE,
    )
