"""The cost of one tenant's pods in function calls for others: owner rules."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.labels import equals
from reserver.cluster.pod import Pod
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import Reservation
from reserver.scheduling import nomination, pending_pods
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Nominate
from tests.builders import NAMESPACE, NOW, node, pod, reservation, rule, state_of
from tests.cpu import MOST_S, least_cpu_s

NODES = [f"worker-{number}" for number in range(100)]
MEMBERS, RESERVATIONS = 500, 1_000
OURS = rule(app="a")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Pod]:
    """Return the pods that a rule was compared with."""
    pods: list[Pod] = []
    matches = OwnerRule.matches

    def counting(self: OwnerRule, one: Pod) -> bool:
        pods.append(one)
        return matches(self, one)

    monkeypatch.setattr(OwnerRule, "matches", counting)
    return pods


def labelled(labels: dict[str, str]) -> OwnerRule:
    return OwnerRule(namespace=NAMESPACE, selector=equals(labels))


def world(*held: Reservation, nominated: str = "", **labels: str) -> tuple[State, list[Pod]]:
    """Return a state with a gang, each of whose pods also has its own labels."""
    state = state_of(*(node(name, cpu="640") for name in NODES), *held)
    gang = [
        replace(
            pod(
                f"g{n}", cpu="50m", nominated=nominated, labels={"app": "a", "n": str(n), **labels}
            ),
            group="gang",
            revision=n + 1,
        )
        for n in range(MEMBERS)
    ]
    for one in gang:
        state.pod_seen(one)
    return state, gang


def holds(on: list[str], *rules: OwnerRule) -> list[Reservation]:
    return [
        reservation(f"r{n}", node=on[n % len(on)], owners=(), rules=rules or (OURS,), cpu="100m")
        for n in range(RESERVATIONS)
    ]


HELD = {
    "spread": holds(NODES[2:]),
    "on one node": holds(["worker-9"]),
    "of many rules each": holds(
        NODES[2:], *(labelled({"app": "a", f"absent-{n}": "x"}) for n in range(20)), OURS
    ),
    "of others": holds(["worker-9"], rule(app="b")),
}


@pytest.mark.parametrize("nominated", ["", "worker-9"])
@pytest.mark.parametrize("what", HELD)
def test_a_gang_beside_a_thousand_reservations_asks_few_rules(
    what: str, nominated: str, asked: list[Pod]
) -> None:
    """Filter once compared each hold with each pod: 0.9 s of CPU per call."""
    state, gang = world(*HELD[what], nominated=nominated)
    asked.clear()
    filter_nodes(gang[0], NODES[:2], state, NOW)
    own = sum(one.uid == gang[0].uid for one in asked)
    assert len(asked) - own <= nomination.MOST_ASKED


@pytest.mark.parametrize("nominated", ["", "worker-9"])
@pytest.mark.parametrize("what", HELD)
def test_a_filter_call_beside_a_gang_takes_little(what: str, nominated: str) -> None:
    state, gang = world(*HELD[what], nominated=nominated)
    stranger = pod("stranger", cpu="1")
    for one in (gang[0], gang[-1], stranger):
        call = partial(filter_nodes, one, NODES[:10], state)
        assert least_cpu_s(lambda _: NOW, call) < MOST_S, one.name


def test_all_of_a_gang_are_sent_to_their_seats_at_once() -> None:
    state, gang = world(*HELD["spread"])
    (steer,) = filter_nodes(gang[0], NODES[:2], state, NOW).effects
    assert isinstance(steer, Nominate)
    assert len({one.uid for one, _ in steer.first} | {steer.pod.uid}) == MEMBERS
    taken = [node for _, node in steer.first] + [steer.node]
    assert max(map(taken.count, NODES)) <= -(-RESERVATIONS // len(NODES[2:]))


@pytest.mark.parametrize("what", HELD)
def test_pods_that_are_nominated_cost_a_stranger_few_rules(what: str, asked: list[Pod]) -> None:
    """Filter once compared each reservation with each nominated pod: a second of CPU per call."""
    state, _ = world(*HELD[what], nominated="worker-9")
    asked.clear()
    filter_nodes(pod("stranger", cpu="1"), ["worker-9", "worker-8"], state, NOW)
    assert len(asked) <= pending_pods.MOST_ASKED


def test_where_too_many_are_nominated_to_be_asked_a_stranger_stays_away() -> None:
    """Members without a seat come first; a member that is not compared may be one."""
    many = holds(
        ["worker-9"], *(labelled({"app": "a", f"absent-{n}": "x"}) for n in range(20)), OURS
    )
    state, gang = world(*many, nominated="worker-9")
    large = replace(gang[0], requests={"cpu": 639_000, "pods": 1})
    state.pod_seen(replace(large, revision=10_000))
    assert not filter_nodes(pod("stranger", cpu="600"), ["worker-9"], state, NOW).nodes


NAMES = ("a", "b", "c")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["worker-0", "worker-1", ""]),
            st.sets(st.sampled_from(NAMES), max_size=2),
            st.lists(st.sampled_from([{"app": "a"}, {"app": "b"}, {"zone": "z"}]), max_size=2),
            st.integers(1, 2),
            st.sampled_from(["100m", "2"]),
        ),
        max_size=8,
    ),
    st.sampled_from(NAMES),
    st.sampled_from([{"app": "a"}, {"app": "a", "zone": "z"}, {}]),
    st.sampled_from(["50m", "1"]),
    st.dictionaries(st.sampled_from(range(8)), st.integers(1, 2)),
)
def test_the_seats_on_one_node_are_those_of_all_nodes_that_are_there(
    drawn: list[tuple[str, set[str], list[dict[str, str]], int, str]],
    name: str,
    labels: dict[str, str],
    cpu: str,
    used: dict[int, int],
) -> None:
    held = [
        reservation(
            f"r{number}",
            node=on,
            owners=sorted(owners),
            rules=[labelled(each) for each in asked],
            slots=slots,
            placed={} if on else {"worker-0": 1, "worker-1": slots - 1} if slots > 1 else {},
            cpu=amount,
        )
        for number, (on, owners, asked, slots, amount) in enumerate(drawn)
        if owners or asked
    ]
    state = state_of(node("worker-0", cpu="8"), node("worker-1", cpu="8"), *held)
    one = pod(name, labels=labels, cpu=cpu)
    places = [(each.identity, on) for each in held for on in ("worker-0", "worker-1")]
    spent = {place: used[n] for n, place in enumerate(places) if n in used}
    everywhere = state.ledger.seats(one, spent=spent)
    for on in ("worker-0", "worker-1"):
        here = tuple(seat for seat in everywhere if seat.node == on)
        assert state.ledger.seats(one, (on,), spent) == here
