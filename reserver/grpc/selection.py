"""Filters and pages of lists of reservations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from reserver.base.pacer import Pacer
from reserver.cluster.labels import EVERYTHING, Requirement, Selector, equals
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import selectors
from reserver.reservations.owner import OwnerRule, Replaced
from reserver.v1 import reservation_pb2 as pb

_MOST_SELECTOR = 1024


@dataclass(frozen=True, slots=True)
class OwnerSelection:
    """A filter for owner entries; an entry must meet every given field.

    Attributes:
        pod: the pod that may claim; None for any.
        known: the same pod with its labels and controller; None if the pod does not exist.
        namespace: the namespace of the entry; empty for any.
        controller: the controller of the entry; `NO_CONTROLLER` for any.
        labels: labels that the selector of the entry must match; empty for any.
    """

    pod: PodName | None
    known: Pod | None
    namespace: str
    controller: Controller
    labels: Mapping[str, str]

    @property
    def is_any(self) -> bool:
        """Whether the filter is empty."""
        return not (self.pod or self.namespace or self.labels) and self.controller == NO_CONTROLLER

    def covers(self, rule: OwnerRule) -> bool:
        """Return whether the filter selects an owner entry."""
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


ANY_OWNER = OwnerSelection(None, None, "", NO_CONTROLLER, {})
"""The empty filter, which selects every owner entry."""


@dataclass(frozen=True, slots=True)
class ReservationSelector:
    """A filter for reservations; an empty field selects all.

    Attributes:
        node: a node with slots of the reservation.
        owner: the filter that some owner entry must meet.
        phases: the allowed phases.
        labels: the selector of its labels.
    """

    node: str
    owner: OwnerSelection
    phases: frozenset[int]
    labels: Selector = EVERYTHING

    @classmethod
    def of(cls, message: pb.ReservationFilter, pods: Mapping[PodName, Pod]) -> ReservationSelector:
        """Return the selector of a filter message; `pods` are the present pods.

        Raises:
            InvalidInput: an owner is not of the form NAMESPACE/POD, a controller lacks its kind or
                name, two namespaces differ, or the label selector is invalid.
        """
        pod = _pod(message.owner)
        controller = message.owner_controller
        if message.HasField("owner_controller") and not (controller.kind and controller.name):
            problem = "lacks kind or name"
            raise InvalidInput("filter.ownerController", problem, "give both kind and name")
        namespaces = {message.owner_namespace, controller.namespace} - {""}
        if len(namespaces) > 1:
            problem = f"{shorten(controller.namespace)!r} is not filter.ownerNamespace"
            raise InvalidInput("filter.ownerController.namespace", problem, "give one of them")
        owner = OwnerSelection(
            pod=pod,
            known=pods.get(pod) if pod else None,
            namespace=next(iter(namespaces), ""),
            controller=Controller(controller.kind, controller.name),
            labels=dict(message.owner_labels),
        )
        labels = _labels(message.label_selector)
        return cls(message.node, owner, frozenset(message.phases), labels)

    def covers(self, reservation: pb.Reservation) -> bool:
        """Return whether the filter selects a reservation."""
        if self.node and self.node not in {p.node for p in reservation.status.placements}:
            return False
        if self.phases and reservation.status.phase not in self.phases:
            return False
        if not self.labels.matches(reservation.labels):
            return False
        if self.owner.is_any:
            return True
        home = reservation.id.partition("/")[0]
        if reservation.status.phase == pb.PHASE_INVALID:  # Its owners cannot be read.
            return self.owner == replace(ANY_OWNER, namespace=home)
        rules = (_owner_rule(owner, home) for owner in reservation.spec.owners)
        return any(map(self.owner.covers, rules))


def _owner_rule(owner: pb.Owner, home: str) -> OwnerRule:
    """Return the rule of an owner message; `home` is the namespace of its reservation."""
    selector, controller = owner.selector, owner.controller
    named = (each.namespace for each in (owner.pod, controller, selector) if each.namespace)
    expressions = (
        Requirement(each.key, each.operator, frozenset(each.values))
        for each in selector.match_expressions
    )
    return OwnerRule(
        namespace=next(named, home),
        pod=owner.pod.name,
        controller=Controller(controller.kind, controller.name),
        selector=Selector((*equals(selector.match_labels).requirements, *expressions)),
        replaces=Replaced(owner.replaces.uid, frozenset(owner.replaces.existing)),
    )


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

PAGE_BYTES = 2**20
"""Most bytes of a page with several items: clients receive 4 MiB by default, and the message is
encoded in one step."""

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class PageRequest(Protocol):
    """A request for a page of a list."""

    page_size: int
    page_token: str


@dataclass(frozen=True, slots=True)
class PageToken:
    """The page of a request.

    Attributes:
        after: the name of the last item before the page; empty for the first page.
        size: the most items of the page.
    """

    after: str
    size: int

    @classmethod
    def of(cls, request: PageRequest) -> PageToken:
        """Return the page of a request.

        Raises:
            InvalidInput: the size is negative.
        """
        if request.page_size < 0:
            raise InvalidInput("pageSize", f"{request.page_size} is negative", "write 0 or more")
        return cls(request.page_token, min(request.page_size or DEFAULT_PAGE, MOST_IN_PAGE))

    async def read(
        self, named: Iterable[tuple[str, T]], show: Callable[[T], M | None], pacer: Pacer
    ) -> tuple[list[M], str]:
        """Return the page, and the token of the next page; empty on the last.

        Args:
            named: all items, each with its unique name.
            show: returns the message of an item; None to leave the item out.
            pacer: yields to other work between two items.
        """
        page: list[M] = []
        size, last = 0, ""
        for name, item in sorted((e for e in named if e[0] > self.after), key=itemgetter(0)):
            await pacer.give_way()
            message = show(item)
            if message is None:
                continue
            size += message.ByteSize()
            if page and (len(page) == self.size or size > PAGE_BYTES):
                return page, last
            page.append(message)
            last = name
        return page, ""
