"""The arguments of the plugins of a policy, with their defaults.

Names, meaning and defaults are those of kubernetes-sigs/descheduler v0.36.0 (``types.go`` and
``defaults.go`` below ``pkg/framework/plugins``). A value is what its plugin works with: label
selectors are parsed, a priority class is its number, deprecated fields have become what they stand
for. What is absent in the file and matches everything is `EVERYTHING` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from reserver.cluster.labels import EVERYTHING, Selector

SYSTEM_CRITICAL = 2_000_000_000
"""The priority from which pods are critical: ``SystemCriticalPriority`` in pkg/apis/scheduling."""

Thresholds = Mapping[str, float]
"""Percentages of what a node has to offer, by resource; 0 to 100."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to look at, by name: only `include` if there is any, never `exclude`.

    Both empty chooses everything. It chooses namespaces, and kinds of owners.
    """

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Return whether a name is chosen."""
        return (not self.include or name in self.include) and name not in self.exclude


ALL = Choice()


class Protection(StrEnum):
    """A kind of pods that DefaultEvictor does not evict."""

    LOCAL_STORAGE = "PodsWithLocalStorage"
    DAEMON_SET = "DaemonSetPods"
    SYSTEM_CRITICAL = "SystemCriticalPods"
    FAILED_BARE = "FailedBarePods"
    PVC = "PodsWithPVC"
    WITHOUT_PDB = "PodsWithoutPDB"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"


DEFAULT_PROTECTIONS = frozenset(
    {
        Protection.LOCAL_STORAGE,
        Protection.DAEMON_SET,
        Protection.SYSTEM_CRITICAL,
        Protection.FAILED_BARE,
    }
)
"""Those that are on unless ``defaultDisabled`` names them. The others are ``extraEnabled``."""


class NoEviction(StrEnum):
    """What the annotation ``descheduler.alpha.kubernetes.io/prefer-no-eviction`` means."""

    PREFERRED = "Preferred"
    """Strategies that sort pods take those last that have it."""

    MANDATORY = "Mandatory"
    """Pods that have it are not evicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultEvictor:
    """The arguments of DefaultEvictor: which pods may be evicted.

    Attributes:
        node_selector: the nodes that ``nodeFit`` tries; the policy's own selector does not count.
        label_selector: pods that may be evicted.
        namespace_label_selector: labels of the namespaces whose pods may be evicted.
        priority_threshold: pods of this priority or above stay.
        node_fit: only pods that fit on another node are evicted.
        min_replicas: pods of an owner with fewer pods stay; 0 and 1 mean no such bound.
        min_pod_age_s: pods that have run for less stay, in seconds; None for no such bound.
        no_eviction_policy: what the annotation ``prefer-no-eviction`` means.
        protections: kinds of pods that stay.
        protected_storage_classes: with `Protection.PVC`, only pods with a claim of one of these
            classes stay; empty for all pods with claims.
    """

    NAME: ClassVar = "DefaultEvictor"

    node_selector: Selector = EVERYTHING
    label_selector: Selector = EVERYTHING
    namespace_label_selector: Selector = EVERYTHING
    priority_threshold: int = SYSTEM_CRITICAL
    node_fit: bool = False
    min_replicas: int = 0
    min_pod_age_s: float | None = None
    no_eviction_policy: NoEviction | None = None
    protections: frozenset[Protection] = DEFAULT_PROTECTIONS
    protected_storage_classes: frozenset[str] = frozenset()


UNCONFIGURED = DefaultEvictor()
"""What a profile has that says nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDuplicates:
    """No two pods of one owner on a node while others have none.

    Attributes:
        namespaces: whose pods are looked at.
        exclude_owner_kinds: pods that have an owner of such a kind stay.
    """

    NAME: ClassVar = "RemoveDuplicates"

    namespaces: Choice = ALL
    exclude_owner_kinds: frozenset[str] = frozenset()


