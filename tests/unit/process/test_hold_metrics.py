"""The metrics of holds, with any number of namespaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.process.hold_metrics import MOST_NAMESPACES, OTHERS, HoldMetrics, bounded
from reserver.reservations.entry import EndedClaim
from reserver.reservations.enums import Outcome
from reserver.reservations.outcome import Ending
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Reservation
from reserver.scheduling.pending_pods import Waiting
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, NOW, node, pod, ref, reservation, rule, state_of

W1 = node("worker-1", cpu="4", memory="4Gi")


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


async def samples(metrics: HoldMetrics, name: str, *problems: Any) -> dict[tuple[str, ...], float]:
    """Return the samples of a metric by their label values, in the order of the labels."""
    await metrics.survey()
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in metrics.families(problems)
        for sample in family.samples
        if sample.name == name
    }


def of(owner_namespace: str, key: str = "r", **fields: Any) -> Reservation:
    made = reservation(key, **fields)
    return replace(made, owners=(PodName(owner_namespace, "owner"),))


def test_the_largest_have_series_of_their_own_and_the_others_one() -> None:
    assert bounded({"a": 2, "b": 1}) == {"a": 2, "b": 1, OTHERS: 0}
    many = {f"n{number}": float(number) for number in range(MOST_NAMESPACES + 3)}
    found = bounded(many)
    assert len(found) == MOST_NAMESPACES + 1
    assert found[OTHERS] == 0 + 1 + 2
    assert sum(found.values()) == sum(many.values())


async def test_what_is_held_counts_where_the_pods_are_it_is_for() -> None:
    state = state_of(W1, of("team", "a", cpu="1500m", slots=2), of("home", "b", memory="1Gi"))
    state.ledger.put(of("team", "later", cpu="1", starts=NOW + 9))
    by_rule = reservation("c", owners=(), rules=[rule(app="x")], cpu="500m")
    state.ledger.put(by_rule)
    found = await samples(HoldMetrics(state, Clock()), "reserver_namespace_held")
    assert {key: value for key, value in found.items() if value} == {
        ("team", "cpu", "core"): 3.0,
        (NAMESPACE, "cpu", "core"): 0.5,
        ("home", "memory", "byte"): 2.0**30,
    }


async def test_reservations_are_counted_by_phase() -> None:
    state = state_of(W1, reservation("a"), reservation("later", starts=NOW + 9))
    found = await samples(HoldMetrics(state, Clock()), "reserver_reservations")
    assert {phase: count for (phase,), count in found.items() if count} == {
        "Active": 1,
        "Pending": 1,
    }


async def test_holds_without_room_are_those_of_the_platform_or_of_a_tenant() -> None:
    state = state_of(W1, reservation("a", cpu="5"))
    metrics = HoldMetrics(state, Clock())
    name = "reserver_unbacked_reservations"
    assert await samples(metrics, name) == {(NAMESPACE, "tenant"): 1, (OTHERS, "tenant"): 0}
    state.public_namespaces = frozenset({NAMESPACE, "home"})
    assert await samples(metrics, name) == {
        (NAMESPACE, "home"): 1,
        ("home", "home"): 0,
        (OTHERS, "tenant"): 0,
    }
    metrics.violated(ref("a"))
    assert await samples(metrics, "reserver_holds_violated_total") == {("home",): 1, ("tenant",): 0}


async def test_entries_that_are_not_enforced_are_those_of_the_platform_or_of_a_tenant() -> None:
    state = State()
    state.public_namespaces = frozenset({"home"})
    problems = (("home", "store"), 2), (("shop", "reservations.reserver.io"), 3)
    found = await samples(HoldMetrics(state, Clock()), "reserver_invalid_entries", *problems)
    assert found == {
        ("home/store", "home", "home"): 2,
        ("shop/reservations.reserver.io", "shop", "tenant"): 3,
        (OTHERS, OTHERS, "tenant"): 0,
    }


async def test_what_waits_for_its_quota_is_counted() -> None:
    quotas = Quotas(Quota(name="default", hard={"reservations": 1}))
    state = State(quotas=quotas)
    state.node_seen(W1)
    for key in "abc":
        state.ledger.put(reservation(key, cpu="1"))
    found = await samples(HoldMetrics(state, Clock()), "reserver_quota_exceeded_reservations")
    assert found == {(NAMESPACE,): 2, (OTHERS,): 0}


async def test_an_acknowledgement_takes_from_the_first_sight_on() -> None:
    clock, state = Clock(), state_of(W1, reservation("a", cpu="1"))
    metrics = HoldMetrics(state, clock)
    clock.now += 0.75
    metrics.acknowledged(ref("a"))
    metrics.acknowledged(ref("gone"))
    assert await samples(metrics, "reserver_acknowledgement_seconds_sum") == {(): 0.75}
    assert await samples(metrics, "reserver_acknowledgement_seconds_count") == {(): 1}


async def test_a_wait_lasts_from_the_first_refusal_until_the_pod_is_bound() -> None:
    clock = Clock()
    metrics = HoldMetrics(State(), clock)
    metrics.on_pod_refused("a")
    clock.now += 5
    metrics.on_pod_refused("a")
    clock.now += 5
    metrics.on_pod_assumed(pod("p", uid="a"), "worker-1")
    metrics.on_pod_assumed(pod("p", uid="a"), "worker-1")
    metrics.on_pod_assumed(pod("p", uid="never refused"), "worker-1")
    assert await samples(metrics, "reserver_pod_wait_seconds_sum") == {(): 10}
    assert await samples(metrics, "reserver_pod_wait_seconds_count") == {(): 1}


async def test_pods_that_wait_and_go_are_forgotten() -> None:
    clock, state = Clock(), State()
    metrics = HoldMetrics(state, clock)
    state.waiting["stays"] = Waiting(pod("stays"), None)
    metrics.on_pod_refused("stays")
    for number in range(1000):
        metrics.on_pod_refused(f"gone-{number}")
    assert len(metrics._refused_at) <= MOST_NAMESPACES + 4
    clock.now += 7
    metrics.on_pod_assumed(pod("p", uid="stays"), "worker-1")
    assert await samples(metrics, "reserver_pod_wait_seconds_sum") == {(): 7}


CLAIMED = (EndedClaim("u", at=NOW + 60), EndedClaim("v"))


@pytest.mark.parametrize(
    ("fields", "outcome", "claims", "used", "unused"),
    [
        ({}, Outcome.EXPIRED, (), 0, 3 * 2 * 100),
        ({}, Outcome.REMOVED, CLAIMED, 2 * 60 + 2 * 100, 2 * 100),
        ({"expires": NOW + 40}, Outcome.EXPIRED, (), 0, 3 * 2 * 40),
        ({"starts": NOW + 90}, Outcome.REMOVED, (), 0, 3 * 2 * 10),
        ({"starts": NOW + 900}, Outcome.REMOVED, (), 0, 0),
    ],
)
async def test_core_seconds_are_those_of_slots_that_were_claimed_in_the_end_or_not(
    fields: Any, outcome: Outcome, claims: tuple[EndedClaim, ...], used: float, unused: float
) -> None:
    metrics = HoldMetrics(State(), Clock())
    over = of("team", cpu="2", slots=3, **fields)
    metrics.ended(Ending(over, outcome, NOW + 100, NOW, claims))
    found = await samples(metrics, "reserver_held_core_seconds_total")
    assert found == {("team", "used"): used, ("team", "unused"): unused}


async def test_slots_that_came_back_were_used() -> None:
    metrics = HoldMetrics(State(), Clock())
    over = of("team", cpu="2", slots=3, reusable=True)
    metrics.ended(Ending(over, Outcome.REMOVED, NOW + 100, NOW, CLAIMED[1:], most_claimed=2))
    found = await samples(metrics, "reserver_held_core_seconds_total")
    assert found == {("team", "used"): 2 * 2 * 100, ("team", "unused"): 2 * 100}


async def test_what_had_no_place_or_no_cpu_has_held_no_core() -> None:
    metrics = HoldMetrics(State(), Clock())
    for over in (of("team", node="", cpu="2"), of("team", memory="1Gi")):
        metrics.ended(Ending(over, Outcome.EXPIRED, NOW + 100, NOW))
    assert not await samples(metrics, "reserver_held_core_seconds_total")


async def test_however_many_namespaces_there_are_their_counters_are_bounded_and_never_fall() -> (
    None
):
    metrics, before = HoldMetrics(State(), Clock()), dict[tuple[str, ...], float]()
    for number in range(2 * MOST_NAMESPACES):
        metrics.ended(Ending(of(f"n{number}", cpu="1"), Outcome.EXPIRED, NOW + 1, NOW))
        found = await samples(metrics, "reserver_held_core_seconds_total")
        assert all(found[key] >= value for key, value in before.items())
        before = found
    assert len(before) == 2 * (MOST_NAMESPACES + 1)
    assert before[OTHERS, "unused"] == MOST_NAMESPACES
