"""The nodes of windows, their desired state and the cordoned ones: values in and out."""

from dataclasses import replace

import pytest

from reserver.cluster.node import NodeCondition
from reserver.maintenance.codec import MOST_WINDOWS
from reserver.maintenance.decide import MaintenanceDecision, decide
from reserver.maintenance.model import (
    PLANNED_AHEAD_S,
    REASON,
    MostUnavailable,
    NodePhase,
    ObservedNode,
    Window,
    WindowUse,
)
from reserver.maintenance.turns import Turn
from reserver.moves.drain import BEING_DELETED, Drain, LeavingPod, StayingPod
from tests.cpu import MOST_S, longest_step_s
from tests.unit.maintenance.deciding import (
    CORDONED,
    DONE,
    DRAIN_AT,
    END,
    FOUND,
    START,
    A,
    B,
    C,
    W,
    decided,
    held,
    node,
    not_ready,
    window,
)

EMPTY = Drain((), (), ())
FULL = Drain((LeavingPod("shop", "web", "u", is_managed=True),), (), ())
OTHER = window("x")


def in_hand(decision: MaintenanceDecision, by: Window = W) -> set[str]:
    return {
        name for name, goal in decision.goals.items() if goal.uses.get(by.key) in {CORDONED, FOUND}
    }


ALL_OF = replace(W, most_unavailable=MostUnavailable(100, is_percent=True))


@pytest.mark.parametrize(
    ("nodes", "by", "expected"),
    [
        ([A, B, C], W, {"a"}),
        ([A, B, C], replace(W, most_unavailable=MostUnavailable(2)), {"a", "b"}),
        ([A, B, C], replace(W, most_unavailable=MostUnavailable(67, is_percent=True)), {"a", "b"}),
        ([A, B, C], replace(W, most_unavailable=MostUnavailable(1, is_percent=True)), {"a"}),
        ([A, B, C], ALL_OF, {"a", "b", "c"}),
        ([A, held("b"), C], W, {"b"}),
        ([A, held("b", DONE), C], W, {"a"}),
        ([held("a", is_cordoned=False), B, C], W, {"b"}),
        ([A, node("b", is_cordoned=True), C], W, {"b"}),
        ([A, node("b", **not_ready()), C], W, {"b"}),
        ([A, node("b", is_cordoned=True), node("c", **not_ready())], W, {"b", "c"}),
        ([held("a", DONE, is_cordoned=True), B, C], W, set()),
        ([A, held("b", by=OTHER), C], W, {"b"}),
    ],
    ids=[
        "one at a time",
        "two at a time",
        "a share of them",
        "one at least",
        "all at once",
        "the one that is in hand already",
        "the next one once one is done",
        "the next one once somebody has uncordoned one",
        "the one that is cordoned already, by whomever",
        "the one that is not ready",
        "all that are unavailable already",
        "none while somebody has cordoned one again",
        "the one that a window has which is gone",
    ],
)
def test_a_window_takes_as_many_nodes_as_may_be_unavailable(
    nodes: list[ObservedNode], by: Window, expected: set[str]
) -> None:
    assert in_hand(decided(nodes, windows={by: [each.name for each in nodes]})) == expected


@pytest.mark.parametrize(("is_cordoned", "use"), [(True, FOUND), (False, CORDONED)])
def test_a_window_notes_whether_somebody_else_had_cordoned_its_node(
    *, is_cordoned: bool, use: WindowUse
) -> None:
    """The client that cordoned the node uncordons it."""
    goal = decided([node("a", is_cordoned=is_cordoned)]).goals["a"]
    assert goal.uses == {W.key: use}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (DRAIN_AT - PLANNED_AHEAD_S - 1, None),
        (DRAIN_AT - PLANNED_AHEAD_S, {"MaintenancePlanned"}),
        (DRAIN_AT - 1, {"MaintenancePlanned"}),
        (DRAIN_AT, {"MaintenancePlanned", "DrainInProgress"}),
        (END - 1, {"MaintenancePlanned", "DrainInProgress"}),
        (END, None),
    ],
)
def test_time_alone_begins_and_ends_it(now: float, expected: set[str] | None) -> None:
    goal = decided([A], now).goals.get("a")
    assert (set(goal.lifecycle.kinds) if goal else None) == expected
    assert (goal is not None and goal.cordon is True) is (DRAIN_AT <= now < END)


@pytest.mark.parametrize(
    ("drain", "now", "phase", "kinds"),
    [
        (None, DRAIN_AT, NodePhase.DRAINING, {"MaintenancePlanned", "DrainInProgress"}),
        (FULL, START, NodePhase.DRAINING, {"MaintenancePlanned", "DrainInProgress"}),
        (EMPTY, DRAIN_AT, NodePhase.DRAINED, {"MaintenancePlanned", "Drained"}),
        (EMPTY, START, NodePhase.IN_MAINTENANCE, {"Drained", "MaintenanceInProgress"}),
        (
            EMPTY._replace(staying=(StayingPod("shop", "web", BEING_DELETED),)),
            START,
            NodePhase.DRAINING,
            {"MaintenancePlanned", "DrainInProgress"},
        ),
        (
            EMPTY._replace(staying=(StayingPod("kube-system", "proxy", "its DaemonSet"),)),
            START,
            NodePhase.IN_MAINTENANCE,
            {"Drained", "MaintenanceInProgress"},
        ),
        (
            EMPTY._replace(refused=(StayingPod("shop", "bare", "nobody makes it again"),)),
            START,
            NodePhase.DRAINING,
            {"MaintenancePlanned", "DrainInProgress"},
        ),
    ],
    ids=[
        "nobody has looked",
        "pods are left",
        "empty before the start",
        "empty from the start on",
        "a pod that is ending",
        "a pod that stays as it should",
        "a pod that must not be moved",
    ],
)
def test_what_is_left_on_a_node_says_how_far_it_is(
    drain: Drain | None, now: float, phase: NodePhase, kinds: set[str]
) -> None:
    found = decided([held("a", drain=drain)], now)
    assert found.progress[W.key][0].phase is phase
    assert set(found.goals["a"].lifecycle.kinds) == kinds


