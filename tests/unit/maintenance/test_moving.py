"""The PodMoves that empty a node: pods and moves in, writes and deletions out."""

from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.maintenance.model import MaintenancePeriod, Window
from reserver.maintenance.moving import (
    AGAIN_S,
    CreateMove,
    DeleteMove,
    MoveEffect,
    WrittenMove,
    emptying,
    leftovers,
    options,
)
from reserver.moves.drain import Drain, LeavingPod, judge
from reserver.moves.model import MAX_TIMEOUT_S, Move, MoveSpec, MoveStatus
from reserver.moves.phases import MoveMode, MovePhase, MoveReason

START, END = 10_000.0, 20_000.0
WINDOW = Window(name="w", uid="w", period=MaintenancePeriod(START, END))
FORCED = replace(WINDOW, allows_unseated=True)
SURGING = replace(FORCED, surges=True)
WEB = LeavingPod("shop", "web", "u", is_managed=True)
BARE = LeavingPod("shop", "bare", "v", is_managed=False)
SEATED, EVICTING = MoveMode.RESERVE_FIRST, MoveMode.EVICT_ONLY


def written(
    phase: MovePhase = MovePhase.PENDING, key: str = WINDOW.key, **more: Any
) -> WrittenMove:
    spec = MoveSpec(pod=PodName("shop", "web"), mode=more.pop("mode", SEATED))
    status = MoveStatus(phase=phase, **more)
    name = PodName("shop", "web-1")
    move = Move(name=name, uid="m", created_at=0.0, spec=spec, status=status)
    return WrittenMove(move, key, "7")


DELETION = DeleteMove(PodName("shop", "web-1"), "m", "7")


def effects(
    window: Window,
    now: float,
    *pods: LeavingPod,
    under_way: WrittenMove | None = None,
    before: WrittenMove | None = None,
) -> list[MoveEffect]:
    moves = [under_way] if under_way else []
    drain = Drain(pods, (), ())
    return list(emptying(window, drain, lambda _: moves, lambda _: before, now))


@pytest.mark.parametrize(
    ("window", "now", "pod", "mode"),
    [
        (WINDOW, START - 1, WEB, SEATED),
        (WINDOW, END - 1, WEB, SEATED),
        (FORCED, START - 1, WEB, SEATED),
        (FORCED, START, WEB, EVICTING),
        (SURGING, START - 1, WEB, MoveMode.SURGE_FIRST),
        (SURGING, START, WEB, EVICTING),
        (FORCED, START - 1, BARE, None),
        (FORCED, START, BARE, EVICTING),
    ],
)
def test_a_pod_leaves_with_a_seat_unless_told_otherwise(
    window: Window, now: float, pod: LeavingPod, mode: MoveMode | None
) -> None:
    found = effects(window, now, pod)
    assert [each.mode for each in found if isinstance(each, CreateMove)] == [mode] * bool(mode)


def test_a_move_has_time_until_the_end_and_a_name_of_its_own() -> None:
    (move,) = effects(WINDOW, START, WEB)
    assert isinstance(move, CreateMove)
    assert move.timeout_s == END - START
    assert effects(WINDOW, START, WEB) == [move]
    (other,) = effects(WINDOW, START, WEB._replace(uid="another"))
    assert isinstance(other, CreateMove)
    assert other.name != move.name
    (long,) = effects(replace(WINDOW, period=MaintenancePeriod(0, 10 * MAX_TIMEOUT_S)), 0.0, WEB)
    assert isinstance(long, CreateMove)
    assert long.timeout_s == MAX_TIMEOUT_S


def test_a_pod_that_moves_already_is_left_alone() -> None:
    for phase in (MovePhase.PENDING, MovePhase.EVICTING, MovePhase.LANDING):
        assert not effects(WINDOW, START, WEB, under_way=written(phase))
    assert not effects(FORCED, START, WEB, under_way=written(key="another"))
    assert not effects(FORCED, START, WEB, under_way=written(MovePhase.LANDING))
    assert not effects(FORCED, START, WEB, under_way=written(mode=EVICTING))


def test_a_move_of_somebody_else_that_waits_for_its_window_keeps_no_pod_on_the_node() -> None:
    waits = written(key="", reason=MoveReason.WAITS_FOR_WINDOW)
    (move,) = effects(WINDOW, START, WEB, under_way=waits)
    assert isinstance(move, CreateMove)


def test_a_move_that_waits_for_a_seat_gives_way_at_the_start_where_that_is_allowed() -> None:
    surges = written(MovePhase.SURGING, mode=MoveMode.SURGE_FIRST)
    for waits in (written(MovePhase.RESERVING), surges):
        found = effects(FORCED, START, WEB, under_way=waits)
        assert found == [DELETION]
    handed_over = written(MovePhase.HANDING_OVER, mode=MoveMode.SURGE_FIRST)
    assert not effects(FORCED, START, WEB, under_way=handed_over)


def test_a_failed_move_is_written_again_after_a_while() -> None:
    failed = written(MovePhase.FAILED, finished_at=START)
    assert not effects(WINDOW, START + AGAIN_S - 1, WEB, before=failed)
    is_set_back = START - 3_600
    for now in (START + AGAIN_S, is_set_back):
        (found,) = effects(WINDOW, now, WEB, before=failed)
        assert isinstance(found, DeleteMove)


def test_moves_of_windows_that_have_nothing_in_hand_end_unless_their_pod_is_gone() -> None:
    moves = [
        written(),
        written(MovePhase.LANDING),
        written(MovePhase.SUCCEEDED),
        written(key=""),
        written(key="held"),
    ]
    assert list(leftovers(moves, frozenset({"held"}))) == [DELETION]


@pytest.mark.parametrize(
    ("reason", "is_deleted"),
    [
        (MoveReason.READY_TO_EVICT, False),
        (MoveReason.EVICTION_RETRIED, False),
        (MoveReason.BUDGET_BLOCKS, True),
        (MoveReason.WAITS_FOR_TURN, True),
    ],
)
def test_a_move_that_may_have_evicted_its_pod_is_not_deleted(
    reason: MoveReason, *, is_deleted: bool
) -> None:
    """The seat went with the move, between the answer to an eviction and its event."""
    move = written(MovePhase.EVICTING, reason=reason)
    assert list(leftovers([move], frozenset())) == [DELETION] * is_deleted
    assert effects(FORCED, START, WEB, under_way=move) == [DELETION] * is_deleted


def test_what_it_may_not_move_is_named_with_the_field_that_would_allow_it() -> None:
    pods = b"""{"items": [
        {"metadata": {"namespace": "shop", "name": "bare"}},
        {"metadata": {"namespace": "shop", "name": "data", "ownerReferences":
            [{"kind": "ReplicaSet", "name": "data", "uid": "r", "controller": true}]},
            "spec": {"volumes": [{"emptyDir": {}}]}},
        {"metadata": {"namespace": "kube-system", "name": "proxy", "ownerReferences":
            [{"kind": "DaemonSet", "name": "proxy", "uid": "d", "controller": true}]}}
    ]}"""
    found = judge(pods, options(WINDOW))
    assert [each.why.rpartition("; ")[2].partition(":")[0] for each in found.refused] == [
        "allowUnseated",
        "deleteEmptyDirData",
    ]
    allowed = judge(pods, options(replace(FORCED, deletes_empty_dirs=True)))
    assert not allowed.refused
    assert [each.name for each in allowed.staying] == ["proxy"]
