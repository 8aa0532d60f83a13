from typing import Any

import pytest

from reserver.scheduling.filter import ANSWER_LIMIT, HELD, filter_nodes
from reserver.scheduling.verdicts import Effect
from tests.builders import NOW, node, pod, reservation, state_of
from tests.steps import lines
from tests.unit.scheduling.asking import NAMES, OWNER, SEAT, W1, W2, W3, answer, ask, many


def test_without_holds_a_pod_may_have_every_node_in_the_order_sent() -> None:
    names = ["worker-3", "worker-1", "worker-2"]
    assert answer(ask(pod("a", cpu="2"), names=names)) == names


def test_a_node_without_holds_passes_unseen_even_if_we_believe_it_full() -> None:
    full = pod("b", node="worker-1", cpu="4")
    assert answer(ask(pod("a", cpu="2"), full)) == NAMES


def test_a_node_that_nobody_knows_passes_unless_something_is_held_there() -> None:
    hold = reservation("r", node="ghost-2", cpu="1")
    assert answer(ask(pod("a", cpu="1"), hold, names=["ghost-1", "ghost-2"])) == ["ghost-1"]


@pytest.mark.parametrize(
    ("request_", "there", "slots", "fits"),
    [
        pytest.param("2", "0", 1, True, id="exactly beside"),
        pytest.param("2001m", "0", 1, False, id="a millicore too much"),
        pytest.param("1", "2", 1, False, id="beside a pod that is there"),
        pytest.param("1", "1", 1, True, id="exactly beside a pod and a hold"),
        pytest.param("1m", "0", 2, False, id="all is held"),
        pytest.param("1m", "4", 1, False, id="a hold on room that is taken"),
    ],
)
def test_a_node_with_holds_passes_if_the_pod_fits_beside_them(
    request_: str, there: str, slots: int, *, fits: bool
) -> None:
    verdict = ask(
        pod("a", cpu=request_),
        pod("b", node="worker-1", cpu=there),
        reservation("r", slots=slots, cpu="2"),
        names=["worker-1"],
    )
    assert answer(verdict) == (["worker-1"] if fits else [])


@pytest.mark.parametrize(
    ("held", "requests", "fits"),
    [
        pytest.param({"memory": "8Gi"}, {"cpu": "4"}, True, id="something else is held"),
        pytest.param({"cpu": "4"}, {"memory": "8Gi"}, True, id="something else is requested"),
        pytest.param({"cpu": "1"}, {"cpu": "3", "memory": "99Ti"}, True, id="memory is not held"),
        pytest.param({"cpu": "1"}, {"cpu": "0"}, True, id="none of it is requested"),
        pytest.param({"gpu": "1"}, {"gpu": "1"}, True, id="no node offers it"),
        pytest.param({"cpu": "1", "memory": "8Gi"}, {"memory": "1"}, False, id="one of two"),
    ],
)
def test_only_what_is_both_requested_and_held_is_compared(
    held: dict[str, Any], requests: dict[str, Any], *, fits: bool
) -> None:
    worker = node("worker-1", cpu="4", memory="8Gi")
    verdict = ask(pod("a", **requests), worker, reservation("r", **held), names=["worker-1"])
    assert answer(verdict) == (["worker-1"] if fits else [])


def test_the_pods_that_a_node_may_run_are_held_too() -> None:
    small = node("worker-1", cpu="4", pods="2")
    hold = reservation("r", cpu="1m")
    one = pod("b", node="worker-1")
    assert answer(ask(pod("a"), small, hold, names=["worker-1"])) == ["worker-1"]
    assert answer(ask(pod("a"), small, hold, one, names=["worker-1"])) == []


def test_nodes_without_holds_are_preferred() -> None:
    verdict = ask(pod("a", cpu="1"), reservation("r", node="worker-1", cpu="1"))
    assert answer(verdict) == ["worker-2", "worker-3", "worker-1"]


