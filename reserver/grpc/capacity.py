"""CapacityService: capacity of nodes, quotas, accounts, what-if checks and explanations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import grpc
import msgspec
from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp

from reserver.base.pacer import Pacer
from reserver.cluster import quantity
from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.cluster.snapshot import Snapshot
from reserver.errors import InvalidInput, under
from reserver.extender.handlers import Extender
from reserver.grpc import catalogue, documents
from reserver.grpc.selection import PageToken
from reserver.grpc.status_errors import CallError
from reserver.k8s.objects.limits import HOME, check_amount, limits_at
from reserver.k8s.objects.times import parse_moment
from reserver.reservations.accounts import WEEK_S, AccountKey, HoldUse
from reserver.reservations.quota import Quota
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref
from reserver.scheduling.dry_run import Lack, judge_set
from reserver.scheduling.state import State
from reserver.stores import quota_codec
from reserver.stores.codec import spec_codec
from reserver.stores.codec.account_codec import week_name
from reserver.stores.codec.prices import Prices
from reserver.stores.hold_accounts import AccountWriter
from reserver.stores.stores import Stores
from reserver.v1 import capacity_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceServicer

Aio = grpc.aio.ServicerContext[Any, Any]

_MOST_NAMED = 20_000
"""Most nodes that a request names; all are looked up in one step."""


@dataclass(eq=False, repr=False)
class CapacityServicer(CapacityServiceServicer):
    """CapacityService on a state.

    Attributes:
        stores: the stores; the default one decides the limits of a `WhatIf`.
        home: Reserver's own namespace (`limits_at`).
        dump: returns the state of this process.
    """

    state: State
    extender: Extender
    clock: Callable[[], float]
    stores: Stores
    home: str
    accounts: AccountWriter
    dump: Callable[[], Awaitable[bytes]]

    async def ListNodes(self, request: pb.ListNodesRequest, context: Aio) -> pb.ListNodesResponse:  # noqa: ARG002, N802
        """Return the capacity of nodes, ordered by name, page by page."""
        _check_number(len(request.node_names), "nodeNames", _MOST_NAMED)
        self.state.ledger.advance(self.clock())
        snapshot = self.state.snapshot
        slot = _slot(request.slot)
        names = list(filter(snapshot.has_node, request.node_names)) or []
        if not request.node_names:
            names = snapshot.node_names()

        def show(name: str) -> pb.NodeCapacity | None:  # It may have been deleted meanwhile.
            return _node(name, snapshot, slot) if snapshot.has_node(name) else None

        named = zip(names, names, strict=True)
        nodes, token = await PageToken.of(request).read(named, show, Pacer())
        return pb.ListNodesResponse(nodes=nodes, next_page_token=token)

    async def ListQuotas(  # noqa: N802
        self,
        request: pb.ListQuotasRequest,
        context: Aio,  # noqa: ARG002
    ) -> pb.ListQuotasResponse:
        """Return the quotas of namespaces and their usage, page by page."""
        self.state.ledger.advance(self.clock())
        quotas = self.state.ledger.quotas
        named = [request.namespace] if request.namespace else quotas.namespaces()
        here = [(namespace, quota) for namespace in named for quota in quotas.of(namespace)]
        if quotas.ceiling.limits.cluster and not request.namespace:
            here.append(("", quotas.ceiling.quota))
        page, token = await PageToken.of(request).read(
            ((f"{namespace}/{quota.name}", (namespace, quota)) for namespace, quota in here),
            lambda each: _quota(*each, quotas),
            Pacer(),
        )
        return pb.ListQuotasResponse(quotas=page, next_page_token=token)

    async def ListAccounts(  # noqa: N802
        self,
        request: pb.ListAccountsRequest,
        context: Aio,  # noqa: ARG002
    ) -> pb.ListAccountsResponse:
        """Return the accounts of held, claimed and used amounts, page by page."""
        pages, prices = PageToken.of(request), self.accounts.prices
        since = parse_moment(documents.moment(request.since, "since"))
        found: list[tuple[str, tuple[AccountKey, str, HoldUse]]] = []
        pacer = Pacer()
        for key, uses in tuple(self.accounts.held.accounts):
            if request.namespace in {"", key.namespace} and key.week + WEEK_S > since:
                name = f"{week_name(key.week)}/{key.namespace}/{key.owner}"
                found += [(f"{name}/{what}", (key, what, use)) for what, use in uses.items()]
            await pacer.give_way()
        page, token = await pages.read(found, lambda each: _account(*each, prices), pacer)
        return pb.ListAccountsResponse(
            accounts=page, next_page_token=token, currency=prices.currency
        )

    async def WhatIf(self, request: pb.WhatIfRequest, context: Aio) -> pb.WhatIfResponse:  # noqa: ARG002, N802
        """Return whether a set would be created at this instant."""
        documents.check_set(request.reservations)
        documents.check_namespace(request.namespace)
        where = Ref(self.home, "what-if", "")
        if self.stores.writes_into(request.namespace):
            where = Ref.of_object(request.namespace, "")
        asked_at = self.clock()
        reservations, pacer = [], Pacer()
        for index, spec in enumerate(request.reservations):
            with under(f"reservations[{index}]"):
                ref = where._replace(key=f"what-if-{index}")
                written = documents.write(spec, asked_at)
                limits = limits_at(ref, self.home)
                reservations.append(spec_codec.read(written, ref, asked_at, limits))
            await pacer.give_way()
        spec_codec.check_set(reservations)
        lacks, judged = await pacer.run(judge_set(reservations, self.state, self.clock))
        # The whole set at once.
        if why := self.state.ledger.quotas.trial(reservations, self.clock()):
            lacks = (Lack(0, why, never=False), *lacks)
        shortages = [pb.Shortage(index=at, message=text, never=never) for at, text, never in lacks]
        placements = [pb.WhatIfPlacement(parts=catalogue.show_parts_of(each)) for each in judged]
        return pb.WhatIfResponse(fits=not lacks, shortages=shortages, placements=placements)

    async def Explain(self, request: pb.ExplainRequest, context: Aio) -> pb.ExplainResponse:  # noqa: ARG002, N802
        """Return why a pod is pending, or its possible nodes."""
        name = PodName(request.pod_namespace, request.pod_name)
        explanation = await self.extender.explain(name)
        if explanation is None:
            message = f"there is no pod {shorten(str(name), 200)}"
            raise CallError(grpc.StatusCode.NOT_FOUND, "NO_SUCH_POD", message)
        response, pacer = pb.ExplainResponse(), Pacer()
        for field, value in msgspec.to_builtins(explanation).items():
            shown = response.explanation.fields[field]
            if isinstance(value, tuple):
                shown.list_value.SetInParent()
                for each in value:
                    json_format.ParseDict(each, shown.list_value.values.add())
                    await pacer.give_way()
            else:
                json_format.ParseDict(value, shown)
        return response

    async def Dump(self, request: pb.DumpRequest, context: Aio) -> pb.DumpResponse:  # noqa: ARG002, N802
        """Return the state of this process, for a bug report."""
        return pb.DumpResponse(document=await self.dump())


def _quota(namespace: str, quota: Quota, quotas: Quotas) -> pb.NamespaceQuota:
    used = quotas.used(namespace) if namespace else quotas.ceiling.used
    status = quota_codec.show(quota, used)
    shown = pb.NamespaceQuota(
        namespace=namespace,
        name=quota.name,
        hard=status.hard,
        used=status.used,
        pending=quotas.pending(namespace),
        forbids_node_names=not quota.allows_node_names,
        forbids_firm_holds=not quota.allows_firm_holds,
    )
    if quota.max_ttl is not None:
        shown.max_ttl.FromTimedelta(timedelta(seconds=quota.max_ttl))
    return shown


def _check_number(number: int, path: str, most: int) -> None:
    if number > most:
        raise InvalidInput(path, f"{number} entries are too many", f"send {most} at most")


def _slot(written: Mapping[str, str]) -> dict[str, int]:
    _check_number(len(written), "slot", HOME.resources)
    slot = {}
    for name, text in written.items():
        path = f"slot.{shorten(name)}"
        with under(path):
            amount = quantity.amount(name, text)
        slot[name] = check_amount(amount, text, path)
    return {"pods": 1} | slot if slot else {}


def _node(name: str, snapshot: Snapshot, slot: Mapping[str, int]) -> pb.NodeCapacity:
    row = snapshot.rows((name,))[0]
    free: dict[str, int] = {}
    borrowed = snapshot.lending.borrowed(name)
    resources = {}
    for resource, column in snapshot.columns.items():
        allocatable = int(snapshot.allocatable[row, column])
        requested = int(snapshot.requested[row, column])
        held = int(snapshot.held[row, column])
        if not (allocatable or requested or held):
            continue
        free[resource] = allocatable - requested - held
        resources[resource] = pb.Amounts(
            allocatable=quantity.show(resource, allocatable),
            requested=quantity.show(resource, requested),
            held=quantity.show(resource, held),
            free=quantity.show(resource, free[resource]),
            borrowed=quantity.show(resource, borrowed.get(resource, 0)),
        )
    fits = [max(0, free.get(each, 0) // amount) for each, amount in slot.items() if amount]
    return pb.NodeCapacity(node=name, resources=resources, fits=min(fits, default=0))


def _account(key: AccountKey, resource: str, use: HoldUse, prices: Prices) -> pb.Account:
    per_unit = 1000 if resource == "cpu" else 1
    cost = prices.cost({resource: use})
    return pb.Account(
        week=Timestamp(seconds=key.week),
        namespace=key.namespace,
        owner=key.owner,
        resource=resource,
        held=use.held / per_unit,
        claimed=use.claimed / per_unit,
        used=use.used / per_unit,
        unused=use.unused / per_unit,
        cost=None if cost is None else cost.held,
        unused_cost=None if cost is None else cost.unused,
    )
