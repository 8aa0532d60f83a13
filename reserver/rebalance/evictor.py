"""Which pods may be evicted at all: DefaultEvictor, as upstream's decides.

`Evictor.allows` is its extension point Filter, `Evictor.confirms` PreEvictionFilter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reserver.cluster.columns import Bools
from reserver.cluster.labels import EVERYTHING
from reserver.cluster.pod import PodName
from reserver.rebalance.arguments import (
    SYSTEM_CRITICAL,
    DefaultEvictor,
    NoEviction,
    Protection,
)
from reserver.rebalance.inventory import (
    EVICT,
    PREFER_NO_EVICTION,
    SOURCE,
    Budget,
    Inventory,
    ListedPod,
)
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.view import View

_UNKNOWN, _NO, _YES = range(3)

_LEAST_REPLICAS = 2
"""``minReplicas`` below this is no bound."""


class Protections:
    """What keeps pods from being evicted, for one profile, whatever happens in a cycle.

    That is all of Filter but ``minReplicas``.
    """

    def __init__(self, args: DefaultEvictor, inventory: Inventory, now: float) -> None:
        """Judge the pods of an inventory at a moment in unix seconds."""
        self._args = args
        self._claim_classes = inventory.claim_classes
        self._budgets = _by_namespace(inventory.budgets)
        self._now = now

    def why(self, pod: ListedPod) -> str:
        """Return what protects a pod; empty for nothing."""
        if EVICT in pod.annotations:
            return ""  # Whatever its value, "false" as well.
        return next((why for why, protects in self._reasons(pod) if protects()), "")

    def _reasons(self, pod: ListedPod) -> Iterator[tuple[str, Callable[[], bool]]]:
        args = self._args
        if args.no_eviction_policy is NoEviction.MANDATORY:
            yield "it prefers no eviction", lambda: PREFER_NO_EVICTION in pod.annotations
        yield "it is a mirror pod", lambda: pod.pod.is_mirror
        yield "it is a static pod", lambda: pod.annotations.get(SOURCE, "api") != "api"
        yield "it is being deleted", lambda: pod.pod.terminating
        yield from self._protections(pod)
        yield "the labelSelector leaves it out", lambda: not _matches(args, pod)
        if args.min_pod_age_s is not None:
            yield "it is younger than minPodAge", lambda: self._is_young(pod)

    def _protections(self, pod: ListedPod) -> Iterator[tuple[str, Callable[[], bool]]]:
        on = self._args.protections
        if Protection.SYSTEM_CRITICAL in on:
            bound = min(self._args.priority_threshold, SYSTEM_CRITICAL)
            yield "its priority is too high", lambda: _is_at_least(pod, bound)
        keeps_failed = Protection.FAILED_BARE in on
        yield (
            "it has no owner",
            lambda: not pod.owners and (keeps_failed or pod.phase != "Failed"),
        )
        if Protection.LOCAL_STORAGE in on:
            yield "it has local storage", lambda: pod.has_local_storage
        if Protection.DAEMON_SET in on:
            yield "a DaemonSet owns it", lambda: any(o.kind == "DaemonSet" for o in pod.owners)
        if Protection.PVC in on:
            yield "it has a PersistentVolumeClaim", lambda: self._has_protected_claim(pod)
        if Protection.WITHOUT_PDB in on:
            yield "it has no PodDisruptionBudget", lambda: not self._is_covered(pod)
        if Protection.RESOURCE_CLAIMS in on:
            yield "it has ResourceClaims", lambda: pod.has_resource_claims

    def _has_protected_claim(self, pod: ListedPod) -> bool:
        protected = self._args.protected_storage_classes
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


class Evictor:
    """Which pods of a view may be evicted now, for one profile.

    Attributes:
        fit: where pods would fit.
    """

    def __init__(self, args: DefaultEvictor, view: View, fit: NodeFit, now: float) -> None:
        """Judge the pods of a view at a moment in unix seconds."""
        self._args = args
        self._view = view
        self.fit = fit
        self._protections = Protections(args, view.inventory, now)
        self._known = bytearray(len(view.pods))
        self._candidates: Bools = view.ready & view.topology.labels.matching(args.node_selector)
        self._namespaces = self._open_namespaces()

    def allows(self, pod: int) -> bool:
        """Return whether nothing protects a pod."""
        known = self._known[pod]
        if known == _UNKNOWN:
            why = self._protections.why(self._view.pods[pod])
            known = self._known[pod] = _NO if why else _YES
        return known == _YES and self._has_replicas(pod)

    def confirms(self, pod: int) -> bool:
        """Return whether a pod fits elsewhere, if that is asked for, and its namespace is open."""
        if self._args.node_fit and not self.fit.fits_elsewhere(pod, self._candidates):
            return False
        return self._namespaces is None or bool(self._namespaces[pod])

    def passes(self, pod: int) -> bool:
        """Return whether a pod may be evicted now."""
        return self.allows(pod) and self.confirms(pod)

    def _has_replicas(self, pod: int) -> bool:
        listed, least = self._view.pods[pod], self._args.min_replicas
        if least < _LEAST_REPLICAS or EVICT in listed.annotations or len(listed.owners) != 1:
            return True
        return self._view.owned[listed.owners[0].uid] >= least

    def _open_namespaces(self) -> Bools | None:
        """Return, for each pod, whether its namespace has the labels asked for; None if any do."""
        selector, known = self._args.namespace_label_selector, self._view.inventory.namespaces
        if selector == EVERYTHING:
            return None
        return self._view.namespaces.where(
            lambda name: name in known and selector.matches(known[name])
        )


def _is_at_least(pod: ListedPod, priority: int) -> bool:
    return pod.priority is not None and pod.priority >= priority


def _matches(args: DefaultEvictor, pod: ListedPod) -> bool:
    return args.label_selector.matches(pod.pod.labels)


def _by_namespace(budgets: tuple[Budget, ...]) -> dict[str, list[Budget]]:
    found: dict[str, list[Budget]] = {}
    for budget in budgets:
        found.setdefault(budget.name.namespace, []).append(budget)
    return found