def test_system_critical_pods_are_refused_nothing() -> None:
    hold = reservation("r", cpu="4")
    for priority, fits in ((2_000_000_000, True), (1_999_999_999, False)):
        agent = pod("a", priority=priority, cpu="4", namespace="kube-system")
        verdict = ask(agent, hold, names=["worker-1"])
        assert bool(verdict.nodes) == fits


def test_a_pod_that_waits_to_be_resized_is_given_its_own_node_and_no_other() -> None:
    """kube-scheduler 1.37 asks for it (InPlacePodVerticalScalingSchedulerPreemption)."""
    bound = pod("a", node="worker-1", cpu="3")
    hold = reservation("r", cpu="4")
    seat = reservation("own", node="worker-2", owners=["a"], cpu="3", require=True)
    for names in (["worker-1"], ["worker-1", "worker-2", "worker-3"]):
        verdict = ask(bound, hold, seat, bound, names=names)
        assert (answer(verdict), verdict.waits_for) == (["worker-1"], None)
    elsewhere = ask(bound, hold, seat, bound, names=["worker-2", "worker-3"])
    assert answer(elsewhere) == []
    assert elsewhere.effects == ()
    assert len(set(elsewhere.refused.values())) == 1


@pytest.mark.parametrize("count", [ANSWER_LIMIT, ANSWER_LIMIT + 1, 500])
def test_no_more_nodes_are_answered_than_kube_scheduler_profits_from(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    assert ANSWER_LIMIT == 100
    assert answer(ask(pod("a", cpu="1"), *many(count), names=names)) == names[:100]


def test_of_very_many_seats_an_owner_is_offered_as_many_and_the_others_are_not_judged() -> None:
    def cost(count: int) -> int:
        holds = [reservation(f"r{number}", node=f"n{number}", cpu="1") for number in range(count)]
        names = [f"n{number}" for number in range(count)]
        state = state_of(*many(count), *holds)
        owner = pod("owner", cpu="1")
        assert filter_nodes(owner, names, state, NOW).nodes == names[:100]
        soft = pod("owner", cpu="1", preferences=True)
        assert filter_nodes(soft, names, state, NOW).nodes == names
        return lines(lambda: filter_nodes(owner, names, state, NOW))

    assert cost(900) - cost(400) < 500 * 20


def test_the_seats_of_an_owner_that_fits_nowhere_are_summed_once() -> None:
    """With a hundred on each of 500 nodes a call took 0.4 s: they were summed three times."""

    def asked(count: int) -> int:
        holds = [reservation(f"r{n}", cpu="100m") for n in range(count)]
        state = state_of(node("worker-1", cpu="32"), *holds)
        return lines(lambda: filter_nodes(pod("owner", cpu="33"), ["worker-1"], state, NOW))

    assert asked(60) - asked(20) < 40 * 150


def test_the_limit_counts_nodes_with_holds_after_those_without() -> None:
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="1") for number in range(150)]
    names = [f"n{number}" for number in range(200)]
    verdict = ask(pod("a", cpu="1"), *many(200), *holds, names=names)
    assert answer(verdict) == names[150:] + names[:50]


def test_untouched_nodes_are_found_wherever_they_stand_among_the_names() -> None:
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="4") for number in range(499)]
    names = [f"n{number}" for number in range(500)]
    assert answer(ask(pod("a", cpu="1"), *many(500), *holds, names=names)) == ["n499"]


@pytest.mark.parametrize("fitting", [set(), {1, 3}, {0, 1, 2, 3}], ids=["none", "some", "all"])
def test_where_every_node_has_holds_those_pass_that_fit_or_are_not_known(fitting: set[int]) -> None:
    names = [f"n{number}" for number in range(4)]
    amounts = ["1" if number in fitting else "4" for number in range(4)]
    holds = (reservation(f"r{n}", node=f"n{n}", cpu=cpu) for n, cpu in enumerate(amounts))
    state = state_of(*many(4), *holds)
    verdict = filter_nodes(pod("a", cpu="2"), ["n0", "n1", "ghost", "n2", "n3"], state, NOW)
    expected = [name for number, name in enumerate(names) if number in fitting]
    assert sorted(verdict.nodes) == sorted([*expected, "ghost"])
    assert [name for name in verdict.nodes if name != "ghost"] == expected


