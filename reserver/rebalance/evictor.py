"""DefaultEvictor: which pods may be evicted at all, by upstream's rules.

`Evictor.allows` is its extension point Filter, `Evictor.confirms` PreEvictionFilter.
"""

from __future__ import annotations

from reserver.cluster.budgets import Budget
from reserver.cluster.categorical import Bools
from reserver.cluster.labels import EVERYTHING
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.move_windows import parse
from reserver.k8s.objects.times import show_moment
from reserver.moves.windows import judge
from reserver.rebalance.arguments.evictor import (
    DEFAULT_PROTECTIONS,
    SYSTEM_CRITICAL,
    DefaultEvictor,
    NoEviction,
    Protection,
)
from reserver.rebalance.cluster_state import (
    EVICT,
    EVICTION_IN_PROGRESS,
    PREFER_NO_EVICTION,
    SOURCE,
    ClusterState,
    ListedPod,
)
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.pod_index import PodIndex

_LEAST_REPLICAS = 2
"""``minReplicas`` below this is no bound."""


class Protections:
    """The protections of pods from eviction that do not change during a cycle, for one profile.

    These are all rules of upstream's Filter but ``minReplicas``.
    """

    def __init__(self, args: DefaultEvictor, cluster: ClusterState, now: float) -> None:
        """Judge the pods of a cluster at a moment in unix seconds."""
        self._args = args
        self._on = args.protections
        self._has_extra = not args.protections <= DEFAULT_PROTECTIONS
        critical = Protection.SYSTEM_CRITICAL in args.protections
        self._bound = min(args.priority_threshold, SYSTEM_CRITICAL) if critical else None
        self._claim_classes = cluster.claim_classes
        self._budgets = _by_namespace(cluster.budgets)
        self._move_windows = cluster.move_windows
        self._now = now

    def why(self, pod: ListedPod) -> str:
        """Return what protects a pod; empty for nothing."""
        if EVICTION_IN_PROGRESS in pod.annotations:
            return "it is being moved already, in the background"
        if EVICT in pod.annotations:
            return ""  # Whatever its value, "false" as well.
        why = self._why_never(pod) or self._why_protected(pod) or self._why_not_asked(pod)
        return why or self._why_closed(pod)

    def _why_never(self, pod: ListedPod) -> str:
        mandatory = self._args.no_eviction_policy is NoEviction.MANDATORY
        if mandatory and PREFER_NO_EVICTION in pod.annotations:
            return "it prefers no eviction"
        if pod.pod.is_mirror:
            return "it is a mirror pod"
        if pod.annotations.get(SOURCE, "api") != "api":
            return "it is a static pod"
        return "it is being deleted" if pod.pod.terminating else ""

    def _why_protected(self, pod: ListedPod) -> str:
        on = self._on
        if self._bound is not None and pod.priority is not None and pod.priority >= self._bound:
            return "its priority is too high"
        if not pod.owners and (Protection.FAILED_BARE in on or pod.phase != "Failed"):
            return "it has no ownerReferences, so nothing would replace it"
        if pod.has_local_storage and Protection.LOCAL_STORAGE in on:
            return "it has local storage"
        if Protection.DAEMON_SET in on and any(own.kind == "DaemonSet" for own in pod.owners):
            return "a DaemonSet controls it"
        return self._why_extra(pod) if self._has_extra else ""

    def _why_extra(self, pod: ListedPod) -> str:
        on = self._on
        if Protection.PVC in on and self._has_protected_claim(pod):
            return "it has a PersistentVolumeClaim"
        if Protection.WITHOUT_PDB in on and not self._is_covered(pod):
            return "it has no PodDisruptionBudget"
        if Protection.RESOURCE_CLAIMS in on and pod.has_resource_claims:
            return "it has ResourceClaims"
        return ""

    def _why_not_asked(self, pod: ListedPod) -> str:
        selector = self._args.label_selector
        if selector is not EVERYTHING and not selector.matches(pod.pod.labels):
            return "the labelSelector leaves it out"
        young = self._args.min_pod_age_s is not None and self._is_young(pod)
        return "it is younger than minPodAge" if young else ""

    def _why_closed(self, pod: ListedPod) -> str:
        """Return why annotations keep a pod from being moved now; empty if they do not."""
        annotated = self._move_windows.get(pod.name.namespace, "")
        for whose, text in (("its", pod.pod.move_window), ("its namespace's", annotated)):
            if text and (opens := self._opens(text)):
                return f"{whose} move window {opens}"
        return ""

    def _opens(self, text: str) -> str:
        try:
            opens_at = judge(((parse(text),),), self._now).opens_at
        except InvalidInput as exc:
            return f"cannot be read: {exc.problem}"
        return f"opens at {show_moment(opens_at)}" if opens_at else ""

    def _has_protected_claim(self, pod: ListedPod) -> bool:
        protected = self._args.pod_protections.storage_classes
        if not protected:
            return bool(pod.claims)
        known = self._claim_classes
        classes = [known.get(PodName(pod.name.namespace, claim), "") for claim in pod.claims]
        return any(not name or name in protected for name in classes)

    def _is_covered(self, pod: ListedPod) -> bool:
        budgets = self._budgets.get(pod.name.namespace, ())
        return any(budget.selector.matches(pod.pod.labels) for budget in budgets)

    def _is_young(self, pod: ListedPod) -> bool:
        least = self._args.min_pod_age_s or 0.0
        return pod.started is None or self._now - pod.started < least


