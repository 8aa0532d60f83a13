"""The arguments of DefaultEvictor, which protects pods from eviction."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

import msgspec

from reserver.cluster.labels import EVERYTHING, NOTHING
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.base import (
    Args,
    LabelSelector,
    PolicyPart,
    Priority,
    Problems,
    Seconds,
    TextSelector,
    UInt,
    among,
)

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
"""Protections that are on by default. ``extraEnabled`` adds the others."""


class NoEviction(StrEnum):
    """The effect of the annotation ``descheduler.alpha.kubernetes.io/prefer-no-eviction``."""

    PREFERRED = "Preferred"
    """Strategies that sort pods evict annotated pods last."""

    MANDATORY = "Mandatory"
    """Annotated pods are not evicted."""


class StorageClassName(PolicyPart, frozen=True):
    """The name of a StorageClass."""

    name: str = ""


class PodsWithPVC(PolicyPart, frozen=True):
    """The classes whose claims protect a pod; empty for all."""

    protected_storage_classes: tuple[StorageClassName, ...] = ()


class ProtectionsConfig(PolicyPart, frozen=True):
    """The settings of protections."""

    pods_with_pvc: PodsWithPVC = msgspec.field(default=PodsWithPVC(), name="PodsWithPVC")


class PodProtections(PolicyPart, frozen=True):
    """Additional protections, and default protections that are off."""

    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: ProtectionsConfig = ProtectionsConfig()

    def problems(self) -> Problems:
        """Yield what upstream refuses."""
        for path, written, known in (
            ("extraEnabled", self.extra_enabled, set(Protection) - DEFAULT_PROTECTIONS),
            ("defaultDisabled", self.default_disabled, DEFAULT_PROTECTIONS),
        ):
            yield from among(path, written, sorted(known))
            if len(set(written)) < len(written):
                yield InvalidInput(path, "has an entry twice", "remove one of them")
        if Protection.PVC in self.extra_enabled and "" in self.storage_classes:
            path = "config.PodsWithPVC.protectedStorageClasses"
            yield InvalidInput(path, "has an entry without a name", "name a StorageClass")

    @property
    def storage_classes(self) -> frozenset[str]:
        """With `Protection.PVC`, the classes whose claims protect a pod; empty for all."""
        return frozenset(each.name for each in self.config.pods_with_pvc.protected_storage_classes)


class DefaultEvictor(Args, frozen=True):
    """The arguments of DefaultEvictor: which pods may be evicted.

    Attributes:
        node_selector: the nodes that ``nodeFit`` tries; the policy's own selector does not count.
        label_selector: pods that may be evicted.
        namespace_label_selector: labels of the namespaces whose pods may be evicted.
        priority_threshold: pods of this priority or above stay.
        node_fit: only pods that fit on another node are evicted.
        min_replicas: pods of an owner with fewer pods stay; 0 and 1 mean no such bound.
        min_pod_age_s: pods that have run for less stay, in seconds; None for no such bound.
        no_eviction_policy: the effect of the annotation ``prefer-no-eviction``.
        pod_protections: kinds of pods that stay; the fields below are its deprecated form.
    """

    NAME: ClassVar[str] = "DefaultEvictor"

    node_selector: TextSelector = EVERYTHING
    label_selector: LabelSelector = EVERYTHING
    namespace_label_selector: LabelSelector = EVERYTHING
    priority_threshold: Priority = SYSTEM_CRITICAL
    node_fit: bool = False
    min_replicas: UInt = 0
    min_pod_age_s: Seconds | None = msgspec.field(default=None, name="minPodAge")
    no_eviction_policy: NoEviction | None = None
    pod_protections: PodProtections = PodProtections()
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False

    @property
    def protections(self) -> frozenset[Protection]:
        """The kinds of pods that stay: `getEffectivePodProtections`."""
        written = self.pod_protections
        if written.extra_enabled or written.default_disabled:
            kept = DEFAULT_PROTECTIONS - set(map(Protection, written.default_disabled))
            return kept | set(map(Protection, written.extra_enabled))
        off = {
            Protection.LOCAL_STORAGE: self.evict_local_storage_pods,
            Protection.DAEMON_SET: self.evict_daemon_set_pods,
            Protection.SYSTEM_CRITICAL: self.evict_system_critical_pods,
            Protection.FAILED_BARE: self.evict_failed_bare_pods,
        }
        on = {
            Protection.PVC: self.ignore_pvc_pods,
            Protection.WITHOUT_PDB: self.ignore_pods_without_pdb,
        }
        kept = DEFAULT_PROTECTIONS - {each for each, is_off in off.items() if is_off}
        return kept | {each for each, is_on in on.items() if is_on}

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        written = self.pod_protections
        if not written.extra_enabled and not written.default_disabled:
            return
        if deprecated := next(self._deprecated(), None):
            remedy = "write podProtections alone"
            yield InvalidInput(deprecated, "is given beside podProtections", remedy)
        for each in written.problems():
            yield each.under("podProtections")

    def warnings(self) -> Problems:
        """Yield accepted fields that have no effect."""
        if self.min_replicas == 1:
            yield InvalidInput("minReplicas", "1 has no effect", "write 2 or more")
        if self.node_fit and self.node_selector is NOTHING:
            problem = "is not a selector, so no pod fits on any node, and none is evicted"
            yield InvalidInput("nodeSelector", problem, "write e.g. zone in (a,b)")
        is_off = Protection.SYSTEM_CRITICAL not in self.protections
        if is_off and self.priority_threshold != SYSTEM_CRITICAL:
            problem = "has no effect while SystemCriticalPods is off"
            yield InvalidInput("priorityThreshold", problem, "protect SystemCriticalPods")

    def _deprecated(self) -> Iterator[str]:
        """Yield the names of the deprecated fields that are true."""
        for field in msgspec.structs.fields(self):
            if field.name.startswith(("evict_", "ignore_")) and getattr(self, field.name):
                yield field.encode_name


UNCONFIGURED = DefaultEvictor()
"""The evictor of a profile that does not configure one."""
