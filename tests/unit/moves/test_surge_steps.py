"""The next step of a move with a copy of its pod, in each situation."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reserver.cluster.pod import ClaimUse
from reserver.moves.advance import MoveStep, advance
from reserver.moves.effects import HandOver, StartCopy
from reserver.moves.model import Replacement
from reserver.moves.observation import (
    EffectAnswer,
    MoveTurn,
    Observation,
    ObservedCopy,
    ObservedPod,
    ObservedSurge,
)
from reserver.moves.phases import MoveMode, MovePhase
from reserver.moves.surges import Surges, exclusive_volume
from reserver.moves.workloads import Workload
from tests.builders import pod, state_of
from tests.unit.k8s.fakes import ScriptedClient
from tests.unit.moves.build import BACKED, NOW, POD, WEB, leaving, move, seen, wanted

COPY = ObservedCopy("web-copy", "uid-copy")
READY = COPY._replace(node="worker-2", is_ready=True)
OTHERS = "0 of the 1 other pods are ready"
STARTED: Mapping[str, object] = {"started_at": NOW - 10}
COPIED = {**STARTED, "surged_at": NOW - 5}
HANDED = {**COPIED, "phase": MovePhase.HANDING_OVER, "handed_at": NOW - 1}
LONG_AGO = NOW - 400


def step(status: Mapping[str, object], what: Observation, created_at: float = NOW - 10) -> MoveStep:
    """Return the step of a move with a seat and a timeout of 600 s from its creation."""
    made = move(MovePhase.SURGING, wanted(mode=MoveMode.SURGE_FIRST))
    made = replace(made, created_at=created_at, status=replace(made.status, **status))  # type: ignore[arg-type]
    return advance(made, what, NOW)


def surge(copy: ObservedCopy | None = None, **more: object) -> Observation:
    """Return an observation of the pod, its seat and its copy, with changes."""
    workload = {name: more.pop(name) for name in ("others", "unfit") if name in more}
    about = {"pod": POD, "seat": BACKED, **more}
    return seen(surge=ObservedSurge(copy=copy, **workload), **about)  # type: ignore[arg-type]


Situation = tuple[Mapping[str, object], Observation, str]
BEFORE_THE_COPY: Mapping[str, Situation] = {
    "a pod of the copy's name is not of the move": (
        COPIED,
        surge(COPY._replace(is_foreign=True)),
        "Evicting ReadyToEvict",
    ),
    "its seat is not of the move": (
        STARTED,
        surge(seat=replace(BACKED, is_foreign=True)),
        "Failed SeatRefused",
    ),
    "the node of its seat is cordoned": (
        STARTED,
        surge(seat=replace(BACKED, closed="worker-2 is cordoned")),
        "Reserving WaitsForSeat",
    ),
    "others of its group are not ready to go": (
        STARTED,
        surge(turn=MoveTurn(may_evict=False, why="1 seat is missing", waits_for_group=True)),
        "Surging WaitsForGroup",
    ),
    "another pod of the ReplicaSet is not ready": (
        STARTED,
        surge(others=OTHERS),
        "Surging WaitsForOthers",
    ),
}


@pytest.mark.parametrize("when", BEFORE_THE_COPY)
def test_no_copy_is_started_while(when: str) -> None:
    status, what, expected = BEFORE_THE_COPY[when]
    after = step(status, what)
    assert f"{after.move.status.phase} {after.move.status.reason}" == expected
    assert not any(isinstance(each, StartCopy) for each in after.effects)


@pytest.mark.parametrize("begun_at", [NOW - 10, LONG_AGO])
def test_a_copy_that_was_announced_is_started_even_if_another_pod_is_not_ready_now(
    begun_at: float,
) -> None:
    """Reserver was killed between the writes of the turn and of the copy."""
    after = step({**COPIED, "started_at": begun_at}, surge(others=OTHERS), begun_at)
    assert [type(each) for each in after.effects] == [StartCopy]
    assert not after.move.status.fallback


def test_a_move_waits_for_the_other_pods_for_half_of_the_time_since_its_turn() -> None:
    """A long wait for the turn shows nothing about the other pods."""
    assert not step(STARTED, surge(others=OTHERS), LONG_AGO).move.status.fallback
    begun = {"started_at": LONG_AGO}
    assert step(begun, surge(others=OTHERS), LONG_AGO).move.status.fallback == OTHERS


WITH_THE_COPY: Mapping[str, Situation] = {
    "the copy is being deleted": (COPIED, surge(READY._replace(is_leaving=True)), "CopyLost"),
    "another pod has the name of the copy": (
        {**COPIED, "replacement": Replacement("web-copy", "uid-before")},
        surge(READY),
        "CopyLost",
    ),
    "the copy that was there is gone": (
        {**COPIED, "replacement": Replacement("web-copy", "uid-copy")},
        surge(),
        "CopyLost",
    ),
    "the copy has landed on the node that the pod is to leave": (
        COPIED,
        surge(READY._replace(node=POD.node)),
        "LandedElsewhere",
    ),
    "the copy is on a node that the move does not ask for": (
        COPIED,
        surge(READY, has_strayed=True),
        "LandedElsewhere",
    ),
    "the handover is refused": (
        HANDED,
        surge(READY, answer=EffectAnswer.HANDOVER_REFUSED),
        "HandoverRefused",
    ),
    "another move of the pod goes first": (COPIED, surge(READY, rival="PodMove a"), "MovedAlready"),
    "a member of its group has failed": (COPIED, surge(READY, failed_member="b"), "GroupFailed"),
}


@pytest.mark.parametrize("when", WITH_THE_COPY)
def test_a_copy_is_given_up_when(when: str) -> None:
    status, what, reason = WITH_THE_COPY[when]
    after = step(status, what)
    assert (after.move.is_over, after.move.status.reason) == (True, reason)


@pytest.mark.parametrize("gone", [None, leaving(), replace(POD, is_finished=True)])
def test_a_copy_takes_the_place_of_a_pod_that_goes_by_itself(gone: ObservedPod | None) -> None:
    """Such a pod needs no mark: its ReplicaSet does not count it."""
    after = step(HANDED, surge(READY, pod=gone))
    assert [type(each) for each in after.effects] == [HandOver]


def test_no_seat_is_written_again_for_a_pod_that_goes_by_itself() -> None:
    assert step(COPIED, surge(COPY, pod=leaving(), seat=None)).effects == ()


def test_a_move_says_where_its_copy_has_landed() -> None:
    after = step(COPIED, surge(READY._replace(node="worker-3", is_ready=False)))
    assert after.move.status.target == "worker-3"


def test_a_copy_that_is_not_ready_any_more_has_no_longer_time_than_before() -> None:
    """Only a move that hands over may land after its timeout."""
    after = step(HANDED, surge(READY._replace(is_ready=False)))
    assert after.move.status.phase is MovePhase.SURGING
    assert after.move.deadline == NOW - 10 + after.move.spec.timeout_s


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        pytest.param(ClaimUse("web-scratch", is_ephemeral=True), "", id="the copy gets its own"),
        pytest.param(ClaimUse("data"), "cannot use its volume claim data", id="not seen yet"),
    ],
)
def test_a_volume_claim_keeps_a_pod_from_surging_unless_it_is_ephemeral(
    claim: ClaimUse, said: str
) -> None:
    claiming = replace(pod("web"), volume_claims=(claim,))
    why = exclusive_volume(claiming, state_of(claiming).snapshot)
    assert said in why
    assert bool(why) is bool(said)


async def test_a_move_that_waits_for_its_turn_asks_for_no_workload() -> None:
    """Hundreds of moves may wait, and each arbitration steps each of them."""
    client, waiting = ScriptedClient(), move(spec=wanted(mode=MoveMode.SURGE_FIRST))
    workload = Workload("shop", WEB)
    surges = Surges(client, lambda: NOW, lambda _: workload, lambda _: False, is_on=True)
    assert await surges.read(waiting) is None
    assert client.requests == []
