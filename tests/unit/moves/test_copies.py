"""The step of a move with a copy of its pod in each situation."""

from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import decode, encode
from reserver.moves.effects import Effect, PlaceSeatAnew
from reserver.moves.index import MoveIndex
from reserver.moves.model import Move, Replacement
from reserver.moves.observation import (
    GO,
    MoveTurn,
    ObservedCopy,
    ObservedOriginal,
    ObservedSeat,
    ObservedSurge,
)
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.moves.podmove import MoveObject
from reserver.moves.surge_pods import SurgeRemains
from reserver.moves.surging import surging
from tests.builders import pod
from tests.unit.k8s.fakes import ScriptedClient
from tests.unit.moves.build import BACKED, NOW, POD, move, seen, wanted

COPY = ObservedCopy("web-copy", "uid-copy")
READY = COPY._replace(node="worker-2", is_ready=True)
CLOSED = replace(BACKED, closed="worker-2 is cordoned")


def judged(
    copy: ObservedCopy,
    seat: ObservedSeat | None = BACKED,
    turn: MoveTurn = GO,
    **spec: Any,
) -> tuple[Move, tuple[Effect, ...]]:
    """Return a move that has a copy of its pod, and its effects, after a step."""
    made = move(MovePhase.SURGING, wanted(mode=MoveMode.SURGE_FIRST, **spec))
    surge = ObservedSurge(copy=copy, leaving=ObservedOriginal(is_ready=True))
    return surging(made, seen(seat=seat, surge=surge, turn=turn), POD, NOW)


def test_a_copy_without_a_node_has_its_seat_placed_anew_where_that_closed() -> None:
    seat = PodName("shop", move().seat_name)
    assert judged(COPY, CLOSED)[1] == (PlaceSeatAnew(seat=seat, anywhere=False),)


@pytest.mark.parametrize(
    ("copy", "seat", "spec"),
    [
        pytest.param(COPY, BACKED, {}, id="its node is open"),
        pytest.param(COPY, replace(CLOSED, is_foreign=True), {}, id="it is not of the move"),
        pytest.param(COPY, CLOSED, {"node": "worker-2"}, id="the move names the node"),
        pytest.param(COPY, CLOSED, {"paused": True}, id="the move is paused"),
        pytest.param(COPY._replace(node="worker-2"), CLOSED, {}, id="the copy is on a node"),
    ],
)
def test_a_seat_stays_where_it_is_if(
    copy: ObservedCopy, seat: ObservedSeat, spec: dict[str, Any]
) -> None:
    assert judged(copy, seat, **spec)[1] == ()


def test_a_copy_that_is_ready_is_handed_over_once_its_pod_may_leave() -> None:
    """`may_begin` does not matter: the window may have closed, or other pods may leave."""
    turn = MoveTurn(may_begin=True, may_evict=False, why="2 moves of worker-1 are under way")
    waits, _ = judged(READY, turn=turn)
    assert (waits.status.phase, waits.status.reason) == (
        MovePhase.SURGING,
        MoveReason.WAITS_FOR_TURN,
    )
    goes, _ = judged(READY, turn=MoveTurn(may_begin=False, may_evict=True))
    assert goes.status.phase is MovePhase.HANDING_OVER


async def test_a_pod_that_calls_itself_a_copy_is_looked_at_once_and_forgotten_when_gone() -> None:
    """Any tenant may write the annotation, and each check takes two requests."""
    remains = SurgeRemains(ScriptedClient(), MoveIndex(lambda _: None))
    forged = replace(pod("forged"), surge="m/uid-m")
    remains.changed(None, forged)
    assert remains.queue.take_all() == [forged.name]
    remains.changed(forged, replace(forged, revision=2))
    assert remains.queue.take_all() == []
    again = replace(forged, surge="other/uid-m")
    remains.changed(forged, again)
    remains.changed(again, None)
    assert remains.queue.take_all() == []


def written(phase: str, revision: int = 1) -> MoveObject:
    """Return the PodMove shop/a of the pod p, which surges."""
    metadata = {"namespace": "shop", "name": "a", "uid": "uid-a", "resourceVersion": str(revision)}
    metadata["creationTimestamp"] = "2030-01-01T00:00:00Z"
    status = {"phase": phase, "podUID": "uid-p", "controller": {"kind": "ReplicaSet", "name": "w"}}
    spec = {"pod": {"name": "p"}, "mode": "SurgeFirst"}
    return decode(MoveObject, encode({"metadata": metadata, "spec": spec, "status": status}))


async def test_a_podmove_that_ends_has_only_its_pod_and_its_copy_checked() -> None:
    """Each write of one had all pods checked that were annotated with its name, one by one."""
    moves = MoveIndex(lambda name: remains.touched(name))  # noqa: PLW0108 - made below
    remains = SurgeRemains(ScriptedClient(), moves)
    moves.put(written("Surging"))
    for name in ("p", "w-uid-a", *(f"forged-{number}" for number in range(100))):
        remains.changed(None, replace(pod(name), surge="a/uid-a"))
    remains.queue.take_all()
    moves.put(written("HandingOver", 2))
    assert remains.queue.take_all() == []
    moves.put(written("Failed", 3))
    assert {each.name for each in remains.queue.take_all()} == {"p", "w-uid-a"}
    moves.drop(PodName("shop", "a"))
    assert remains.queue.take_all() == []


async def test_pods_that_a_tenant_annotates_do_not_delay_the_clean_up_of_others() -> None:
    remains = SurgeRemains(ScriptedClient(), MoveIndex(lambda _: None))
    for number in range(5_000):
        remains.changed(None, replace(pod(f"forged-{number}"), surge="a/uid-a"))
    copy = replace(pod("copy", namespace="bakery"), surge="b/uid-b")
    remains.changed(None, copy)
    first = remains.queue.take(1)
    remains.queue.done(first[0])
    assert len(first) <= 10
    assert remains.queue.take(1) == [copy.name]


def test_a_pod_replaces_one_pod_though_the_move_that_it_ended_is_deleted() -> None:
    """With ttlSecondsAfterFinished: 0 another move without a seat ended with the same pod."""
    moves = MoveIndex(lambda _: None)
    moves.put(written("Landing"))
    known = moves.get(PodName("shop", "a"))
    assert known is not None
    assert known.move is not None
    ended = replace(known.move.status, replacement=Replacement("r", "uid-r", "worker-2"))
    moves.judged(known, ended)
    moves.drop(known.name)
    assert not moves.may_take("uid-r", PodName("shop", "b"))
