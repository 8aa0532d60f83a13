"""The calls about capacity: what nodes have, what would fit, and why a pod waits."""

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
        node: its name.
        resources: by resource.
        fits: for how many slots of those that were asked about there is room; 0 if none were.
    """

    node: str
    resources: Mapping[str, ResourceAmounts]
    fits: int


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """The quota of a namespace, and how much its reservations hold.

    Attributes:
        namespace: which one; empty for the ceiling on what all tenants may hold.
        name: of the quota; ``default`` where the namespace has none of its own.
        hard: the most of ``reservations`` and each ``held.RESOURCE``, as quantities.
        used: what is used of it.
        pending: how many reservations of the namespace exceed its quotas.
        max_ttl: how long one may live from its creation; None for any time.
        forbids_node_names: none may name its node.
        forbids_firm_holds: each has to be preemptible.
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
    """A resource that was held in a week for an owner, in amounts times hours.

    Amounts are cores, bytes or pieces; ``_others`` stands for all beyond the bounds.

    Attributes:
        week: when the week begins, a Monday 00:00 UTC.
        namespace: of the pods that it was for.
        owner: who could claim it, in words.
        resource: of what.
        held: all of it.
        claimed: in slots that pods had claimed.
        used: what these pods requested.
        unused: held and not used.
        cost: of what was held; None where the resource has no price.
        unused_cost: of what was not used; None likewise.
        currency: of the costs; empty where the configuration names none.
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
    """A reservation of a set that lacks room.

    Attributes:
        index: its place in the set.
        message: what is missing.
        never: it would not fit if the node were empty.
    """

    index: int
    message: str
    never: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a set would be created.

    Attributes:
        fits: all of it fits at this instant.
        shortages: those that do not.
        placements: where each one would go, in their order; empty for one that has no place.
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
            names: only these; all if it is empty. Those that do not exist are passed over.
            slot: what one slot takes, for `NodeCapacity.fits`.

        Raises:
            CallFailed: it cannot be read.
        """
        request = pb.ListNodesRequest(node_names=names, slot=slot or {})
        async for page in self._connection.pages(self._stub.ListNodes, request):
            for node in page.nodes:
                yield messages.read(node, NodeCapacity)

    async def quotas(self, namespace: str = "") -> AsyncGenerator[NamespaceQuota, None]:
        """Yield what a namespace, or each, may hold and holds, ordered by namespace and name.

        Raises:
            CallFailed: it cannot be read.
        """
        request = pb.ListQuotasRequest(namespace=namespace)
        async for page in self._connection.pages(self._stub.ListQuotas, request):
            for each in page.quotas:
                yield messages.read(each, NamespaceQuota)

    async def accounts(
        self, namespace: str = "", *, since: datetime | None = None
    ) -> AsyncGenerator[HoldAccount, None]:
        """Yield what was held, ordered by week, namespace, owner and resource.

        Args:
            namespace: of the pods that it was for; empty for any.
            since: of weeks that end later; None for all that are kept.

        Raises:
            CallFailed: it cannot be read.
        """
        messages.check_zone(since, "since")
        request = pb.ListAccountsRequest(namespace=namespace, since=since)
        async for page in self._connection.pages(self._stub.ListAccounts, request):
            for each in page.accounts:
                yield replace(messages.read(each, HoldAccount), currency=page.currency)

    async def what_if(self, specs: Sequence[Spec], namespace: str = "") -> Verdict:
        """Return whether `create_set` would create a set at this instant, in a namespace.

        Raises:
            CallFailed: it cannot be said, or a spec is not acceptable.
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
        """Return how the process is that answers, as JSON for a bug report, without secrets.

        Raises:
            CallFailed: it cannot be read.
        """
        answer: pb.DumpResponse = await self._connection.call(self._stub.Dump, pb.DumpRequest())
        return answer.document

    async def explain(self, namespace: str, pod: str) -> dict[str, Any]:
        """Return why a pod is pending, or where it may go, as ``GET /explain`` answers.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is no such pod.
        """
        request = pb.ExplainRequest(pod_namespace=namespace, pod_name=pod)
        answer = await self._connection.call(self._stub.Explain, request)
        explanation: dict[str, Any] = whole(json_format.MessageToDict(answer.explanation))
        return explanation
