"""Which pods may be evicted at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from reserver.cluster.labels import EVERYTHING, Selector

SYSTEM_CRITICAL = 2_000_000_000
"""The priority from which pods are critical: ``SystemCriticalPriority`` in pkg/apis/scheduling."""


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
