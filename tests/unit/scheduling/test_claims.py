"""When a hold ends: once a binding is known to be written, and only where the pod may end it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.pod import Controller, Pod
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation, Written
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from tests.builders import NOW, held, name, node, pod, ref, reservation, rule, state_of
from tests.listening import Recorded

N1, N2, N3 = (node(name, cpu="4") for name in ("n1", "n2", "n3"))
WEB = {"app": "web"}
SET = Controller("ReplicaSet", "web")


def named(key: str, on: str, **more: object) -> Reservation:
    return reservation(key, **{"node": on, "owners": ["web"], "cpu": "4"} | more)  # type: ignore[arg-type]


def matching(key: str, on: str, **more: object) -> Reservation:
    said = {"node": on, "owners": [], "rules": [rule(app="web")], "cpu": "1"} | more
    return reservation(key, **said)  # type: ignore[arg-type]


def assume(state: State, asking: Pod, on: str) -> Pod:
    verdict = judge_bind(asking, on, state, NOW)
    assert verdict.refusal is None
    state.assume(asking, on, verdict.claims)
    return replace(asking, node=on, claims=frozenset(verdict.claims), revision=9)


def stranger_may(state: State, on: str) -> bool:
    may = judge_bind(pod("stranger", cpu="4"), on, state, NOW).refusal is None
    assert bool(filter_nodes(pod("stranger", cpu="4"), [on], state, NOW).nodes) == may
    return may


# A binding under way ends nothing elsewhere.


@pytest.mark.parametrize("landing", ["n1", "n2", "n3"])
def test_what_is_held_elsewhere_is_held_until_the_binding_is_written(landing: str) -> None:
    written = (named("r1", "n1"), named("r2", "n2"))
    web = pod("web", cpu="4")
    state = state_of(N1, N2, N3, *written, web)
    shown = assume(state, web, landing)
    elsewhere = [r for r in written if r.node != landing]
    assert not any(stranger_may(state, r.node) for r in elsewhere)
    assert [held(state, r.node) for r in elsewhere] == [4000] * len(elsewhere)
    assert not any(state.ledger.is_over(r.ref) for r in written)
    state.forget(web.uid)
    for r in written:
        assert not stranger_may(state, r.node)
        assert ShortNodes.of(state.snapshot).status(r, state.ledger).is_backed
    assume(state, web, landing)
    state.confirm(web.uid)
    assert not any(held(state, r.node) for r in written)
    assert all(state.ledger.is_over(r.ref) for r in written)
    state.pod_seen(shown)
    assert all(stranger_may(state, r.node) for r in elsewhere)


def test_a_binding_that_is_seen_before_its_answer_ends_what_is_held_elsewhere() -> None:
    heard = Recorded()
    state = State(heard)
    web = pod("web", cpu="4")
    for each in (N1, N2):
        state.node_seen(each)
    state.ledger.put(named("r1", "n1"), Written(1, 1))
    state.ledger.put(named("r2", "n2"), Written(2, 2))
    state.pod_seen(web)
    state.is_complete = True
    shown = assume(state, web, "n1")
    assert "n2" not in heard.freed
    state.pod_seen(shown)
    assert "n2" in heard.freed
    assert held(state, "n2") == 0


def test_of_parts_on_several_nodes_only_the_slot_where_the_pod_goes_is_taken() -> None:
    placed = named("r", "", owners=["web", "b", "c"], slots=3, placed={"n1": 1, "n2": 2}, cpu="1")
    web, b = pod("web", cpu="1"), pod("b", cpu="1")
    state = state_of(N1, N2, N3, placed, web, b)
    assume(state, web, "n1")
    assert (held(state, "n1"), held(state, "n2")) == (0, 2000)
    assume(state, b, "n1")  # No slot of it is left there.
    assert (held(state, "n1"), held(state, "n2")) == (0, 2000)
    state.confirm(b.uid)  # If the binding of web failed, b would have the slot there.
    assert (held(state, "n1"), held(state, "n2")) == (0, 2000)
    state.confirm(web.uid)
    assert (held(state, "n1"), held(state, "n2")) == (0, 1000)


def test_what_is_written_again_during_a_binding_is_held_as_before() -> None:
    """A copy in another store, or the same entry after a relist, knows of the binding under way."""
    web = pod("web", cpu="4")
    state = state_of(N1, N2, named("r1", "n1"), named("r2", "n2"), web)
    assume(state, web, "n1")
    for again in (named("r1", "n1"), named("r2", "n2")):
        state.ledger.drop(again.ref)
        state.ledger.put(again)
    assert (held(state, "n1"), held(state, "n2")) == (0, 4000)
    state.confirm(web.uid)
    assert (held(state, "n1"), held(state, "n2")) == (0, 0)


def test_a_pod_that_another_scheduler_has_bound_elsewhere_has_no_slot_here() -> None:
    heard = Recorded()
    state = State(heard)
    for each in (N1, N2):
        state.node_seen(each)
    seat = matching("r", "n1")
    state.ledger.put(seat)
    web = pod("web-1", cpu="1", labels=WEB)
    state.pod_seen(web)
    state.is_complete = True
    assume(state, web, "n1")
    assert held(state, "n1") == 0
    state.pod_seen(replace(web, node="n2", revision=9))
    state.forget(web.uid)  # The API server refuses the Binding.
    assert held(state, "n1") == 1000


# Claims in the annotations of a pod.


@pytest.mark.parametrize("on", ["n1", "n2", "no-such-node"])
@pytest.mark.parametrize("first", ["pod", "reservations"])
def test_a_forged_claim_ends_only_a_slot_where_the_pod_is(on: str, first: str) -> None:
    targets = [
        matching("a", "n1"),
        matching("b", "n2", rules=[rule(controller=SET)]),
        matching("c", "n3", slots=2),
        matching("d", "", placed={"n1": 1, "n3": 1}, slots=2),
    ]
    forger = pod("f", node=on, labels=WEB, controller=SET, claims=targets, cpu="100m")
    state = state_of(N1, N2, N3)
    if first == "pod":
        state.pod_seen(forger)
    for target in targets:
        state.ledger.put(target)
    if first != "pod":
        state.pod_seen(forger)
    left = {"n1": 2000, "n2": 1000, "n3": 3000}
    left |= {on: left[on] - 1000} if on in left else {}
    assert {each: held(state, each) for each in ("n1", "n2", "n3")} == left


def test_a_forged_list_of_claims_on_one_node_ends_one_slot() -> None:
    targets = [matching(f"r{number}", "n1", cpu="1") for number in range(3)]
    state = state_of(N1, *targets, pod("f", node="n1", labels=WEB, claims=targets, cpu="100m"))
    assert held(state, "n1") == 2000
    late = state_of(N1, pod("f", node="n1", labels=WEB, claims=targets, cpu="100m"), *targets)
    assert held(late, "n1") == 2000
    for again in (state, late):  # Neither an update nor a relist makes it more.
        again.pod_seen(pod("f", node="n1", labels=WEB, claims=targets, cpu="200m"), listed=True)
        assert held(again, "n1") == 2000


def test_a_matching_pod_that_moved_its_claim_with_the_place_has_its_slot() -> None:
    """Another leader's placement is known after the binding onto it."""
    placed = matching("r", "", slots=2)
    web = pod("web-1", node="n2", labels=WEB, claims=[placed], cpu="1")
    state = state_of(N1, N2, placed, web)
    state.ledger.put(replace(placed, placed=()), Written(5, 5))
    assert state.ledger.claimed(ref("r")) == 1
    lagging = state_of(N1, N2, matching("r", "", slots=2, placed={"n1": 2}), web)
    assert lagging.ledger.claimed(ref("r")) == 0
    lagging.ledger.put(matching("r", "", slots=2, placed={"n1": 1, "n2": 1}), Written(5, 5))
    assert (held(lagging, "n1"), held(lagging, "n2")) == (1000, 0)


