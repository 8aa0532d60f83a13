from dataclasses import dataclass, replace

import pytest

from reserver.cluster.constraints import Constraints, Taint, Toleration
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Placement
from reserver.reservations.reservation import Reservation, Written
from reserver.reservations.status import ReservationState, ShortNodes
from reserver.scheduling.state import State
from tests.builders import NOW, node, pod, ref, reservation, state_of

W1 = node("worker-1", cpu="4", memory="8Gi")
WEB = reservation("web", cpu="2")


def status(state: State, key: str = "web") -> ReservationState:
    held = state.ledger.get(ref(key))
    assert held is not None
    return ShortNodes.of(state.snapshot).status(held, state.ledger)


@dataclass(frozen=True)
class Case:
    says: str
    things: tuple[Node | Pod | Reservation, ...]
    phase: Phase = Phase.ACTIVE
    words: str = ""  # of the message; backed if there are none


CASES = (
    Case("room for it", (W1, WEB)),
    Case("just enough beside a pod", (W1, WEB, pod("p", node="worker-1", cpu="2"))),
    Case("a pod too many", (W1, WEB, pod("p", node="worker-1", cpu="2001m")), words="little cpu:"),
    Case("a pod that has finished", (W1, WEB, pod("p", node="worker-1", cpu="4", finished=True))),
    Case("holds on what is held", (W1, WEB, reservation("x", cpu="3")), words="too little cpu:"),
    Case("a shortage of what it does not hold", (W1, WEB, reservation("x", memory="9Gi"))),
    Case(
        "two resources short",
        (W1, reservation("web", cpu="5", memory="9Gi")),
        words="worker-1 has too little cpu, memory: pods and other holds",
    ),
    Case("every slot counts", (W1, reservation("web", cpu="2", slots=3)), words="little cpu:"),
    Case("no pod left", (node("worker-1", cpu="4", pods="0"), WEB), words="too little pods:"),
    Case("a device of no node", (W1, reservation("web", gpu="1")), words="nvidia.com/gpu:"),
    Case(
        "a device that is not a resource",
        (W1, reservation("web", gpu="1")),
        words="no node offers nvidia.com/gpu as a resource; a device of a DeviceClass (DRA) cannot",
    ),
    Case(
        "a device of another node",
        (W1, node("worker-2", gpu="4"), reservation("web", gpu="1")),
        words="too little nvidia.com/gpu:",
    ),
    Case("no such node", (WEB,), Phase.FAILED, "node 'worker-1' does not exist"),
    Case("not yet", (W1, reservation("web", starts=NOW + 1)), Phase.PENDING, "startsAt"),
    Case("not any more", (W1, reservation("web", expires=NOW)), Phase.EXPIRED, "expiresAt"),
    Case(
        "claimed",
        (W1, reservation("web"), pod("owner", node="worker-1", claims=[reservation("web")])),
        Phase.CLAIMED,
        "claimed",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_a_hold_is_backed_if_its_node_has_the_room(case: Case) -> None:
    said = status(state_of(*case.things))
    assert said.phase is case.phase
    assert said.is_backed is not bool(case.words)
    assert case.words in said.message
    assert bool(said.message) is not said.is_backed


def closed(key: str, effect: str) -> Node:
    return replace(W1, taints=(Taint("dedicated", "", "NoSchedule"), Taint(key, "", effect)))


@pytest.mark.parametrize(
    ("there", "reason", "words"),
    [
        (W1, "RoomHeld", ""),
        (replace(W1, unschedulable=True), "NodeCordoned", "worker-1 is cordoned: owners that do"),
        (
            closed("node.kubernetes.io/unreachable", "NoExecute"),
            "NodeTainted",
            "it has the taint node.kubernetes.io/unreachable:NoExecute): owners that do not",
        ),
        (closed("a", "NoSchedule"), "RoomHeld", ""),
        (
            closed("ToBeDeletedByClusterAutoscaler", "NoSchedule"),
            "NodeLeaving",
            "removed by an autoscaler (it has the taint ToBeDeletedByClusterAutoscaler:NoSchedule)",
        ),
        (
            replace(closed("karpenter.sh/disrupted", "NoSchedule"), unschedulable=True),
            "NodeLeaving",
            "karpenter.sh/disrupted",
        ),
    ],
)
def test_a_hold_says_that_its_node_takes_no_pods(there: Node, reason: str, words: str) -> None:
    said = status(state_of(there, WEB))
    assert (said.is_backed, said.reason) == (True, reason)
    assert words in said.message
    assert bool(said.message) is bool(words)


def test_a_hold_without_room_says_that_first() -> None:
    state = state_of(replace(W1, unschedulable=True), reservation("web", cpu="5"))
    assert status(state).reason == "NotEnoughRoom"


def test_a_taint_that_its_placement_tolerates_is_not_told() -> None:
    tainted = closed("maintenance", "NoExecute")
    tolerating = Constraints(tolerations=(Toleration("maintenance", "Exists"),))
    placement = Placement(constraints=tolerating)
    placed = reservation("web", node="", placement=placement, placed={"worker-1": 1}, cpu="2")
    assert status(state_of(tainted, placed)).reason == "RoomHeld"


def test_a_hold_is_backed_again_as_room_appears() -> None:
    taker = pod("p", node="worker-1", cpu="4")
    state = state_of(W1, WEB, taker)
    assert not status(state).is_backed
    state.pod_gone(taker.name)
    assert status(state).is_backed
    state.node_gone("worker-1")
    assert status(state).phase is Phase.FAILED
    state.node_seen(W1)
    assert status(state)[:3] == (Phase.ACTIVE, True, "")


def test_only_nodes_that_are_short_are_named() -> None:
    state = state_of(W1, node("worker-2", cpu="1"), WEB, reservation("x", node="worker-2", cpu="2"))
    state.ledger.put(reservation("y", node="ghost"))
    by_node: dict[str, object] = dict(ShortNodes.of(state.snapshot).by_node)
    assert by_node == {
        "worker-2": {"cpu": 1000},
        "ghost": None,
    }


@pytest.mark.parametrize("nodes", [[], ["worker-1"], ["worker-2", "never-seen"], ["ghost"]])
def test_what_is_asked_of_some_nodes_is_answered_of_no_others(nodes: list[str]) -> None:
    state = state_of(W1, node("worker-2", cpu="1"), WEB, reservation("x", node="worker-2", cpu="2"))
    state.ledger.put(reservation("y", node="ghost"))
    whole, some = ShortNodes.of(state.snapshot), ShortNodes.of(state.snapshot, nodes)
    assert some.by_node == {name: lack for name, lack in whole.by_node.items() if name in nodes}
    assert some.offered == whole.offered


def test_where_a_node_is_short_the_last_that_was_written_is_not_backed() -> None:
    state = state_of(W1)
    state.ledger.put(WEB, Written(1, 1))
    state.ledger.put(reservation("x", cpu="3"), Written(2, 2))
    assert [status(state, key).is_backed for key in ("web", "x")] == [True, False]
    state.pod_seen(pod("p", node="worker-1", cpu="3"))
    assert [status(state, key).is_backed for key in ("web", "x")] == [False, False]
