"""The ``args`` of DefaultEvictor as they are written, checked as upstream checks them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from reserver.cluster.labels import NOTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments import evictor as values
from reserver.rebalance.arguments.evictor import Protection
from reserver.wire.k8s import labelselector
from reserver.wire.limits import Int32
from reserver.wire.rebalance.parts import (
    Args,
    LabelSelector,
    Part,
    Problems,
    UInt,
    among,
    duration,
    duration_problems,
    selector,
    selector_problems,
)

PriorityClasses = Callable[[str], int | None]
"""The value of a PriorityClass by its name; None if there is no such class."""


class _PriorityThreshold(Part):
    value: Int32 | None = None
    name: str = ""


class _StorageClass(Part):
    name: str = ""


class _PodsWithPVC(Part):
    protected_storage_classes: tuple[_StorageClass, ...] = ()


class _ProtectionsConfig(Part):
    pods_with_pvc: _PodsWithPVC | None = msgspec.field(default=None, name="PodsWithPVC")


class _Protections(Part):
    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: _ProtectionsConfig | None = None


class DefaultEvictor(Args):
    """Arguments of DefaultEvictor."""

    node_selector: str = ""
    label_selector: LabelSelector | None = None
    namespace_label_selector: LabelSelector | None = None
    priority_threshold: _PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: UInt = 0
    min_pod_age: str | None = None
    no_eviction_policy: str = ""
    pod_protections: _Protections = msgspec.field(default_factory=_Protections)
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False

    def malformed(self) -> Problems:
        yield from duration_problems("minPodAge", self.min_pod_age)

    def problems(self) -> Problems:
        threshold = self.priority_threshold
        if threshold and threshold.value is not None and threshold.name:
            problem = f"has value {threshold.value} and name {shorten(repr(threshold.name))}"
            yield InvalidInput("priorityThreshold", problem, "write one of them")
        yield from among(
            "noEvictionPolicy", filter(None, [self.no_eviction_policy]), values.NoEviction
        )
        yield from self._protection_problems()
        yield from selector_problems("labelSelector", self.label_selector)
        yield from selector_problems("namespaceLabelSelector", self.namespace_label_selector)

    def warnings(self) -> Problems:
        if self.min_replicas == 1:
            yield InvalidInput("minReplicas", "1 has no effect", "write 2 or more")
        try:
            labelselector.parse(self.node_selector)
        except InvalidInput as exc:
            problem = f"{exc.problem}, so no pod fits on any node, and none is evicted"
            if self.node_fit:
                yield InvalidInput("nodeSelector", problem, exc.remedy)
        is_off = Protection.SYSTEM_CRITICAL not in self._protections()
        if is_off and self.priority_threshold is not None:
            problem = "has no effect while SystemCriticalPods is off"
            yield InvalidInput("priorityThreshold", problem, "protect SystemCriticalPods")

    def _protection_problems(self) -> Problems:
        extra, disabled = self.pod_protections.extra_enabled, self.pod_protections.default_disabled
        if not extra and not disabled:
            return
        if self._deprecated:
            remedy = "write podProtections alone"
            yield InvalidInput(self._deprecated[0], "is given beside podProtections", remedy)
        for name, written, known in (
            ("extraEnabled", extra, set(Protection) - values.DEFAULT_PROTECTIONS),
            ("defaultDisabled", disabled, values.DEFAULT_PROTECTIONS),
        ):
            path = f"podProtections.{name}"
            yield from among(path, written, sorted(known))
            if len(set(written)) < len(written):
                yield InvalidInput(path, "has an entry twice", "remove one of them")
        if Protection.PVC in extra and "" in self._storage_classes:
            path = "podProtections.config.PodsWithPVC.protectedStorageClasses"
            yield InvalidInput(path, "has an entry without a name", "name a StorageClass")

    @property
    def _storage_classes(self) -> list[str]:
        config = self.pod_protections.config
        claims = config.pods_with_pvc if config else None
        return [each.name for each in claims.protected_storage_classes] if claims else []

    @property
    def _deprecated(self) -> list[str]:
        """The deprecated fields that are true."""
        fields = {
            "evictLocalStoragePods": self.evict_local_storage_pods,
            "evictDaemonSetPods": self.evict_daemon_set_pods,
            "evictSystemCriticalPods": self.evict_system_critical_pods,
            "ignorePvcPods": self.ignore_pvc_pods,
            "ignorePodsWithoutPDB": self.ignore_pods_without_pdb,
            "evictFailedBarePods": self.evict_failed_bare_pods,
        }
        return [name for name, is_set in fields.items() if is_set]

    def resolved(self, classes: PriorityClasses) -> values.DefaultEvictor:
        """Return what the evictor works with; only if there are no problems."""
        policy = self.no_eviction_policy
        return values.DefaultEvictor(
            priority_threshold=self.threshold(classes),
            node_selector=_text_selector(self.node_selector),
            label_selector=selector(self.label_selector),
            namespace_label_selector=selector(self.namespace_label_selector),
            node_fit=self.node_fit,
            min_replicas=self.min_replicas,
            min_pod_age_s=None if self.min_pod_age is None else duration(self.min_pod_age),
            no_eviction_policy=values.NoEviction(policy) if policy else None,
            protections=self._protections(),
            protected_storage_classes=frozenset(self._storage_classes),
        )

    def _protections(self) -> frozenset[Protection]:
        """Return what is protected: `getEffectivePodProtections`."""
        written = self.pod_protections
        if written.extra_enabled or written.default_disabled:
            kept = values.DEFAULT_PROTECTIONS - set(map(Protection, written.default_disabled))
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
        kept = values.DEFAULT_PROTECTIONS - {each for each, is_off in off.items() if is_off}
        return kept | {each for each, is_on in on.items() if is_on}

    def threshold(self, classes: PriorityClasses) -> int:
        """Return the priority from which pods stay.

        Raises:
            InvalidInput: there is no such PriorityClass, or the priority is that of system pods.
        """
        written = self.priority_threshold or _PriorityThreshold()
        priority: int | None = values.SYSTEM_CRITICAL
        if written.value is not None:
            priority = written.value
        elif written.name:
            priority = classes(written.name)
        if priority is None:
            problem = f"there is no PriorityClass {shorten(repr(written.name))}"
            raise InvalidInput("priorityThreshold.name", problem, "write the name of one, or value")
        if priority > values.SYSTEM_CRITICAL:
            problem = f"{priority} is above {values.SYSTEM_CRITICAL}, where system pods begin"
            raise InvalidInput("priorityThreshold", problem, "write a lower one")
        return priority


def _text_selector(text: str) -> Selector:
    """Return the nodes that a text selects; upstream finds none if it is no selector."""
    try:
        return labelselector.parse(text)
    except InvalidInput:
        return NOTHING
