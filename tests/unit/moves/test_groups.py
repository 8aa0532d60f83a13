"""Groups of equal names in two namespaces have nothing in common, unless a PodMoveGroup says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.pod import Controller, PodName
from reserver.moves.arbitration import Ruling, arbitrate
from reserver.moves.groups import Contender
from reserver.moves.limits import STALLED_S, MoveLimits
from reserver.moves.model import ALONE, Declared, GroupMember, Move, MoveGroup, MoveSpec
from reserver.moves.phases import MovePhase, MoveReason
from tests.builders import pod
from tests.cpu import MOST_S, longest_step_s
from tests.unit.moves.build import NOW

ANY = MoveLimits(per_node=None)
PLAN = MoveGroup("plan-7", 2)
ACROSS = MoveGroup("plan-7", 2, across=True)


def contender(  # noqa: PLR0913 - the fields of a scenario
    name: str,
    phase: MovePhase = MovePhase.PENDING,
    space: str = "shop",
    *,
    group: MoveGroup = ALONE,
    node: str = "worker-1",
    to: str = "",
    after: str = "",
    uid: str = "",
    evicted_at: float | None = None,
    reason: MoveReason | None = None,
    target: str = "",
) -> Contender:
    """Return a move in a namespace, whose pod has the name of the move."""
    spec = MoveSpec(pod=PodName(space, name), group=group, node=to, after=after, uid=uid)
    made = Move(name=spec.pod, uid=f"uid-{space}-{name}", created_at=NOW, spec=spec)
    source = "" if phase is MovePhase.PENDING else node
    status = replace(
        made.status,
        phase=phase,
        source=source,
        target=target,
        evicted_at=evicted_at,
        reason=reason,
        uid=uid,
    )
    return Contender(
        move=replace(made, status=status),
        pod=pod(name, namespace=space, node=node),
        controller=Controller("ReplicaSet", name),
    )


def ruled(
    *moves: Contender, declared: Declared | None = None, limits: MoveLimits = ANY, at: float = NOW
) -> dict[str, Ruling]:
    rulings = outcome(arbitrate(moves, (), declared or {}, at, limits))
    return {str(name): ruling for name, ruling in rulings.items()}


def waiting() -> tuple[Contender, Contender]:
    """Return the two moves of a plan, one of them without a seat."""
    seated = contender("plan-1", MovePhase.EVICTING, group=PLAN)
    return seated, contender("plan-2", MovePhase.RESERVING, group=PLAN)


STRANGERS = {
    "has failed": contender("spoil", MovePhase.FAILED, "evil", group=MoveGroup("plan-7", 1)),
    "was aborted, so would count as seated": contender(
        "fill",
        MovePhase.ABORTED,
        "evil",
        group=MoveGroup("plan-7", 1),
        reason=MoveReason.POD_FINISHED,
    ),
    "is of a pod without a node, so would have others make room for it": contender(
        "room",
        MovePhase.RESERVING,
        "evil",
        group=MoveGroup("plan-7", 1),
        node="",
        uid="u",
        target="w",
    ),
    "is of a pod without a node, and has ended": contender(
        "room", MovePhase.ABORTED, "evil", group=MoveGroup("plan-7", 1), node="", uid="u"
    ),
    "says that it is listed": contender("plan-2", MovePhase.EVICTING, "evil", group=ACROSS),
    "has a seat": contender("plan-3", MovePhase.EVICTING, "evil", group=PLAN),
    "waits for a seat": contender("plan-3", MovePhase.RESERVING, "evil", group=PLAN),
}


@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_move_of_another_namespace_changes_nothing_in_a_group_of_the_same_name(
    stranger: Contender,
) -> None:
    alone = ruled(*waiting())
    assert not alone["shop/plan-1"].turn.may_evict
    with_stranger = ruled(*waiting(), stranger)
    assert {name: with_stranger[name] for name in alone} == alone


def test_a_group_is_not_whole_by_moves_of_another_namespace() -> None:
    here = contender("plan-1", group=PLAN)
    there = contender("plan-1", space="evil", group=PLAN)
    for ruling in ruled(here, there).values():
        assert not ruling.turn.may_begin
        assert ruling.turn.waits_for_group
    said = ruled(here, there)["shop/plan-1"].turn.why
    assert said == (
        "1 of the 2 moves of its group are not written yet in shop; those of other namespaces take "
        "a PodMoveGroup"
    )


def test_a_group_across_namespaces_that_was_begun_by_an_older_reserver_evicts_nobody() -> None:
    """Both hold a seat; but who says that they know of each other?"""
    both = [
        contender("plan-1", MovePhase.EVICTING, space, group=PLAN) for space in ("shop", "blog")
    ]
    rulings = ruled(*both)
    assert [each.turn.may_evict for each in rulings.values()] == [False, False]
    assert "take a PodMoveGroup" in rulings["shop/plan-1"].turn.why


LISTED: Declared = {
    "plan-7": frozenset(
        (
            GroupMember(PodName("shop", "plan-1"), "uid-1"),
            GroupMember(PodName("blog", "plan-1"), "uid-2"),
        )
    )
}


def members(first: MovePhase, second: MovePhase) -> tuple[Contender, Contender]:
    return (
        contender("plan-1", first, "shop", group=ACROSS, uid="uid-1"),
        contender("plan-1", second, "blog", group=ACROSS, uid="uid-2"),
    )


def test_a_group_that_is_listed_spans_namespaces() -> None:
    begin = ruled(*members(MovePhase.PENDING, MovePhase.PENDING), declared=LISTED)
    assert all(each.turn.may_begin for each in begin.values())
    one = ruled(*members(MovePhase.EVICTING, MovePhase.RESERVING), declared=LISTED)
    assert not one["shop/plan-1"].turn.may_evict
    assert one["shop/plan-1"].turn.why == "1 of the 2 moves of its group have no seat yet"
    both = ruled(*members(MovePhase.EVICTING, MovePhase.EVICTING), declared=LISTED)
    assert all(each.turn.may_evict for each in both.values())


def test_no_member_is_told_the_name_of_one_of_another_namespace() -> None:
    failed = ruled(*members(MovePhase.EVICTING, MovePhase.FAILED), declared=LISTED)["shop/plan-1"]
    assert failed.failed_member == "a move of another namespace"
    for size in (1, 2):
        group = MoveGroup("plan-7", size, across=True)
        first = contender("plan-1", MovePhase.EVICTING, "shop", group=group, uid="uid-1", to="w")
        second = contender("plan-1", MovePhase.PENDING, "blog", group=group, uid="uid-2", to="w")
        for ruling in ruled(first, second, declared=LISTED).values():
            assert "plan-1" not in ruling.turn.why


def test_seats_of_a_plan_are_taken_in_its_order_whatever_its_namespaces_are_called() -> None:
    group = MoveGroup("plan-7", 1, across=True)
    listed = frozenset(
        (GroupMember(PodName("z", "p-000"), "u"), GroupMember(PodName("a", "p-001"), "u"))
    )
    first = contender("p-000", space="z", group=group, uid="u", to="worker-9")
    second = contender("p-001", space="a", group=group, uid="u", to="worker-9")
    rulings = ruled(second, first, declared={"plan-7": listed})
    assert [rulings[name].turn.may_begin for name in ("z/p-000", "a/p-001")] == [True, False]


FORGED = {
    "of another name": contender("plan-9", MovePhase.ABORTED, "blog", group=ACROSS, uid="uid-2"),
    "of another pod": contender("plan-1", MovePhase.ABORTED, "blog", group=ACROSS, uid="uid-9"),
    "of no pod": contender("plan-1", MovePhase.ABORTED, "blog", group=ACROSS),
    "of what follows another": contender(
        "plan-1", MovePhase.ABORTED, "blog", group=ACROSS, after="first"
    ),
    "of another namespace": contender(
        "plan-1", MovePhase.ABORTED, "evil", group=ACROSS, uid="uid-2"
    ),
    "of a group of its namespace": contender(
        "plan-1", MovePhase.ABORTED, "blog", group=PLAN, uid="uid-2"
    ),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_move_that_is_not_listed_is_no_member_whatever_it_says(forged: Contender) -> None:
    own = members(MovePhase.EVICTING, MovePhase.EVICTING)[0]
    ruling = ruled(own, forged, declared=LISTED)["shop/plan-1"]
    assert not ruling.turn.may_evict
    assert "1 of the 2 moves of its group are not written yet" in ruling.turn.why


@pytest.mark.parametrize("phase", [MovePhase.PENDING, MovePhase.EVICTING])
def test_who_says_that_it_is_listed_and_is_not_waits(phase: MovePhase) -> None:
    for declared in ({}, {"plan-8": LISTED["plan-7"]}):
        rulings = ruled(*members(phase, phase), declared=declared)
        for ruling in rulings.values():
            assert not ruling.turn.may_evict
            assert not (phase is MovePhase.PENDING and ruling.turn.may_begin)
            assert ruling.turn.why == "no PodMoveGroup plan-7 lists this PodMove and its pod"
            assert ruling.turn.waits_for_group


def test_one_that_follows_another_is_listed_without_a_pod() -> None:
    listed = {"plan-7": LISTED["plan-7"] | {GroupMember(PodName("shop", "home"))}}
    group = MoveGroup("plan-7", 3, across=True)
    home = contender("home", group=group, after="plan-1")
    both = (
        replace(each, move=replace(each.move, spec=replace(each.move.spec, group=group)))
        for each in members(MovePhase.PENDING, MovePhase.PENDING)
    )
    assert ruled(*both, home, declared=listed)["shop/plan-1"].turn.may_begin


def greedy(number: int, phase: MovePhase, **fields: object) -> list[Contender]:
    return [contender(f"e{n}", phase, "evil", **fields) for n in range(number)]  # type: ignore[arg-type]


def test_seats_that_one_namespace_takes_ahead_leave_their_part_to_others() -> None:
    own = contender("web")
    for taken in range(120):
        rulings = ruled(*greedy(taken, MovePhase.RESERVING), *greedy(9, MovePhase.PENDING), own)
        assert rulings["shop/web"].turn.may_begin is (taken < 99)
    # Alone one has fifty, and no more.
    begun = ruled(*greedy(120, MovePhase.PENDING))
    assert sum(each.turn.may_begin for each in begun.values()) == 50


def test_of_namespaces_that_keep_asking_each_gets_as_much() -> None:
    asks = [contender(f"m{n}", space=space) for space in "abcd" for n in range(99)]
    begun = ruled(*asks)
    for space in "abcd":
        mine = [it.turn.may_begin for name, it in begun.items() if name.startswith(space)]
        assert 19 <= sum(mine) <= 21


def test_pods_of_one_namespace_that_leave_a_node_leave_their_part_to_others() -> None:
    limits = MoveLimits(per_node=2)
    begun = ruled(
        *greedy(5, MovePhase.EVICTING), contender("web", MovePhase.EVICTING), limits=limits
    )
    assert [name for name, it in begun.items() if it.turn.may_evict] == ["evil/e0", "shop/web"]
    landing = greedy(2, MovePhase.LANDING, evicted_at=NOW)
    begun = ruled(*landing, contender("web", MovePhase.EVICTING), limits=limits)
    assert begun["shop/web"].turn.may_evict
    third = contender("api", MovePhase.EVICTING, "blog")
    begun = ruled(*landing, contender("web", MovePhase.LANDING), third, limits=limits)
    assert begun["blog/api"].turn.why == "3 moves from worker-1 are under way, 0 of them of blog"


def test_a_replacement_that_does_not_come_keeps_others_from_moving_for_two_minutes_only() -> None:
    many = [
        contender(f"e{n}", MovePhase.LANDING, space, evicted_at=NOW)
        for space in ("evil", "worse")
        for n in range(2)
    ]
    asks = contender("web", MovePhase.EVICTING), contender("more", MovePhase.EVICTING, "evil")
    limits = MoveLimits(per_node=2)
    before = ruled(*many, *asks, limits=limits, at=NOW + STALLED_S - 1)
    assert not before["shop/web"].turn.may_evict
    back = ruled(*many, *asks, limits=limits, at=NOW - 3600)  # The clock was set back.
    assert back["shop/web"].turn.may_evict
    after = ruled(*many, *asks, limits=limits, at=NOW + STALLED_S)
    assert after["shop/web"].turn.may_evict
    # Its own namespace is bounded as before.
    assert not after["evil/more"].turn.may_evict


def test_the_first_of_each_namespace_comes_before_the_second_of_any() -> None:
    """Whatever the priority and the number of the pods of one namespace."""
    important = [
        replace(each, pod=pod(each.move.name.name, namespace="evil", node="worker-1", priority=99))
        for each in greedy(6, MovePhase.EVICTING)
    ]
    others = [contender("web", MovePhase.EVICTING, space) for space in ("blog", "shop")]
    begun = ruled(*important, *others, limits=MoveLimits(per_node=2))
    may = [name for name, it in begun.items() if it.turn.may_evict]
    assert may == ["evil/e0", "blog/web", "shop/web"]
    one_lands = greedy(1, MovePhase.LANDING, evicted_at=NOW)
    begun = ruled(*one_lands, *important[1:], others[1], limits=MoveLimits(per_node=2))
    assert [name for name, it in begun.items() if it.turn.may_evict] == ["evil/e0", "shop/web"]


@pytest.mark.long
def test_no_step_is_long_however_many_moves_are_in_groups() -> None:
    """Ten thousand are the most; the first step, which counted them all, took 0.07 s."""
    moves = [contender(f"m{n}", space=f"s{n % 20}", group=PLAN, to="w") for n in range(10_000)]
    assert longest_step_s(lambda: arbitrate(moves, (), {}, NOW, ANY)) < MOST_S
