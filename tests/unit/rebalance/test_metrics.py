"""The metrics of rebalancing have the names that dashboards of the descheduler ask for."""

import pytest

from reserver.rebalance import planner, upstream
from reserver.rebalance.arguments.placement import RemoveDuplicates
from reserver.rebalance.arguments.recycling import RemoveFailedPods
from reserver.rebalance.metrics import DeschedulingMetrics
from reserver.rebalance.outcomes import MoveOutcome, Result
from reserver.rebalance.plan import Why
from reserver.rebalance.policy import DeschedulerPolicy, Profile
from reserver.rebalance.round_input import RoundInput
from tests.builders import NOW, node, pod
from tests.unit.rebalance.scenes import cluster_of

NAMES = {
    # metrics/metrics.go of descheduler v0.36, the deprecated ones included
    "descheduler_build_info",
    "descheduler_pods_evicted",
    "descheduler_pods_evicted_total",
    "descheduler_loop_duration_seconds",
    "descheduler_descheduler_loop_duration_seconds",
    "descheduler_strategy_duration_seconds",
    "descheduler_descheduler_strategy_duration_seconds",
}


def exposed(metrics: DeschedulingMetrics) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples by name, then by the values of their labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            labels = tuple(sample.labels[key] for key in sorted(sample.labels) if key != "le")
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_all_names_of_the_descheduler_are_there_the_deprecated_ones_too() -> None:
    metrics = DeschedulingMetrics()
    move = Why("RemoveDuplicates", "default").move(pod("web"), "worker-1", None)
    metrics.count_move(MoveOutcome(move, Result.SUCCESS, NOW))
    metrics.count_round("done", 2.0)
    with metrics.time_strategy("default", "RemoveDuplicates"):
        pass
    found = exposed(metrics)
    names = {
        name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name in found
    }
    assert {name for name in names if name.startswith("descheduler_")} == NAMES
    labels = ("shop", "worker-1", "default", "success", "RemoveDuplicates")
    assert found["descheduler_pods_evicted"] == found["descheduler_pods_evicted_total"]
    assert found["descheduler_pods_evicted"] == {labels: 1}
    assert found["descheduler_descheduler_loop_duration_seconds_sum"] == {(): 2}


def test_nodes_whose_emptying_has_ended_are_counted_by_outcome() -> None:
    metrics = DeschedulingMetrics()
    for outcome in ("emptied", "emptied", "given back"):
        metrics.count_node(outcome)
    found = exposed(metrics)["reserver_rebalance_nodes_total"]
    assert found == {("emptied",): 2, ("given back",): 1}


@pytest.mark.parametrize("decide", [planner.decide, upstream.decide])
def test_each_strategy_is_timed(decide: object) -> None:
    metrics = DeschedulingMetrics()
    profile = Profile(name="p", deschedule=(RemoveFailedPods(),), balance=(RemoveDuplicates(),))
    look = RoundInput(
        policy=DeschedulerPolicy(profiles=(profile,)),
        cluster=cluster_of(node("a"), node("b")),
        loads={},
        rounds={},
        now=NOW,
        timed=metrics.time_strategy,
    )
    decide(look)  # type: ignore[operator]  # each is one
    counted = exposed(metrics)["descheduler_strategy_duration_seconds_count"]
    assert counted == {("p", "RemoveDuplicates"): 1, ("p", "RemoveFailedPods"): 1}
