"""How room is held for a pod without a node, one situation at a time."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import NO_CONTROLLER, PodName
from reserver.migration.advance import advance
from reserver.migration.effects import Hold, Release
from reserver.migration.move import Mode, Move, Phase, Reason
from reserver.migration.seen import SeenSeat
from reserver.reservations.owner import OwnerRule
from tests.unit.migration.build import BACKED, NOW, POD, judged, move, seen, wanted

SHORT = SeenSeat(node="worker-2", obstacle="worker-2 is short of cpu")
EVICT_ONLY = wanted(mode=Mode.EVICT_ONLY)
HOMELESS = replace(POD, node="", controller=NO_CONTROLLER)


def entering() -> Move:
    """Return the move of a pod without a node whose room is held and not backed yet."""
    step = advance(move(spec=wanted(node="worker-2")), seen(HOMELESS), NOW)
    return advance(step.move, seen(HOMELESS, SHORT), NOW).move


def test_a_pod_without_a_node_has_its_room_held_until_it_lands_and_is_never_evicted() -> None:
    step = advance(move(spec=wanted(node="worker-2")), seen(HOMELESS), NOW)
    (hold,) = step.effects
    assert isinstance(hold, Hold)
    assert hold.owner == OwnerRule(namespace="shop", pod="web")
    assert (hold.node, hold.avoid) == ("worker-2", "")
    step = advance(entering(), seen(HOMELESS, BACKED), NOW + 1)
    assert (step.effects, step.move.status.reason) == ((), Reason.WAITS_FOR_POD)
    landed = seen(replace(HOMELESS, node="worker-2"), BACKED, has_claimed=True)
    step = advance(step.move, landed, NOW + 2)
    assert (step.move.status.phase, step.move.status.reason) == (Phase.SUCCEEDED, Reason.LANDED)
    assert step.move.status.evicted_at is None


ENTERING_ENDS = {
    "it goes": (seen(None, SHORT), (Phase.ABORTED, Reason.POD_GONE)),
    "it is being deleted while its room is backed": (
        seen(replace(HOMELESS, is_leaving=True), BACKED),
        (Phase.ABORTED, Reason.POD_GONE),
    ),
    "it finds another node": (
        seen(replace(HOMELESS, node="worker-3"), SHORT),
        (Phase.SUCCEEDED, Reason.LANDED_ELSEWHERE),
    ),
    "a move that makes room fails": (
        seen(HOMELESS, SHORT, failed_member="shop/b"),
        (Phase.FAILED, Reason.GROUP_FAILED),
    ),
}


@pytest.mark.parametrize("what", ENTERING_ENDS)
def test_room_that_is_held_for_a_pod_without_a_node_is_released_when(what: str) -> None:
    sight, expected = ENTERING_ENDS[what]
    step = advance(entering(), sight, NOW)
    assert (step.move.status.phase, step.move.status.reason) == expected
    assert step.effects == (Release(seat=PodName("shop", move().seat_name)),)


def test_evict_only_moves_no_pod_that_has_no_node() -> None:
    assert judged(move(spec=EVICT_ONLY), seen(HOMELESS)) == (Phase.FAILED, Reason.NOT_MOVABLE)
