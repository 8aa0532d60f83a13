"""A seat that is for a replacement goes to a pod that came after the one that left."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Controller, Pod
from reserver.reservations.owner import OwnerRule, Replaced
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Retry, WaitsFor
from tests.builders import NAMESPACE, NOW, node, pod, reservation, state_of

WEB = Controller("ReplicaSet", "web-5d8f")
NAMES = ["worker-1", "worker-2"]
LEAVES = replace(pod("web-0", node="worker-1", controller=WEB, cpu="1"), revision=10)


def sibling(name: str, revision: int, **fields: object) -> Pod:
    """Return a pod of the same controller."""
    return replace(pod(name, controller=WEB, cpu="1", **fields), revision=revision)  # type: ignore[arg-type]


def world(*existing: str, by: Controller = WEB, named: str = "") -> State:
    """Return two workers, the pod that leaves the first, and its seat on the second."""
    rule = OwnerRule(
        namespace=NAMESPACE,
        pod=named,
        controller=by,
        replaces=Replaced(LEAVES.uid, frozenset(existing)),
    )
    seat = reservation("seat", node="worker-2", owners=(), rules=[rule], require=True, cpu="1")
    return state_of(node("worker-1", cpu="4"), node("worker-2", cpu="1"), LEAVES, seat)


def leave(state: State, revision: int) -> None:
    """Show that the pod is being deleted."""
    state.pod_seen(replace(LEAVES, terminating=True, revision=revision))


def allowed(asking: Pod, state: State) -> list[str]:
    """Return the answer of Filter for both workers."""
    return list(filter_nodes(asking, NAMES, state, NOW).nodes)


def test_the_replacement_gets_the_seat_and_nothing_else() -> None:
    state = world()
    leave(state, 20)
    came = sibling("web-1", 21)
    state.pod_seen(came)
    assert allowed(came, state) == ["worker-2"]
    assert judge_bind(came, "worker-1", state, NOW).refusal
    assert judge_bind(came, "worker-2", state, NOW).claims


def test_a_sibling_that_was_there_before_is_a_stranger_before_and_after() -> None:
    state = world()
    waited = sibling("web-1", 15)
    state.pod_seen(waited)
    assert allowed(waited, state) == ["worker-1"]
    leave(state, 20)
    state.pod_seen(replace(waited, revision=25))  # The pod has the reason of its refusal.
    assert allowed(waited, state) == ["worker-1"]
    assert judge_bind(waited, "worker-2", state, NOW).refusal


def test_the_pod_itself_may_not_claim_what_its_replacement_gets() -> None:
    state = world()
    assert allowed(replace(LEAVES, node=""), state) == ["worker-1"]


def test_a_pod_that_the_watch_has_not_shown_waits_for_it_for_a_moment() -> None:
    state = world()
    unknown = sibling("web-1", 21)
    verdict = filter_nodes(unknown, NAMES, state, NOW)
    assert (list(verdict.nodes), verdict.waits_for) == ([], WaitsFor.SEAT)
    (retry,) = verdict.effects
    assert isinstance(retry, Retry)
    assert judge_bind(unknown, "worker-1", state, NOW).refusal

    leave(state, 20)
    assert allowed(unknown, state) == ["worker-2"]


def test_the_replacement_of_a_pod_of_a_stateful_set_has_its_name() -> None:
    state = world(by=Controller("StatefulSet", "web"), named="web-0")
    state.pod_gone(LEAVES.name)
    came = replace(LEAVES, uid="uid-next", node="", revision=30)
    came = replace(came, controller=Controller("StatefulSet", "web"))
    state.pod_seen(came)
    assert allowed(came, state) == ["worker-2"]
    assert allowed(replace(came, name=pod("web-1").name, uid="uid-1"), state) == ["worker-1"]


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "after a grace period"])
def test_what_was_deleted_has_left_however_it_was(*, at_once: bool) -> None:
    state = world()
    waited, came = sibling("web-1", 15), sibling("web-2", 31)
    state.pod_seen(waited)
    if at_once:
        state.pod_seen(replace(LEAVES, revision=30))  # The last state that the watch shows.
    else:
        leave(state, 20)
    state.pod_gone(LEAVES.name)
    state.pod_seen(came)
    assert [allowed(each, state) for each in (waited, came)] == [["worker-1"], ["worker-2"]]


def test_after_a_restart_those_that_are_listed_as_existing_may_not_claim() -> None:
    state = world("uid-web-1")
    state.pod_gone(LEAVES.name)
    restarted = State()
    restarted.node_seen(node("worker-1", cpu="4"))
    restarted.node_seen(node("worker-2", cpu="1"))
    seat = state.ledger.get(next(iter(state.ledger))[0].ref)
    assert seat is not None
    waited, came = sibling("web-1", 15), sibling("web-2", 16)
    for each in (waited, came):
        restarted.pod_seen(each, listed=True)
    restarted.ledger.put(seat)
    restarted.is_complete = True
    assert allowed(waited, restarted) == NAMES[:1]
    assert allowed(came, restarted) == ["worker-2"]


def test_what_a_broken_watch_has_missed_keeps_no_replacement_from_its_seat() -> None:
    state = world()
    came = sibling("web-2", 31)
    state.pod_seen(came, listed=True)  # A list shows both, in any order.
    state.pod_seen(replace(LEAVES, terminating=True, revision=40), listed=True)
    assert allowed(came, state) == ["worker-2"]


def test_each_of_two_replacements_gets_a_seat_of_its_own() -> None:
    state = world()
    other = replace(pod("web-9", node="worker-1", controller=WEB, cpu="1"), revision=11)
    rule = OwnerRule(namespace=NAMESPACE, controller=WEB, replaces=Replaced(other.uid))
    seat = reservation("more", node="worker-3", owners=(), rules=[rule], require=True, cpu="1")
    state.node_seen(node("worker-3", cpu="1"))
    state.pod_seen(other)
    state.ledger.put(seat)
    leave(state, 20)
    state.pod_seen(replace(other, terminating=True, revision=21))
    landed = []
    for number in (1, 2):
        came = sibling(f"web-{number}", 30 + number)
        state.pod_seen(came)
        names = filter_nodes(came, ["worker-1", "worker-2", "worker-3"], state, NOW).nodes
        verdict = judge_bind(came, names[0], state, NOW)
        assert verdict.refusal is None
        state.assume(came, names[0], verdict.claims)
        landed.append(names[0])
    assert sorted(landed) == ["worker-2", "worker-3"]
