"""The ProvisioningRequests of Reserver's class that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import Condition, ResourceMetadata
from reserver.provisioning.codec import RequestObject, read_object
from reserver.provisioning.model import ConditionReason, ProvisioningRequest
from reserver.reservations.reservation import Ref

MOST_REQUESTS = 1_000
"""Requests of one namespace that have not ended; others fail, unless they have begun."""


@dataclass(slots=True)
class KnownRequest:
    """A ProvisioningRequest as it was last read.

    Attributes:
        metadata: of the object; its resourceVersion is the precondition of a write.
        request: what it asks for, and what is said of it.
    """

    metadata: ResourceMetadata
    request: ProvisioningRequest
    conditions: tuple[Condition, ...]


class KnownRequests:
    """All requests, by name and by Reservation, and those that went and may leave Reservations."""

    def __init__(self, touched: Callable[[PodName], None]) -> None:
        """Begin with none; `touched` is called with each that is written or gone."""
        self._touched = touched
        self._known: dict[PodName, KnownRequest] = {}
        self._gone: dict[PodName, list[ProvisioningRequest]] = {}
        self._of: dict[Ref, PodName] = {}
        self._open: dict[str, int] = {}

    def __iter__(self) -> Iterator[KnownRequest]:
        """Yield each of them."""
        yield from self._known.values()

    def get(self, name: PodName) -> KnownRequest | None:
        """Return a request; None if there is none."""
        return self._known.get(name)

    def names(self) -> tuple[PodName, ...]:
        """Return namespace and name of those that are known."""
        return tuple(self._known)

    def of(self, ref: Ref) -> PodName | None:
        """Return whose Reservation is, or is to be, at a ref; None if nobody's."""
        return self._of.get(ref)

    def put(self, item: RequestObject) -> None:
        """Take a ProvisioningRequest as it is now, if it is of Reserver's class."""
        name, metadata = item.name, item.metadata
        before = self._known.get(name)
        if before is not None and before.metadata.uid != metadata.uid:
            self.drop(name)
            before = None
        if not item.is_ours or (before and metadata.revision < before.metadata.revision):
            return  # It is somebody else's, or the answer to our own write was faster.
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

    def drop(self, name: PodName) -> None:
        """Note that a request is gone; what it left is to be released."""
        known = self._known.pop(name, None)
        if known is not None:
            self._forget(known)
            self._gone.setdefault(name, []).append(known.request)
            self._touched(name)

    def gone(self, name: PodName) -> tuple[ProvisioningRequest, ...]:
        """Return the requests of a name that went."""
        return tuple(self._gone.get(name, ()))

    def released(self, name: PodName) -> None:
        """Note that nothing is left of the requests of a name that went."""
        self._gone.pop(name, None)

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
    """Return where the Reservations of a request are, or are to be, written."""
    return tuple(Ref.of_object(request.name.namespace, name) for name in request.reservations())
