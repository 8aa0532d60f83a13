from dataclasses import dataclass, replace

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation, Written
from reserver.scheduling.bind import BindVerdict, judge_bind
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from tests.builders import NOW, node, pod, reservation, rule, state_of

W1, W2 = node("worker-1", cpu="4"), node("worker-2", cpu="4")
SEAT = reservation("r", cpu="2")
OWNER = pod("owner", cpu="2")


def judge(
    asking: Pod, *things: Node | Pod | Reservation, on: str = "worker-1", now: float = NOW
) -> BindVerdict:
    return judge_bind(asking, on, state_of(W1, W2, *things), now)


def test_a_pod_may_have_a_node_where_nothing_is_held_even_if_we_believe_it_full() -> None:
    assert judge(pod("a", cpu="4"), pod("b", node="worker-1", cpu="4")) == BindVerdict()


@pytest.mark.parametrize(
    ("cpu", "refusal"), [("2", None), ("2001m", "held by reservation shop/store/r")]
)
def test_a_pod_may_have_what_is_left_beside_a_hold(cpu: str, refusal: str | None) -> None:
    assert judge(pod("a", cpu=cpu), SEAT) == BindVerdict(refusal=refusal)


def test_what_filter_passed_is_refused_once_another_binding_took_the_room() -> None:
    state = state_of(W1, SEAT)
    first, second = pod("a", cpu="2"), pod("b", cpu="2")
    for asking in (first, second):
        assert list(filter_nodes(asking, ["worker-1"], state, NOW).nodes) == ["worker-1"]
    assert judge_bind(first, "worker-1", state, NOW).refusal is None
    state.assume(first, "worker-1", ())
    assert judge_bind(second, "worker-1", state, NOW).refusal == "held by reservation shop/store/r"
    assert judge_bind(OWNER, "worker-1", state, NOW).refusal is None


def test_what_filter_passed_is_refused_once_a_reservation_was_written() -> None:
    state = state_of(W1)
    asking = pod("a", cpu="3")
    assert list(filter_nodes(asking, ["worker-1"], state, NOW).nodes) == ["worker-1"]
    state.ledger.put(SEAT)
    assert judge_bind(asking, "worker-1", state, NOW).refusal is not None


def test_an_owner_claims_its_seat() -> None:
    verdict = judge(OWNER, SEAT, pod("b", node="worker-1", cpu="2"))
    assert verdict == BindVerdict(claims=(SEAT.identity,))


@dataclass(frozen=True)
class Row:
    says: str
    request: str  # CPUs that the owner of "mine" requests
    taken: str  # CPUs of 4 that a bound pod uses
    mine: tuple[int, str]  # the revision of the reservation, and the CPUs that it holds
    other: tuple[int, str]
    refused: bool = False


@pytest.mark.parametrize(
    "case",
    [
        Row("all is there", "2", "0", (1, "2"), (2, "2")),
        Row("written onto room that was taken", "2", "2", (1, "2"), (2, "2")),
        Row("it was there before", "2", "2", (2, "2"), (1, "2"), refused=True),
        Row("nobody knows which came first", "2", "2", (1, "2"), (1, "2"), refused=True),
        Row("more than its slot", "3", "0", (1, "2"), (2, "2"), refused=True),
        Row("more than its slot, and room for it", "3", "0", (1, "2"), (2, "1")),
        Row("less than its slot", "1", "2", (1, "2"), (2, "2")),
        Row("its own room was taken", "2", "3", (1, "2"), (2, "1"), refused=True),
    ],
    ids=lambda case: case.says,
)
def test_on_its_seat_an_owner_stands_before_what_was_written_after(case: Row) -> None:
    state = state_of(W1, pod("p", node="worker-1", cpu=case.taken))
    for key, owner, (at, cpu) in (("mine", "owner", case.mine), ("other", "b", case.other)):
        state.ledger.put(reservation(key, owners=[owner], cpu=cpu), Written(at, at))
    verdict = judge_bind(pod("owner", cpu=case.request), "worker-1", state, NOW)
    assert verdict.refusal == ("held by reservation shop/store/other" if case.refused else None)


def test_a_pod_that_a_rule_matches_claims_a_slot_where_it_lands_and_only_there() -> None:
    rules = [rule(app="web")]
    here = reservation("here", owners=[], rules=rules, cpu="2")
    younger = reservation("younger", owners=[], rules=rules, cpu="2")
    there = reservation("there", owners=[], rules=rules, node="worker-2", cpu="4")
    replica = pod("web-1", labels={"app": "web"}, cpu="2")
    things = (here, younger, there)
    assert judge(replica, *things) == BindVerdict(claims=(here.identity,))
    assert judge(replica, *things, on="worker-2") == BindVerdict(claims=(there.identity,))
    assert judge(replica, *things, on="worker-3") == BindVerdict()
    assert judge(pod("b", cpu="2"), *things).refusal == "held by reservation shop/store/here"