@pytest.mark.parametrize(
    ("seen", "cordon"),
    [
        (held("a"), False),
        (held("a", FOUND), None),
        (held("a", DONE), None),
        (held("a", DONE, is_cordoned=True), None),
        (node("a", is_cordoned=True), None),
    ],
    ids=["its own", "somebody else's", "lifted already", "set again by somebody", "no window's"],
)
@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "over"])
def test_in_the_end_only_its_own_cordon_is_lifted(
    seen: ObservedNode, *, cordon: bool | None, is_deleted: bool
) -> None:
    found = decided([seen], END, {} if is_deleted else None)
    goal = found.goals.get("a")
    assert (goal.cordon if goal else None) is cordon
    assert goal is None or (not goal.uses and not goal.lifecycle.kinds)
    assert not found.closures


def test_conditions_that_a_crash_has_left_are_taken_away() -> None:
    seen = node("a", conditions={"Drained": NodeCondition("True", REASON)})
    assert not decided([seen], END).goals["a"].lifecycle.kinds


@pytest.mark.parametrize(("number", "said"), [(1, "1 pod is left"), (2, "2 pods are left")])
def test_it_says_how_many_pods_are_left_on_a_node(number: int, said: str) -> None:
    found = decided([held("a", drain=Drain(FULL.leaving * number, (), ()))])
    assert [each.message for each in found.progress[W.key]] == [said]


def test_what_a_window_before_saw_of_a_node_says_nothing_of_the_next() -> None:
    """The former window had other options: it may leave pods that this window moves."""
    found = decided([held("a", by=OTHER, drain=EMPTY)])
    assert [each.phase for each in found.progress[W.key]] == [NodePhase.DRAINING]


def test_a_node_goes_from_one_window_to_the_next_without_a_gap() -> None:
    later = window("later", START, END + 1_000)
    both = {W: ["a"], later: ["a"]}
    assert in_hand(decided([A], windows=both), later) == {"a"}
    seen = held("a")
    assert in_hand(decided([seen], END, both), later) == {"a"}
    goal = decided([seen], END, both).goals["a"]
    assert goal.cordon is True
    assert goal.uses == {later.key: CORDONED}
    found = decided([held("a", FOUND)], END, both).goals["a"]
    assert found.uses == {later.key: FOUND}


def test_of_overlapping_windows_each_has_its_turn_once() -> None:
    first, second = window("a"), window("b")
    both = {first: ["n"], second: ["n"]}
    uses: dict[str, WindowUse] = {}
    for expected in ({first.key: CORDONED}, {first.key: DONE, second.key: CORDONED}):
        uses = dict(decided([node("n", uses=uses)], windows=both).goals["n"].uses)
        assert uses == expected
    uses = dict(decided([node("n", uses=uses)], windows=both).goals["n"].uses)
    assert set(uses.values()) == {DONE}


def test_what_a_window_that_cannot_be_read_has_in_hand_stays_as_it_is() -> None:
    found = decided([held("a")], windows={}, unread=frozenset({"w"}))
    assert not found.goals


def test_a_clock_that_goes_back_gives_a_node_back_and_forward_takes_it_again() -> None:
    seen = held("a")
    assert decided([seen], DRAIN_AT - 1).goals["a"].cordon is False
    assert in_hand(decided([A], DRAIN_AT)) == {"a"}


def test_the_next_pass_comes_when_time_changes_something() -> None:
    expected = (DRAIN_AT - PLANNED_AHEAD_S, DRAIN_AT, START, END)
    now = 0.0
    for moment in expected:
        found = decided([A], now)
        assert found.next_at == moment
        now = moment


@pytest.mark.long
@pytest.mark.parametrize("now", [DRAIN_AT - 1, START])
def test_no_step_is_long_with_as_many_windows_as_are_read(now: float) -> None:
    """100 windows have 5,000 nodes each: the last step once took 1.5 s."""
    names = [f"node-{number}" for number in range(5_000)]
    nodes = [node(name, **not_ready(since=START - 1_000)) for name in names]
    turns = [Turn(window(f"w{number}"), frozenset(names)) for number in range(MOST_WINDOWS)]
    assert longest_step_s(lambda: decide(turns, nodes, now, not_ready_s=1)) < MOST_S


def test_no_step_is_long_once_every_node_has_been_in_every_window() -> None:
    """A step once took 0.6 s, and the pass 15 s."""
    names = [f"node-{number}" for number in range(5_000)]
    turns = [Turn(window(f"w{number}"), frozenset(names)) for number in range(MOST_WINDOWS)]
    uses = {turn.window.key: DONE for turn in turns}
    nodes = [node(name, uses=uses) for name in names]
    assert longest_step_s(lambda: decide(turns, nodes, START)) < MOST_S