def test_soft_preferences_see_the_whole_sample() -> None:
    names = [f"n{number}" for number in range(500)]
    hold = reservation("r", node="n0", cpu="1")
    verdict = ask(pod("a", preferences=True, cpu="1"), *many(500), hold, names=names)
    assert answer(verdict) == [*names[1:], "n0"]


# Refusals.


def test_a_refusal_names_the_reservation_in_the_way_on_each_node() -> None:
    holds = [reservation(f"r{number}", node=f"worker-{number}", cpu="4") for number in (1, 2, 3)]
    verdict = ask(pod("a", cpu="1"), *holds)
    assert answer(verdict) == []
    assert verdict.refused == {
        f"worker-{number}": f"held by reservation shop/store/r{number}" for number in (1, 2, 3)
    }


def test_more_than_three_reservations_are_not_named() -> None:
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="4") for number in range(4)]
    names = [f"n{number}" for number in range(4)]
    verdict = ask(pod("a", cpu="1"), *many(4), *holds, names=names)
    assert verdict.refused == dict.fromkeys(names, HELD)


def test_the_words_of_a_refusal_do_not_vary_with_amounts_or_time() -> None:
    hold = reservation("r", cpu="4", expires=NOW + 100)
    state = state_of(W1, hold)
    words = set()
    for second, cpu in enumerate(("1", "2", "300m")):
        state.pod_seen(pod(f"b{second}", node="worker-1", cpu=cpu))
        refused = filter_nodes(pod("a", cpu=cpu), ["worker-1"], state, NOW + second).refused
        words |= set(refused.values())
    assert len(words) == 1


def test_a_refusal_never_names_the_pods_own_reservation() -> None:
    mine = reservation("mine", owners=("a",), cpu="2")
    others = reservation("others", owners=("b",), cpu="2")
    verdict = ask(pod("a", cpu="3"), mine, others, names=["worker-1"])
    assert verdict.refused == {"worker-1": "held by reservation shop/store/others"}


def test_what_expired_is_in_nobodys_way_from_that_tick_on() -> None:
    state = state_of(W1, reservation("r", cpu="4", expires=NOW + 1))
    asking = pod("a", cpu="1")
    assert filter_nodes(asking, ["worker-1"], state, NOW + 0.999).nodes == ()
    assert answer(filter_nodes(asking, ["worker-1"], state, NOW + 1)) == ["worker-1"]


def test_an_empty_sample_gets_an_empty_answer() -> None:
    verdict = ask(pod("a", cpu="1"), names=[])
    assert (answer(verdict), verdict.refused, verdict.effects) == ([], {}, ())


def test_filter_changes_nothing() -> None:
    state = state_of(W1, W2, W3, SEAT)
    before = (state.snapshot.held.copy(), state.snapshot.requested.copy(), list(state.ledger))
    effects: list[Effect] = []
    for asking in (OWNER, pod("a", cpu="4"), pod("owner", nominated="worker-2", cpu="9")):
        effects += filter_nodes(asking, ["worker-1", "ghost"], state, NOW).effects
    assert (state.snapshot.held == before[0]).all()
    assert (state.snapshot.requested == before[1]).all()
    assert list(state.ledger) == before[2]


def test_where_something_cannot_be_read_nobody_but_a_seats_owner_may_land() -> None:
    state = state_of(W1, W2, W3, SEAT)
    state.unreadable.note(("shop", "unreadable"), "worker-2")
    stranger = filter_nodes(pod("a", cpu="1"), NAMES, state, NOW)
    assert answer(stranger) == ["worker-1", "worker-3"]
    assert answer(filter_nodes(OWNER, NAMES, state, NOW)) == ["worker-2"]
