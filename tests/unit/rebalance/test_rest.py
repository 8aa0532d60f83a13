"""Plans carried out until nothing is left to do: each strategy alone, and all of them together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from hack.bench.rebalancing import BALANCE, DESCHEDULE, NOW, dump
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.recycling import PodLifeTime, RemovePodsHavingTooManyRestarts
from reserver.rebalance.arguments.utilization import HighNodeUtilization
from reserver.rebalance.cluster_state import ClusterState, ListedPod
from reserver.rebalance.dump import read_lines
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.planner import decide
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, Profile
from reserver.rebalance.round_input import RoundInput

ROUNDS = 3
CLUSTER = read_lines(dump(60, 900)).inventory
OTHERS: tuple[Arguments, ...] = (
    RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
    PodLifeTime(max_pod_life_time_seconds=60, states=frozenset({"CrashLoopBackOff"})),
    HighNodeUtilization(thresholds={"cpu": 40, "memory": 40}),
)


def policy(*args: Arguments) -> DeschedulerPolicy:
    balance = {type(each) for each in BALANCE} | {HighNodeUtilization}
    return DeschedulerPolicy(
        profiles=(
            Profile(
                name="p",
                evictor=DefaultEvictor(),
                deschedule=tuple(each for each in args if type(each) not in balance),
                balance=tuple(each for each in args if type(each) in balance),
            ),
        )
    )


def planned(cluster: ClusterState, wanted: DeschedulerPolicy, now: float) -> Plan:
    given = RoundInput(policy=wanted, cluster=cluster, loads={}, rounds={}, now=now)
    return decide(given).plan


def landed(each: ListedPod, move: PlannedMove, now: float) -> ListedPod:
    """Return the pod that replaces a moved pod."""
    assert move.target is not None
    return msgspec.structs.replace(
        each,
        pod=replace(each.pod, node=move.target),
        created=now,
        started=now,
        phase="Running",
        reason="",
        containers=(),
        conditions=(),
    )


def carried_out(cluster: ClusterState, plan: Plan, now: float) -> ClusterState:
    """Return a cluster after all moves; pods that have ended do not return."""
    last = {move.uid: move for move in plan.moves}  # A swap moves one pod twice.
    pods = (
        landed(each, last[each.pod.uid], now) if each.pod.uid in last else each
        for each in cluster.pods
        if each.pod.uid not in last or last[each.pod.uid].target is not None
    )
    return replace(cluster, pods=tuple(pods))


@pytest.mark.parametrize(
    "args",
    [*((each,) for each in (*DESCHEDULE, *BALANCE, *OTHERS)), (*DESCHEDULE, *BALANCE)],
    ids=lambda args: args[0].NAME if len(args) == 1 else "all of them",
)
def test_rounds_reach_rest_and_no_pod_moves_twice_for_one_reason(
    args: tuple[Arguments, ...],
) -> None:
    cluster, now = CLUSTER, NOW
    reasons: Counter[tuple[str, str]] = Counter()
    for _ in range(ROUNDS):
        plan = planned(cluster, policy(*args), now)
        reasons.update({(move.uid, move.strategy) for move in plan.moves})
        cluster, now = carried_out(cluster, plan, now), now + 300.0
    assert not planned(cluster, policy(*args), now).moves
    assert set(reasons.values()) <= {1}