def test_an_owner_claims_every_reservation_that_names_it_wherever_it_lands() -> None:
    elsewhere = reservation("elsewhere", node="worker-2", cpu="1")
    later = reservation("later", starts=NOW + 10, cpu="1")
    over = reservation("over", expires=NOW, cpu="1")
    others = reservation("others", owners=("b",), cpu="1")
    verdict = judge(OWNER, SEAT, elsewhere, later, over, others, on="worker-2")
    assert verdict.refusal is None
    assert verdict.claims == (SEAT.identity, elsewhere.identity, later.identity)


def test_an_owner_that_prefers_its_seat_may_land_elsewhere() -> None:
    assert judge(OWNER, SEAT, on="worker-2") == BindVerdict(claims=(SEAT.identity,))


def test_an_owner_whose_reservation_requires_its_seat_may_land_nowhere_else() -> None:
    seat = reservation("r", require=True, cpu="2")
    words = "must land on its seat in reservation shop/store/r"
    assert judge(OWNER, seat, on="worker-2") == BindVerdict(refusal=words)
    assert judge(OWNER, seat) == BindVerdict(claims=(seat.identity,))


def test_an_owner_that_must_land_on_a_seat_may_choose_among_several() -> None:
    seats = [
        reservation("p", node="worker-1", cpu="1"),
        reservation("q", node="worker-2", require=True, cpu="1"),
    ]
    for worker in ("worker-1", "worker-2"):
        assert judge(OWNER, *seats, on=worker).refusal is None
    assert judge(OWNER, *seats, on="worker-3").refusal is not None


def test_a_required_seat_that_has_expired_requires_nothing() -> None:
    seat = reservation("r", require=True, expires=NOW + 5, cpu="2")
    assert judge(OWNER, seat, on="worker-2", now=NOW + 4.999).refusal is not None
    assert judge(OWNER, seat, on="worker-2", now=NOW + 5) == BindVerdict()


def test_an_owner_is_refused_where_it_would_take_what_is_held_for_others() -> None:
    others = reservation("others", owners=("b",), cpu="2")
    verdict = judge(pod("owner", cpu="3"), SEAT, others)
    assert verdict == BindVerdict(refusal="held by reservation shop/store/others")


def test_only_what_is_both_requested_and_held_is_compared() -> None:
    full = pod("b", node="worker-1", cpu="4")
    hold = reservation("r", memory="8Gi")
    assert judge(pod("a", cpu="4"), full, hold).refusal is None


def test_system_critical_pods_are_refused_nothing() -> None:
    hold = reservation("r", cpu="4")
    agent = pod("a", priority=2_000_000_000, cpu="4", namespace="kube-system")
    assert judge(agent, hold).refusal is None
    almost = replace(agent, priority=1_999_999_999)
    assert judge(almost, hold).refusal is not None


@pytest.mark.parametrize("namespace", ["shop", "kube-system-2", "", "kube-public"])
def test_a_system_priority_takes_no_hold_in_a_namespace_that_is_not_trusted(namespace: str) -> None:
    state = state_of(W1, W2, reservation("r", cpu="4"))
    tenant = pod("a", priority=2_000_001_000, cpu="4", namespace=namespace)
    victims = {"worker-1": ["uid-nobody"]}
    assert judge_bind(tenant, "worker-1", state, NOW).refusal
    assert filter_nodes(tenant, ["worker-1", "worker-2"], state, NOW).nodes == ["worker-2"]
    assert judge_preemption(tenant, victims, state, NOW).nodes == ()
    assert not explain(tenant, state, NOW).exempt
    state.snapshot.exempt_namespaces |= {namespace}
    assert judge_bind(tenant, "worker-1", state, NOW).refusal is None
    assert judge_preemption(tenant, victims, state, NOW).nodes == ("worker-1",)
    assert explain(tenant, state, NOW).exempt


def test_a_node_that_nobody_knows_may_be_had_unless_something_is_held_there() -> None:
    assert judge(pod("a", cpu="1"), on="ghost").refusal is None
    hold = reservation("r", node="ghost", cpu="1")
    assert judge(pod("a", cpu="1"), hold, on="ghost").refusal is not None
    assert judge(OWNER, hold, on="ghost").refusal == "node not known yet"


def test_a_hold_that_expires_between_filter_and_bind_refuses_nothing() -> None:
    hold = reservation("r", cpu="4", expires=NOW + 1)
    assert judge(pod("a", cpu="1"), hold, now=NOW + 0.999).refusal is not None
    assert judge(pod("a", cpu="1"), hold, now=NOW + 1).refusal is None


def test_judging_changes_nothing() -> None:
    state = state_of(W1, SEAT)
    before = list(state.ledger)
    for _ in range(2):
        assert judge_bind(OWNER, "worker-1", state, NOW).claims == (SEAT.identity,)
    assert list(state.ledger) == before
    assert state.assumption(OWNER.uid) is None