class UsageSource(StrEnum):
    """The source of a node's usage."""

    REQUESTS = "requests"
    """What the pods request."""

    KUBERNETES = "KubernetesMetrics"
    """metrics.k8s.io."""

    PROMETHEUS = "Prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeUtilization:
    """Pods move from nodes above a threshold to those below another.

    Attributes:
        thresholds: a node that is at or below all of them is underutilized.
        target_thresholds: one that is above any of them is overutilized; the same resources.
        use_deviation_thresholds: thresholds are distances from the mean of all nodes.
        number_of_nodes: it acts if more nodes than so many are underutilized.
        usage: where it reads what is used.
        query: of Prometheus, for a share of 1 for each node; only with that source.
        exclude_namespaces: pods there are counted and stay.
        most_per_node: evictions from one node in a cycle; None for no such bound.
    """

    NAME: ClassVar = "LowNodeUtilization"

    thresholds: Thresholds
    target_thresholds: Thresholds
    use_deviation_thresholds: bool = False
    number_of_nodes: int = 0
    usage: UsageSource = UsageSource.REQUESTS
    query: str = ""
    exclude_namespaces: frozenset[str] = frozenset()
    most_per_node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HighNodeUtilization:
    """Pods leave the nodes that are below a threshold, so that fewer nodes carry them.

    Attributes:
        thresholds: a node that is at or below all of them is underutilized.
        number_of_nodes: it acts if more nodes than so many are underutilized.
        only_thresholding_resources: only pods leave that request a resource with a threshold.
        exclude_namespaces: pods there are counted and stay.
    """

    NAME: ClassVar = "HighNodeUtilization"

    thresholds: Thresholds
    number_of_nodes: int = 0
    only_thresholding_resources: bool = False
    exclude_namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingInterPodAntiAffinity:
    """Pods leave a node or zone that their own required anti-affinity forbids by now.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at; a conflict with others is not seen.
    """

    NAME: ClassVar = "RemovePodsViolatingInterPodAntiAffinity"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING


