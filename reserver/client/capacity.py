"""The calls of CapacityService: capacity, quotas and accounts, what-if checks, pending pods."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from google.protobuf import json_format

from reserver.client import messages
from reserver.client.connection import Connection
from reserver.client.values import PlacedSlots, ResourceAmounts, Spec
from reserver.stores.codec.spec_message import whole
from reserver.v1 import capacity_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceStub


class NodeCapacity(NamedTuple):
    """The capacity of a node.

    Attributes:
        node: the name of the node.
        resources: the amounts by resource.
        fits: the number of slots that fit; 0 if the request has no slot.
    """

    node: str
    resources: Mapping[str, ResourceAmounts]
    fits: int


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """The quota of a namespace, and its usage.

    Attributes:
        namespace: the namespace; empty for the ceiling on all tenants together.
        name: the name of the quota; ``default`` if the namespace has none of its own.
        hard: the limits of ``reservations`` and each ``held.RESOURCE``, as quantities.
        used: the usage of each limit.
        pending: the number of reservations of the namespace that exceed its quotas.
        max_ttl: the longest lifetime from the creation; None for any.
        forbids_node_names: whether reservations must not name a node.
        forbids_firm_holds: whether reservations must be preemptible.
    """

    namespace: str
    name: str
    hard: Mapping[str, str]
    used: Mapping[str, str]
    pending: int
    max_ttl: timedelta | None
    forbids_node_names: bool
    forbids_firm_holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldAccount:
    """A resource held for an owner in a week, in amounts times hours.

    Amounts are cores, bytes or pieces; ``_others`` sums namespaces and owners beyond the bounds.

    Attributes:
        week: the start of the week, a Monday 00:00 UTC.
        namespace: the namespace of the owner.
        owner: the owner, in words.
        resource: the name of the resource.
        held: the held amount.
        claimed: the part in claimed slots.
        used: the requests of the pods with claimed slots.
        unused: the held part that no pod used.
        cost: the cost of `held`; None if the resource has no price.
        unused_cost: the cost of `unused`; None if the resource has no price.
        currency: the currency of the costs; empty if the configuration names none.
    """

    week: datetime
    namespace: str
    owner: str
    resource: str
    held: float
    claimed: float
    used: float
    unused: float
    cost: float | None
    unused_cost: float | None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A reservation of a set that does not fit.

    Attributes:
        index: the index of the reservation in the set.
        message: the missing room.
        never: whether it would not fit on an empty node either.
    """

    index: int
    message: str
    never: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a what-if check of a set.

    Attributes:
        fits: whether the whole set fits at this instant.
        shortages: the reservations that do not fit.
        placements: the nodes of each reservation, in their order; empty for one without room.
    """

    fits: bool
    shortages: tuple[Shortage, ...]
    placements: tuple[tuple[PlacedSlots, ...], ...]


class Capacity:
    """The calls about capacity, which change nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub: Any = CapacityServiceStub(connection.channel)

    async def nodes(
        self, names: Sequence[str] = (), slot: Mapping[str, str] | None = None
    ) -> AsyncGenerator[NodeCapacity, None]:
        """Yield the capacity of nodes, ordered by name.

        Args:
            names: the nodes; empty for all. Names of absent nodes are ignored.
            slot: the resources of one slot, for `NodeCapacity.fits`.

        Raises:
            CallFailed: the call failed.
        """
        request = pb.ListNodesRequest(node_names=names, slot=slot or {})
        async for page in self._connection.pages(self._stub.ListNodes, request):
            for node in page.nodes:
                yield messages.read(node, NodeCapacity)

    async def quotas(self, namespace: str = "") -> AsyncGenerator[NamespaceQuota, None]:
        """Yield the quotas of one or all namespaces with their usage, by namespace and name.

        Raises:
            CallFailed: the call failed.
        """
        request = pb.ListQuotasRequest(namespace=namespace)
        async for page in self._connection.pages(self._stub.ListQuotas, request):
            for each in page.quotas:
                yield messages.read(each, NamespaceQuota)

    async def accounts(
        self, namespace: str = "", *, since: datetime | None = None
    ) -> AsyncGenerator[HoldAccount, None]:
        """Yield the accounts of holds, ordered by week, namespace, owner and resource.

        Args:
            namespace: the namespace of the owners; empty for all.
            since: skips the weeks that ended by this time; None for all weeks.

        Raises:
            CallFailed: the call failed.
        """
        messages.check_zone(since, "since")
        request = pb.ListAccountsRequest(namespace=namespace, since=since)
        async for page in self._connection.pages(self._stub.ListAccounts, request):
            for each in page.accounts:
                yield replace(messages.read(each, HoldAccount), currency=page.currency)

    async def what_if(self, specs: Sequence[Spec], namespace: str = "") -> Verdict:
        """Return whether `create_set` would create a set in a namespace at this instant.

        Raises:
            CallFailed: the call failed, or a spec is invalid.
        """
        request = pb.WhatIfRequest(
            reservations=map(messages.write_spec, specs), namespace=namespace
        )
        answer = await self._connection.call(self._stub.WhatIf, request)
        return Verdict(
            answer.fits,
            tuple(messages.read(each, Shortage) for each in answer.shortages),
            tuple(
                tuple(messages.read(part, PlacedSlots) for part in each.parts)
                for each in answer.placements
            ),
        )

    async def dump(self) -> bytes:
        """Return the state of the answering process as JSON for a bug report, without secrets.

        Raises:
            CallFailed: the call failed.
        """
        answer: pb.DumpResponse = await self._connection.call(self._stub.Dump, pb.DumpRequest())
        return answer.document

    async def explain(self, namespace: str, pod: str) -> dict[str, Any]:
        """Return why a pod is pending, or its possible nodes, in the form of ``GET /explain``.

        Raises:
            CallFailed: ``NOT_FOUND`` if the pod is absent.
        """
        request = pb.ExplainRequest(pod_namespace=namespace, pod_name=pod)
        answer = await self._connection.call(self._stub.Explain, request)
        explanation: dict[str, Any] = whole(json_format.MessageToDict(answer.explanation))
        return explanation
