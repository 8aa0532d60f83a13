"""A descheduling cycle as upstream runs it: the evictions in order.

All profiles' deschedule plugins run first, then all profiles' balance plugins, each in the order of
the file. Where upstream's order is random (pods on a node, nodes, maps), names decide here, so that
upstream could have had the same outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reserver.errors import sparing
from reserver.rebalance.arguments.utilization import METRIC
from reserver.rebalance.candidate import Candidate
from reserver.rebalance.capacity import NOTHING_HELD, Held
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.evictor import Evictor
from reserver.rebalance.limits import Reached, Spent
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.measured_load import Source
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.plan import MOST_KEPT, Kept, Plan, PlannedMove, Why
from reserver.rebalance.plan_summary import nodes_without
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, EvictionLimits
from reserver.rebalance.readings import Usage
from reserver.rebalance.round_input import Decision, RoundInput, Timed, untimed
from reserver.rebalance.strategies.table import UPSTREAM
from reserver.rebalance.upstream_state import UpstreamState

_FEWEST_NODES = 2


def decide(given: RoundInput, _: Held = NOTHING_HELD) -> Decision:
    """Return the plan that a policy asks for; its moves name no target."""
    cluster = _with_usage(given.cluster, given.loads)
    return Decision(plan=plan(cluster, given.policy, given.now, given.timed), rounds={})


def plan(
    cluster: ClusterState, policy: DeschedulerPolicy, now: float, timed: Timed = untimed
) -> Plan:
    """Return the evictions of one cycle at a time in unix seconds; `timed` measures its plugins.

    Upstream never starts the informer of PodDisruptionBudgets, so that PodsWithoutPDB protects all
    pods (kubernetes-sigs/descheduler#1882), as it does here.
    """
    index = PodIndex(replace(cluster, budgets=()), policy.node_selector)
    shown = len(index.shown_rows())
    if shown < _FEWEST_NODES:
        note = f"the cycle is skipped: it takes {_FEWEST_NODES} ready nodes, there are {shown}"
        return Plan(notes=(note,))
    cycle, fit = _Cycle(index, policy.limits), NodeFit(index)
    states = {  # Profiles may have equal names.
        id(each): UpstreamState(index, Evictor(each.evictor, index, fit, now), now)
        for each in policy.profiles
    }
    for profile, args in policy.turns:
        with timed(profile.name, args.NAME):
            cycle.run(profile.name, args, states[id(profile)])
    return cycle.plan()


class _Cycle:
    """A cycle under way."""

    def __init__(self, index: PodIndex, limits: EvictionLimits) -> None:
        self._index = index
        self._spent = Spent(limits)
        self._moves: list[PlannedMove] = []
        self._kept: list[Kept] = []
        self._notes: list[str] = []

    def run(self, profile: str, args: Arguments, state: UpstreamState) -> None:
        """Run a plugin; an exception costs the rest of it."""

        def failed(exc: Exception) -> None:
            self._notes.append(f"{profile}/{args.NAME} failed: {exc}")

        find = UPSTREAM.get(type(args))
        if find is None:
            self._notes.append(f"{profile}/{args.NAME} is not a plugin of upstream")
            return
        with sparing(failed):
            for batch in find(args, state):
                for candidate in batch:
                    if self._evict(candidate, Why(args.NAME, profile)) is Reached.TOTAL:
                        return

    def plan(self) -> Plan:
        """Return the plan."""
        return Plan(
            moves=tuple(self._moves),
            kept=tuple(self._kept[:MOST_KEPT]),
            more_kept=max(0, len(self._kept) - MOST_KEPT),
            nodes=nodes_without(self._index.cluster, {move.uid for move in self._moves}),
            notes=tuple(self._notes),
        )

    def _evict(self, candidate: Candidate, why: Why) -> Reached | None:
        """Evict a pod, unless a limit keeps it; one that is gone already costs nothing."""
        listed = self._index.pods[candidate.pod]
        pod = listed.pod
        reached = self._spent.reached(listed) if pod.uid else None
        kept = reached or ("" if pod.uid else "it has no UID")
        if kept:
            about = {"strategy": why.strategy, "profile": why.profile}
            self._kept.append(Kept(pod=pod.name, node=pod.node, **about, why=kept))
        elif not self._index.is_gone[candidate.pod]:
            self._spent.count(listed)
            self._index.evict(candidate.pod)
            self._moves.append(why._replace(reason=candidate.reason).move(pod, pod.node, None))
        return reached


def _with_usage(cluster: ClusterState, loads: Mapping[Source, SmoothedLoad]) -> ClusterState:
    """Return the cluster with the measured usage of all sources."""
    nodes, pods = dict(cluster.node_usage), dict(cluster.pod_usage)
    for load in loads.values():
        for name, known in load.nodes.items():
            nodes[name] = {**nodes.get(name, {}), **_whole(known.usage)}
        pods |= {name: (_whole(usage),) for name, usage in load.pods.items()}
    return replace(cluster, node_usage=nodes, pod_usage=pods)


def _whole(usage: Usage) -> dict[str, int]:
    """Round amounts; upstream cuts the decimal places of what Prometheus says off."""
    return {name: int(n) if name == METRIC else round(n) for name, n in usage.items()}