@pytest.mark.parametrize("before", [True, False])
def test_a_mirror_pod_ends_nothing(*, before: bool) -> None:
    """A kubelet makes them, under any name, in any namespace."""
    targets = [named("r", "n3"), matching("m", "n1")]
    fake = pod("web", node="n1", labels=WEB, claims=targets, cpu="1")
    mirror = replace(fake, is_mirror=True, revision=99)
    state = state_of(N1, N3)
    state.is_complete = True
    if before:
        state.pod_seen(mirror)
    for target in targets:
        state.ledger.put(target, Written(50, 50))
    if not before:
        state.pod_seen(mirror)
    assert (held(state, "n3"), held(state, "n1")) == (4000, 1000)
    real = replace(fake, uid="real", revision=100)
    state.pod_gone(mirror.name)
    state.pod_seen(real)
    assert held(state, "n3") == 0


# Slots that an edit brings back.


def extended(expires: float, **more: object) -> Reservation:
    said = {"owners": (), "rules": [rule(controller=SET)], "slots": 10, "cpu": "1"} | more
    return reservation("r1", expires=expires, **said)  # type: ignore[arg-type]


def backed(state: State, key: str) -> bool:
    written = state.ledger.get(ref(key))
    assert written is not None
    return ShortNodes.of(state.snapshot).status(written, state.ledger).is_backed


