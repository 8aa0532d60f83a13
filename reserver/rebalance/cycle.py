"""A descheduling cycle as upstream runs it: which pods it would evict, in order.

All profiles' deschedule plugins run first, then all profiles' balance plugins, each in the order of
the file. Where upstream's order is random (of pods on a node, of nodes, of maps) it is that of
their names here, so the outcome is one that upstream could have had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reserver.errors import sparing
from reserver.rebalance.arguments.placement import (
    RemoveDuplicates,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)
from reserver.rebalance.arguments.recycling import (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.arguments.utilization import HighNodeUtilization, LowNodeUtilization
from reserver.rebalance.deciding import Timed, untimed
from reserver.rebalance.evictor import Evictor
from reserver.rebalance.inventory import Inventory, ListedPod
from reserver.rebalance.limits import Reached, Spent
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.policy import Arguments, Policy, Profile
from reserver.rebalance.strategies import (
    high_node_utilization,
    low_node_utilization,
    pod_life_time,
    remove_duplicates,
    remove_failed_pods,
    remove_pods_having_too_many_restarts,
    remove_pods_violating_inter_pod_anti_affinity,
    remove_pods_violating_node_affinity,
    remove_pods_violating_node_taints,
    remove_pods_violating_topology_spread_constraint,
)
from reserver.rebalance.strategies.wrong import Batches, Judge, Wrong
from reserver.rebalance.view import View

Find = Callable[[Any, View, Judge, float], Batches]

STRATEGIES: Mapping[type, Find] = {
    HighNodeUtilization: high_node_utilization.find,
    LowNodeUtilization: low_node_utilization.find,
    PodLifeTime: pod_life_time.find,
    RemoveDuplicates: remove_duplicates.find,
    RemoveFailedPods: remove_failed_pods.find,
    RemovePodsHavingTooManyRestarts: remove_pods_having_too_many_restarts.find,
    RemovePodsViolatingInterPodAntiAffinity: remove_pods_violating_inter_pod_anti_affinity.find,
    RemovePodsViolatingNodeAffinity: remove_pods_violating_node_affinity.find,
    RemovePodsViolatingNodeTaints: remove_pods_violating_node_taints.find,
    RemovePodsViolatingTopologySpreadConstraint: (
        remove_pods_violating_topology_spread_constraint.find
    ),
}
"""What each strategy finds wrong, by the type of its arguments."""

_FEWEST_NODES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """A pod that is to be evicted.

    Attributes:
        pod: the pod.
        strategy: the plugin that asks for it.
        profile: in which that plugin runs.
        reason: why.
    """

    pod: ListedPod
    strategy: str
    profile: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A pod that a plugin would have evicted.

    Attributes:
        pod: the pod.
        strategy: the plugin that asked for it.
        profile: in which that plugin runs.
        why: what kept it: a limit, or that it has no UID.
    """

    pod: ListedPod
    strategy: str
    profile: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one cycle.

    Attributes:
        evictions: in order.
        refusals: what a limit kept.
        notes: plugins that failed, and why nothing was done.
    """

    evictions: tuple[Eviction, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()


def run(inventory: Inventory, policy: Policy, now: float, timed: Timed = untimed) -> Outcome:
    """Return what one cycle would evict at a moment in unix seconds; `timed` times its plugins.

    Upstream never starts the informer of PodDisruptionBudgets, so that PodsWithoutPDB keeps all
    pods (kubernetes-sigs/descheduler#1882); here it sees none either.
    """
    view = View(replace(inventory, budgets=()), policy.node_selector)
    shown = len(view.shown_rows())
    if shown < _FEWEST_NODES:
        note = f"the cycle is skipped: it takes {_FEWEST_NODES} ready nodes, there are {shown}"
        return Outcome(notes=(note,))
    cycle = _Cycle(view, policy, now)
    for profile, arguments, evictor in cycle.plugins():
        with timed(profile.name, arguments.NAME):
            cycle.run(profile, arguments, evictor)
    return cycle.outcome()


class _Cycle:
    """A cycle under way."""

    def __init__(self, view: View, policy: Policy, now: float) -> None:
        self._view = view
        self._policy = policy
        self._now = now
        self._fit = NodeFit(view)
        self._spent = Spent(policy.limits)
        self._evictions: list[Eviction] = []
        self._refusals: list[Refusal] = []
        self._notes: list[str] = []

    def plugins(self) -> Iterator[tuple[Profile, Arguments, Evictor]]:
        """Yield what runs, in order."""
        profiles = [
            (profile, Evictor(profile.evictor, self._view, self._fit, self._now))
            for profile in self._policy.profiles
        ]
        for profile, evictor in profiles:
            yield from ((profile, arguments, evictor) for arguments in profile.deschedule)
        for profile, evictor in profiles:
            yield from ((profile, arguments, evictor) for arguments in profile.balance)

    def run(self, profile: Profile, arguments: Arguments, evictor: Evictor) -> None:
        """Run a plugin; an exception costs the rest of it."""
        name = arguments.NAME

        def failed(exc: Exception) -> None:
            self._notes.append(f"{profile.name}/{name} failed: {exc}")

        with sparing(failed):
            find = STRATEGIES.get(type(arguments))
            if find is None:
                self._notes.append(f"{profile.name}/{name} is no plugin of upstream")
                return
            for batch in find(arguments, self._view, evictor, self._now):
                for wrong in batch:
                    if self._evict(wrong, profile.name, name) is Reached.TOTAL:
                        return

    def outcome(self) -> Outcome:
        """Return what was decided."""
        return Outcome(
            evictions=tuple(self._evictions),
            refusals=tuple(self._refusals),
            notes=tuple(self._notes),
        )

    def _evict(self, wrong: Wrong, profile: str, strategy: str) -> Reached | None:
        """Evict a pod, unless a limit keeps it; one that is gone already costs nothing."""
        pod = self._view.pods[wrong.pod]
        reached = self._spent.reached(pod) if pod.pod.uid else None
        why = reached or ("" if pod.pod.uid else "it has no UID")
        if why:
            self._refusals.append(Refusal(pod=pod, strategy=strategy, profile=profile, why=why))
        elif not self._view.is_gone[wrong.pod]:
            self._spent.count(pod)
            self._view.evict(wrong.pod)
            self._evictions.append(
                Eviction(pod=pod, strategy=strategy, profile=profile, reason=wrong.reason)
            )
        return reached
