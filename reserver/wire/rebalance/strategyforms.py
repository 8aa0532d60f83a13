"""The ``args`` of strategies that judge pods one by one, checked as upstream checks them."""

from __future__ import annotations

from reserver.errors import InvalidInput
from reserver.rebalance.arguments import placement, recycling
from reserver.rebalance.arguments.placement import NodeAffinityType
from reserver.wire.limits import Int32
from reserver.wire.rebalance.parts import (
    Args,
    Names,
    Part,
    Problems,
    Selecting,
    UInt,
    among,
    choice,
    one_choice,
)


class RemoveDuplicates(Args):
    """Arguments of RemoveDuplicates."""

    namespaces: Names | None = None
    exclude_owner_kinds: tuple[str, ...] = ()

    def problems(self) -> Problems:
        yield from one_choice("namespaces", self.namespaces)

    def value(self) -> placement.RemoveDuplicates:
        return placement.RemoveDuplicates(
            namespaces=choice(self.namespaces),
            exclude_owner_kinds=frozenset(self.exclude_owner_kinds),
        )


class RemovePodsViolatingInterPodAntiAffinity(Selecting):
    """Arguments of RemovePodsViolatingInterPodAntiAffinity."""

    def value(self) -> placement.RemovePodsViolatingInterPodAntiAffinity:
        return placement.RemovePodsViolatingInterPodAntiAffinity(**self.chosen)


class RemovePodsViolatingNodeAffinity(Selecting):
    """Arguments of RemovePodsViolatingNodeAffinity."""

    node_affinity_type: tuple[str, ...] = ()

    def problems(self) -> Problems:
        if not self.node_affinity_type:
            yield InvalidInput(
                "nodeAffinityType", "is missing", f"write {NodeAffinityType.REQUIRED}"
            )
        yield from super().problems()

    def warnings(self) -> Problems:
        yield from among("nodeAffinityType", self.node_affinity_type, NodeAffinityType)

    def value(self) -> placement.RemovePodsViolatingNodeAffinity:
        return placement.RemovePodsViolatingNodeAffinity(
            **self.chosen,
            types=tuple(
                NodeAffinityType(each)
                for each in self.node_affinity_type
                if each in set(NodeAffinityType)
            ),
        )


class RemovePodsViolatingNodeTaints(Selecting):
    """Arguments of RemovePodsViolatingNodeTaints."""

    include_prefer_no_schedule: bool = False
    excluded_taints: tuple[str, ...] = ()
    included_taints: tuple[str, ...] | None = None

    def problems(self) -> Problems:
        yield from super().problems()
        if self.excluded_taints and self.included_taints:
            problem = "is given beside excludedTaints"
            yield InvalidInput("includedTaints", problem, "write one of them")

    def value(self) -> placement.RemovePodsViolatingNodeTaints:
        included = self.included_taints
        return placement.RemovePodsViolatingNodeTaints(
            **self.chosen,
            include_prefer_no_schedule=self.include_prefer_no_schedule,
            excluded_taints=frozenset(self.excluded_taints),
            included_taints=None if included is None else frozenset(included),
        )


class RemovePodsViolatingTopologySpreadConstraint(Selecting):
    """Arguments of RemovePodsViolatingTopologySpreadConstraint."""

    constraints: tuple[str, ...] = ()
    topology_balance_node_fit: bool = True

    def problems(self) -> Problems:
        yield from super().problems()
        yield from among("constraints", self.constraints, ["DoNotSchedule", "ScheduleAnyway"])

    def value(self) -> placement.RemovePodsViolatingTopologySpreadConstraint:
        return placement.RemovePodsViolatingTopologySpreadConstraint(
            **self.chosen,
            constraints=frozenset(self.constraints or ["DoNotSchedule"]),
            topology_balance_node_fit=self.topology_balance_node_fit,
        )


class RemovePodsHavingTooManyRestarts(Selecting):
    """Arguments of RemovePodsHavingTooManyRestarts."""

    pod_restart_threshold: Int32 = 0
    including_init_containers: bool = False
    states: tuple[str, ...] = ()

    def problems(self) -> Problems:
        yield from super().problems()
        if self.pod_restart_threshold < 1:
            problem = f"{self.pod_restart_threshold} is less than 1"
            yield InvalidInput("podRestartThreshold", problem, "write the restarts to tolerate")
        yield from among("states", self.states, ["CrashLoopBackOff", "Running"])

    def value(self) -> recycling.RemovePodsHavingTooManyRestarts:
        return recycling.RemovePodsHavingTooManyRestarts(
            **self.chosen,
            pod_restart_threshold=self.pod_restart_threshold,
            including_init_containers=self.including_init_containers,
            states=frozenset(self.states),
        )


class _Condition(Part):
    type: str = ""
    status: str = ""
    reason: str = ""
    min_time_since_last_transition_seconds: UInt | None = None


_LIFE_STATES = (
    *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff"),
    *("CreateContainerConfigError", "ErrImagePull", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun"),
    "StartError",
)


class PodLifeTime(Selecting):
    """Arguments of PodLifeTime."""

    owner_kinds: Names | None = None
    max_pod_life_time_seconds: UInt | None = None
    states: tuple[str, ...] = ()
    conditions: tuple[_Condition, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False

    def problems(self) -> Problems:
        yield from super().problems()
        yield from one_choice("ownerKinds", self.owner_kinds)
        yield from among("states", self.states, _LIFE_STATES)
        for index, each in enumerate(self.conditions):
            if each == _Condition():
                remedy = "write type, status, reason or minTimeSinceLastTransitionSeconds"
                yield InvalidInput(f"conditions[{index}]", "asks for nothing", remedy)
        criteria = (self.states, self.conditions, self.exit_codes)
        if self.max_pod_life_time_seconds is None and not any(criteria):
            remedy = "write maxPodLifeTimeSeconds, states, conditions or exitCodes"
            yield InvalidInput("", "no criterion is given", remedy)

    def value(self) -> recycling.PodLifeTime:
        return recycling.PodLifeTime(
            **self.chosen,
            owner_kinds=choice(self.owner_kinds),
            max_pod_life_time_seconds=self.max_pod_life_time_seconds,
            states=frozenset(self.states),
            conditions=tuple(
                recycling.ConditionFilter(
                    type=each.type,
                    status=each.status,
                    reason=each.reason,
                    min_s=each.min_time_since_last_transition_seconds,
                )
                for each in self.conditions
            ),
            exit_codes=frozenset(self.exit_codes),
            including_init_containers=self.including_init_containers,
            including_ephemeral_containers=self.including_ephemeral_containers,
        )


class RemoveFailedPods(Selecting):
    """Arguments of RemoveFailedPods."""

    exclude_owner_kinds: tuple[str, ...] = ()
    min_pod_lifetime_seconds: UInt = 3600
    reasons: tuple[str, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False

    def value(self) -> recycling.RemoveFailedPods:
        return recycling.RemoveFailedPods(
            **self.chosen,
            exclude_owner_kinds=frozenset(self.exclude_owner_kinds),
            min_pod_lifetime_seconds=self.min_pod_lifetime_seconds,
            reasons=frozenset(self.reasons),
            exit_codes=frozenset(self.exit_codes),
            including_init_containers=self.including_init_containers,
        )