def claimed_nine() -> State:
    """Return a node of 10 CPUs where r1 holds one, and r2 is backed with 9."""
    state = state_of(node("worker-1", cpu="10"))
    first = extended(NOW + 100)
    state.ledger.put(first, Written(10, 10))
    for number in range(9):
        web = pod(f"w{number}", controller=SET, node="worker-1", cpu="1", claims=[first])
        state.pod_seen(replace(web, revision=20 + number))
    for number in range(9):
        state.pod_gone(name(f"w{number}"))
    state.ledger.put(reservation("r2", owners=["b"], cpu="9", require=True), Written(40, 40))
    assert backed(state, "r2")
    return state


@pytest.mark.parametrize(
    "edit",
    [
        extended(NOW + 200),
        extended(NOW + 50),
        extended(NOW + 100, slots=9),
        extended(NOW + 100, slots=2),
        extended(NOW + 100, slots=1, cpu="2"),
        extended(NOW + 100, memory="1Gi"),
        extended(NOW + 100, reusable=True),
        extended(NOW + 100, require=True),
    ],
    ids=["later", "sooner", "9 slots", "2 slots", "larger", "memory", "reusable", "Require"],
)
def test_an_edit_that_holds_more_than_was_still_held_stands_behind(edit: Reservation) -> None:
    state = claimed_nine()
    state.ledger.put(edit, Written(50, 50))
    assert backed(state, "r2")
    assert judge_bind(pod("b", cpu="9"), "worker-1", state, NOW).refusal is None


def test_an_edit_that_holds_what_was_still_held_keeps_its_turn() -> None:
    state = claimed_nine()
    state.ledger.put(extended(NOW + 100, slots=1), Written(50, 50))
    state.pod_seen(pod("critical", node="worker-1", cpu="9"))
    assert backed(state, "r1")
    assert not backed(state, "r2")


def test_an_edit_that_yields_no_more_stands_behind_what_was_firm_before() -> None:
    state = state_of(node("worker-1", cpu="4"))
    state.ledger.put(reservation("r1", owners=["a"], cpu="4", yields_above=0), Written(1, 1))
    state.ledger.put(reservation("r2", owners=["b"], cpu="4"), Written(2, 2))
    assert backed(state, "r2")
    state.ledger.put(reservation("r1", owners=["a"], cpu="4"), Written(3, 3))
    assert (backed(state, "r1"), backed(state, "r2")) == (False, True)
    assert judge_bind(pod("a", cpu="4"), "worker-1", state, NOW).refusal
    state.ledger.put(reservation("r1", owners=["a"], cpu="4", yields_above=9), Written(4, 4))
    assert backed(state, "r2")
    assert state.ledger.phase(ref("r1")) is Phase.ACTIVE


def test_the_same_words_written_after_another_scheduler_bound_the_pod_hold_nothing_more() -> None:
    web, r = pod("web", cpu="1"), named("r", "n1", cpu="1")
    state = state_of(N1, web)
    state.ledger.put(r, Written(3, 3))
    state.pod_seen(replace(web, node="n2", revision=4))
    state.ledger.put(r, Written(5, 5))
    assert state.ledger.is_over(r.ref)
    state.ledger.put(named("r", "n1", cpu="1", expires=NOW + 60), Written(6, 6))
    assert held(state, "n1") == 1000, "other words are for the next pod of that name"
