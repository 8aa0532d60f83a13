"""Caches the ProvisioningRequests of Reserver's class."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace

from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import Condition, ResourceMetadata
from reserver.provisioning.codec import RequestObject, read_object
from reserver.provisioning.model import ConditionReason, PodSet, ProvisioningRequest
from reserver.reservations.reservation import Ref

MOST_REQUESTS = 1_000
"""Most open requests of one namespace; others fail, unless they have begun."""

_ENDED = PodSet("", 0)
"""Stands for each podSet of an ended request: its number gives the names of Reservations."""


@dataclass(slots=True)
class KnownRequest:
    """A ProvisioningRequest as it was last read.

    Attributes:
        metadata: the object's metadata; its resourceVersion is the precondition of a write.
        request: its spec and conditions.
        conditions: all conditions of its status, other clients' included.
    """

    metadata: ResourceMetadata
    request: ProvisioningRequest
    conditions: tuple[Condition, ...]


class KnownRequests:
    """All requests, by name and by Reservation, and deleted requests with Reservations left."""

    def __init__(self, touched: Callable[[PodName], None]) -> None:
        """Begin without requests; `touched` is called with each that is written or deleted."""
        self._touched = touched
        self._known: dict[PodName, KnownRequest] = {}
        self._gone: dict[PodName, list[ProvisioningRequest]] = {}
        self._of: dict[Ref, PodName] = {}
        self._open: dict[str, int] = {}

    def __iter__(self) -> Iterator[KnownRequest]:
        """Yield each request."""
        yield from self._known.values()

    def get(self, name: PodName) -> KnownRequest | None:
        """Return a request; None without one."""
        return self._known.get(name)

    def names(self) -> tuple[PodName, ...]:
        """Return namespace and name of all requests."""
        return tuple(self._known)

    def of(self, ref: Ref) -> PodName | None:
        """Return the request of the Reservation at a ref, written or not; None without one."""
        return self._of.get(ref)

    def put(self, item: RequestObject) -> None:
        """Store a new version of a ProvisioningRequest of Reserver's class."""
        name, metadata = item.name, item.metadata
        before = self._known.get(name)
        if before is not None and before.metadata.uid != metadata.uid:
            self.drop(name)
            before = None
        if not item.is_ours or (before and metadata.revision < before.metadata.revision):
            return  # Of another class, or older than the response to our write.
        request = read_object(item)
        has_begun = request.said or (before is not None and not before.request.problem)
        if not has_begun and self._is_full(name.namespace):
            problem = f"{MOST_REQUESTS} of this namespace are open already; delete some"
            request = replace(request, problem=problem, reason=ConditionReason.TOO_MANY_REQUESTS)
        self._forget(before)
        self._known[name] = KnownRequest(metadata, request, item.conditions())
        self._of.update(dict.fromkeys(refs(request), name))
        self._count(request, 1)
        self._touched(name)

    def answered(self, known: KnownRequest, item: RequestObject) -> None:
        """Store the response to a write, unless the watch has shown a later state, or the end."""
        if self._known.get(item.name) is known:
            self.put(item)

    def ended(self, known: KnownRequest) -> None:
        """Keep little of an ended request without Reservations: a namespace may have thousands."""
        self._forget(known)
        over = replace(known.request, pod_sets=(_ENDED,) * len(known.request.pod_sets))
        self._known[over.name] = KnownRequest(known.metadata, over, ())

    def drop(self, name: PodName) -> None:
        """Move a deleted request to those whose Reservations have to be released."""
        known = self._known.pop(name, None)
        if known is not None:
            self._forget(known)
            self._gone.setdefault(name, []).append(known.request)
            self._touched(name)

    def gone(self, name: PodName) -> tuple[ProvisioningRequest, ...]:
        """Return the deleted requests of a name."""
        return tuple(self._gone.get(name, ()))

    def released(self, name: PodName, requests: Container[ProvisioningRequest]) -> None:
        """Forget deleted requests of a name, as nothing is left of them."""
        left = [each for each in self._gone.pop(name, ()) if each not in requests]
        if left:
            self._gone[name] = left

    def _is_full(self, namespace: str) -> bool:
        return self._open.get(namespace, 0) >= MOST_REQUESTS

    def _forget(self, known: KnownRequest | None) -> None:
        if known is not None:
            self._count(known.request, -1)
            for ref in refs(known.request):
                self._of.pop(ref, None)

    def _count(self, request: ProvisioningRequest, more: int) -> None:
        if request.has_ended:
            return
        namespace = request.name.namespace
        self._open[namespace] = self._open.get(namespace, 0) + more
        if not self._open[namespace]:
            del self._open[namespace]


def refs(request: ProvisioningRequest) -> tuple[Ref, ...]:
    """Return the refs of a request's Reservations, written or not."""
    return tuple(Ref.of_object(request.name.namespace, name) for name in request.reservations())
