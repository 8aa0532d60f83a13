"""The next step of a move in each situation."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.moves.advance import advance
from reserver.moves.effects import EvictPod, HoldSeat, PlaceSeatAnew, ReleaseSeat
from reserver.moves.model import Move, MoveGroup, Replacement
from reserver.moves.observation import EffectAnswer, MoveTurn, Observation, ObservedSeat
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.moves.transitions import LAST_PAUSE_S
from reserver.reservations.owner import Replaced
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
NOT_YET = MoveTurn(may_begin=False, may_evict=False, why="2 moves of worker-1 are under way")
BLOCKED = NOT_YET._replace(why="the budget web allows none", is_blocked=True)
CAME = Replacement("web-2", "uid-2", "worker-2")
PLANNED = move(spec=wanted(uid=POD.uid, node="worker-2", group=MoveGroup("rebalance-1", 1)))
GONE_NODE = ObservedSeat(node="worker-2", impossible="worker-2 is gone")


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


def test_a_seat_that_went_before_the_landing_was_written_down_may_have_been_claimed() -> None:
    """The write of the status came late: the replacement is looked for once it is written."""
    step = advance(move(MovePhase.EVICTING), seen(None, None), NOW)
    assert (step.move.status.phase, step.move.is_over) == (MovePhase.LANDING, False)
    assert step.move.status.reason is MoveReason.WAITS_FOR_REPLACEMENT


def test_a_move_says_why_its_replacement_cannot_be_made() -> None:
    step = advance(move(MovePhase.LANDING), seen(None, BACKED, failure="no more pods here"), NOW)
    waits = "Reserver waits for the replacement on worker-2"
    said = f"{waits}; ReplicaSet cannot create it: no more pods here"
    assert step.move.status.message == said


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
    """Until the watch has had time to show that it leaves; then its replacement has the seat."""
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
