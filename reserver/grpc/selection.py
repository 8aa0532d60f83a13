"""Filters and pages of lists: which reservations a client selects, and how many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.grpc import convert
from reserver.k8s.objects import selectors
from reserver.reservations.owner import OwnerRule
from reserver.v1 import reservation_pb2 as pb

_MOST_SELECTOR = 1024


@dataclass(frozen=True, slots=True)
class OwnerSelection:
    """Which owner entries a client selects; an entry must meet all that is given.

    Attributes:
        pod: who may claim; None for anybody.
        known: the same with its labels and its controller; None if there is no such pod.
        namespace: of the pods that the entry means; empty for any.
        controller: that it names; `NO_CONTROLLER` for any.
        labels: that its selector allows; empty for any.
    """

    pod: PodName | None
    known: Pod | None
    namespace: str
    controller: Controller
    labels: Mapping[str, str]

    @property
    def is_any(self) -> bool:
        """Whether nothing is said."""
        return not (self.pod or self.namespace or self.labels) and self.controller == NO_CONTROLLER

    def covers(self, rule: OwnerRule) -> bool:
        """Return whether an owner entry is meant."""
        return (
            self.namespace in {"", rule.namespace}
            and self.controller in {NO_CONTROLLER, rule.controller}
            and not (self.labels and rule.selector == EVERYTHING)
            and (not self.labels or rule.selector.matches(self.labels))
            and (self.pod is None or self._may_claim(self.pod, rule))
        )

    def _may_claim(self, pod: PodName, rule: OwnerRule) -> bool:
        if self.known is not None:
            return rule.matches(self.known)
        return rule == OwnerRule(namespace=pod.namespace, pod=pod.name)


NOBODY = OwnerSelection(None, None, "", NO_CONTROLLER, {})
"""Nothing is said of owners."""


@dataclass(frozen=True, slots=True)
class ReservationSelector:
    """The reservations that a client selects; an empty field selects all.

    Attributes:
        node: on which they hold.
        owner: who may claim them: what some entry says.
        phases: that they are in.
        labels: what their labels have to be.
    """

    node: str
    owner: OwnerSelection
    phases: frozenset[int]
    labels: Selector = EVERYTHING

    @classmethod
    def of(cls, wanted: pb.ReservationFilter, pods: Mapping[PodName, Pod]) -> ReservationSelector:
        """Return what a filter of the API means, of the pods that there are now.

        Raises:
            InvalidInput: an owner is not of the form NAMESPACE/POD, a controller lacks its kind or
                name, two namespaces are asked for, or the selector of labels is none.
        """
        pod = _pod(wanted.owner)
        controller = wanted.owner_controller
        if wanted.HasField("owner_controller") and not (controller.kind and controller.name):
            problem = "lacks kind or name"
            raise InvalidInput("filter.ownerController", problem, "give both kind and name")
        namespaces = {wanted.owner_namespace, controller.namespace} - {""}
        if len(namespaces) > 1:
            problem = f"{shorten(controller.namespace)!r} is not filter.ownerNamespace"
            raise InvalidInput("filter.ownerController.namespace", problem, "give one of them")
        owner = OwnerSelection(
            pod=pod,
            known=pods.get(pod) if pod else None,
            namespace=next(iter(namespaces), ""),
            controller=Controller(controller.kind, controller.name),
            labels=dict(wanted.owner_labels),
        )
        labels = _labels(wanted.label_selector)
        return cls(wanted.node, owner, frozenset(wanted.phases), labels)

    def covers(self, reservation: pb.Reservation) -> bool:
        """Return whether a reservation is meant."""
        if self.node and self.node not in {p.node for p in reservation.status.placements}:
            return False
        if self.phases and reservation.status.phase not in self.phases:
            return False
        if not self.labels.matches(reservation.labels):
            return False
        if self.owner.is_any:
            return True
        home = reservation.id.partition("/")[0]
        if reservation.status.phase == pb.PHASE_INVALID:  # Whose it would be cannot be read.
            return self.owner == replace(NOBODY, namespace=home)
        rules = (convert.owner_rule(owner, home) for owner in reservation.spec.owners)
        return any(map(self.owner.covers, rules))


def _labels(text: str) -> Selector:
    if len(text) > _MOST_SELECTOR:
        problem = f"{len(text)} characters are too many"
        raise InvalidInput("filter.labelSelector", problem, f"send {_MOST_SELECTOR} at most")
    with under("filter.labelSelector"):
        return selectors.parse_selector(text)


def _pod(text: str) -> PodName | None:
    namespace, _, name = text.partition("/")
    if text and not (namespace and name):
        problem = f"{shorten(text)!r} is not a pod"
        raise InvalidInput("filter.owner", problem, "write NAMESPACE/POD")
    return PodName(namespace, name) if text else None


DEFAULT_PAGE = 500
MOST_IN_PAGE = 1000

T = TypeVar("T")


class PageRequest(Protocol):
    """A request for a page."""

    page_size: int
    page_token: str


@dataclass(frozen=True, slots=True)
class PageToken:
    """The page that a client asks for.

    Attributes:
        after: the name before it; empty for the first.
        size: how many it may have.
    """

    after: str
    size: int

    @classmethod
    def of(cls, request: PageRequest) -> PageToken:
        """Return the page that a request is for.

        Raises:
            InvalidInput: its size is negative.
        """
        if request.page_size < 0:
            raise InvalidInput("pageSize", f"{request.page_size} is negative", "write 0 or more")
        return cls(request.page_token, min(request.page_size or DEFAULT_PAGE, MOST_IN_PAGE))

    def cut(self, items: Iterable[T], name: Callable[[T], str]) -> tuple[list[T], str]:
        """Return the items of the page, and the token of the next one, empty without one."""
        left = sorted((item for item in items if name(item) > self.after), key=name)
        page = left[: self.size]
        return page, name(page[-1]) if len(left) > self.size else ""