class NodeAffinityType(StrEnum):
    """A kind of node affinity."""

    REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
    PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingNodeAffinity:
    """Pods leave a node that no longer meets their node affinity, or meets it less than another.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at.
        types: of affinity, in the order in which they are looked at.
    """

    NAME: ClassVar = "RemovePodsViolatingNodeAffinity"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
    types: tuple[NodeAffinityType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingNodeTaints:
    """Pods leave a node with a taint NoSchedule that they do not tolerate.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at.
        include_prefer_no_schedule: taints PreferNoSchedule count as well.
        excluded_taints: taints that do not count, as ``key`` or ``key=value``.
        included_taints: the only ones that count; None for all, empty for none.
    """

    NAME: ClassVar = "RemovePodsViolatingNodeTaints"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
    include_prefer_no_schedule: bool = False
    excluded_taints: frozenset[str] = frozenset()
    included_taints: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingTopologySpreadConstraint:
    """Pods leave zones that have more of them than their spread constraints allow.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at; others are not counted.
        constraints: values of ``whenUnsatisfiable`` of the constraints that count.
        topology_balance_node_fit: only pods leave that fit in a zone with fewer.
    """

    NAME: ClassVar = "RemovePodsViolatingTopologySpreadConstraint"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
    constraints: frozenset[str] = frozenset({"DoNotSchedule"})
    topology_balance_node_fit: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsHavingTooManyRestarts:
    """Pods leave whose containers have restarted too often.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at.
        pod_restart_threshold: restarts of all containers of a pod from which it leaves; 1 or more.
        including_init_containers: those of init containers count as well.
        states: only pods in one of these states leave; empty for any.
    """

    NAME: ClassVar = "RemovePodsHavingTooManyRestarts"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
    pod_restart_threshold: int
    including_init_containers: bool = False
    states: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFilter:
    """What a condition of a pod's status must be; an empty field allows anything.

    Attributes:
        type: of the condition.
        status: ``True``, ``False`` or ``Unknown``.
        reason: of its last transition.
        min_s: seconds since then, at least; None allows any, and a condition without a time.
    """

    type: str = ""
    status: str = ""
    reason: str = ""
    min_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLifeTime:
    """Pods leave that are too old, or in some state for too long.

    A pod meets each of the criteria that are given, and any item of a criterion.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at.
        owner_kinds: kinds of owners: with `include` one owner must have such a kind, with
            `exclude` none may.
        max_pod_life_time_seconds: pods that are older leave; None for any age.
        states: phases, reasons, and reasons of waiting and terminated containers.
        conditions: of their status.
        exit_codes: of terminated containers.
        including_init_containers: states and exit codes of init containers count as well.
        including_ephemeral_containers: states of ephemeral containers count as well.
    """

    NAME: ClassVar = "PodLifeTime"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
    owner_kinds: Choice = ALL
    max_pod_life_time_seconds: int | None = None
    states: frozenset[str] = frozenset()
    conditions: tuple[ConditionFilter, ...] = ()
    exit_codes: frozenset[int] = frozenset()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFailedPods:
    """Pods in phase Failed leave.

    Attributes:
        namespaces: whose pods are looked at.
        label_selector: pods that are looked at.
        exclude_owner_kinds: pods that have an owner of such a kind stay.
        min_pod_lifetime_seconds: younger pods stay.
        reasons: of the pod or a container; empty for any.
        exit_codes: of terminated containers; empty for any.
        including_init_containers: reasons and exit codes of init containers count as well.
    """

    NAME: ClassVar = "RemoveFailedPods"

    namespaces: Choice = ALL
    label_selector: Selector = EVERYTHING
    exclude_owner_kinds: frozenset[str] = frozenset()
    min_pod_lifetime_seconds: int = 3600
    reasons: frozenset[str] = frozenset()
    exit_codes: frozenset[int] = frozenset()
    including_init_containers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyCondition:
    """When a node counts as hot for `LowNodeLoad`: not at its first hot round.

    Attributes:
        timeout_s: for how long it counts then, in seconds; after that it begins anew.
        consecutive_abnormalities: hot rounds in a row that are tolerated, the next one counts;
            with 1 the first one counts.
        consecutive_normalities: rounds in a row that are not hot until it counts as normal again.
    """

    timeout_s: float = 60.0
    consecutive_abnormalities: int = 5
    consecutive_normalities: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Nodes that `LowNodeLoad` balances among themselves.

    Attributes:
        name: for messages.
        node_selector: its nodes; one that an earlier pool has found hot is left to that pool.
        low_thresholds: a node at or below all of them takes load.
        high_thresholds: one above any of them is hot.
        use_deviation_thresholds: thresholds are distances from the mean of the pool.
        resource_weights: how much a resource counts in sorting; 1 for those without a weight.
        anomaly_condition: when a hot node counts.
    """

    name: str = ""
    node_selector: Selector = EVERYTHING
    low_thresholds: Thresholds
    high_thresholds: Thresholds
    use_deviation_thresholds: bool = False
    resource_weights: Mapping[str, int] = field(default_factory=dict)
    anomaly_condition: AnomalyCondition = AnomalyCondition()


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeLoad:
    """Pods leave nodes whose real load is high for nodes where it is low, as Koordinator has it.

    Fields and defaults are those of ``LowNodeLoadArgs`` of koord-descheduler (v1alpha2); the
    thresholds at its top level are the last pool. `usage` and `query` are ours: Koordinator reads
    its own agent.

    Attributes:
        paused: it does nothing.
        dry_run: its moves are planned and not carried out.
        number_of_nodes: it acts if more nodes than so many take load.
        node_metric_expiration_seconds: a node whose load is older is skipped.
        evictable_namespaces: pods elsewhere are counted and stay.
        pod_selectors: pods that leave match one of them; empty for any pod.
        node_fit: only pods that fit on a node that takes load leave.
        detector_cache_timeout_s: how long a node's rounds are remembered after it was last seen.
        node_pools: in order; at least one.
        usage: where it reads what is used; never requests.
        query: of Prometheus, by resource, for the amount that each node uses; empty for ours.
    """

    NAME: ClassVar = "LowNodeLoad"

    paused: bool = False
    dry_run: bool = False
    number_of_nodes: int = 0
    node_metric_expiration_seconds: int = 180
    evictable_namespaces: Choice = ALL
    pod_selectors: tuple[Selector, ...] = ()
    node_fit: bool = True
    detector_cache_timeout_s: float = 300.0
    node_pools: tuple[NodePool, ...]
    usage: UsageSource = UsageSource.KUBERNETES
    query: Mapping[str, str] = field(default_factory=dict)


Arguments = (
    RemoveDuplicates
    | LowNodeUtilization
    | HighNodeUtilization
    | RemovePodsViolatingInterPodAntiAffinity
    | RemovePodsViolatingNodeAffinity
    | RemovePodsViolatingNodeTaints
    | RemovePodsViolatingTopologySpreadConstraint
    | RemovePodsHavingTooManyRestarts
    | PodLifeTime
    | RemoveFailedPods
    | LowNodeLoad
)
"""Of a strategy; the type says which one."""