class Filter:
    """Finds the unprotected pods of an index, for one profile, without ``nodeFit``."""

    def __init__(self, args: DefaultEvictor, index: PodIndex, now: float) -> None:
        """Judge the pods of an index at a moment in unix seconds."""
        self._args = args
        self._index = index
        self._protections = Protections(args, index.cluster, now)
        self._known: list[str | None] = [None] * len(index.pods)
        self._namespaces = self._open_namespaces()

    def allows(self, pod: int) -> bool:
        """Return whether nothing protects a pod."""
        return not self._protection(pod) and self._has_replicas(pod)

    def is_open(self, pod: int) -> bool:
        """Return whether pods may be evicted from a pod's namespace."""
        return self._namespaces is None or bool(self._namespaces[pod])

    def why(self, pod: int) -> str:
        """Return what protects a pod; empty for nothing."""
        if protection := self._protection(pod):
            return protection
        if not self._has_replicas(pod):
            return "its owner has fewer pods than minReplicas"
        return "" if self.is_open(pod) else "the namespaceLabelSelector leaves it out"

    def _protection(self, pod: int) -> str:
        known = self._known[pod]
        if known is None:
            known = self._known[pod] = self._protections.why(self._index.pods[pod])
        return known

    def _has_replicas(self, pod: int) -> bool:
        listed, least = self._index.pods[pod], self._args.min_replicas
        if least < _LEAST_REPLICAS or EVICT in listed.annotations or len(listed.owners) != 1:
            return True
        return self._index.owned[listed.owners[0].uid] >= least

    def _open_namespaces(self) -> Bools | None:
        """Return, for each pod, whether its namespace has the labels asked for; None if any do."""
        selector, known = self._args.namespace_label_selector, self._index.cluster.namespaces
        if selector == EVERYTHING:
            return None
        return self._index.namespaces.where(
            lambda name: name in known and selector.matches(known[name])
        )


class Evictor(Filter):
    """Finds the pods of an index that may be evicted now, for one profile.

    Attributes:
        fit: returns the nodes that pods fit on.
    """

    def __init__(self, args: DefaultEvictor, index: PodIndex, fit: NodeFit, now: float) -> None:
        """Judge the pods of an index at a moment in unix seconds."""
        super().__init__(args, index, now)
        self.fit = fit
        self._candidates: Bools = index.ready & index.topology.labels.matching(args.node_selector)

    def confirms(self, pod: int) -> bool:
        """Return whether a pod fits elsewhere, if that is asked for, and its namespace is open."""
        if self._args.node_fit and not self.fit.fits_elsewhere(pod, self._candidates):
            return False
        return self.is_open(pod)

    def passes(self, pod: int) -> bool:
        """Return whether a pod may be evicted now."""
        return self.allows(pod) and self.confirms(pod)


def _by_namespace(budgets: tuple[Budget, ...]) -> dict[str, list[Budget]]:
    found: dict[str, list[Budget]] = {}
    for budget in budgets:
        found.setdefault(budget.name.namespace, []).append(budget)
    return found
