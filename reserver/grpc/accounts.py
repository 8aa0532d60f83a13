"""The ListAccounts method: what was held, claimed and used."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from reserver.base.pacer import Pacer
from reserver.grpc import documents
from reserver.grpc.paging import PageToken
from reserver.k8s.objects.times import parse_moment
from reserver.reservations.accounts import WEEK_S, AccountKey, HoldUse
from reserver.stores.codec.account_codec import week_name
from reserver.stores.codec.prices import Prices
from reserver.stores.hold_accounts import AccountWriter
from reserver.v1 import capacity_pb2 as pb


@dataclass(eq=False, repr=False)
class AccountList:
    """Answers what was held."""

    writer: AccountWriter

    async def page(self, request: pb.ListAccountsRequest) -> pb.ListAccountsResponse:
        """Return accounts of a namespace, or of all.

        Raises:
            InvalidInput: a field is out of range.
        """
        pages, prices = PageToken.of(request), self.writer.prices
        since = parse_moment(documents.moment(request.since, "since"))
        found: list[tuple[str, AccountKey, str, HoldUse]] = []
        pacer = Pacer()
        for key, uses in tuple(self.writer.held.accounts):
            if request.namespace in {"", key.namespace} and key.week + WEEK_S > since:
                name = f"{week_name(key.week)}/{key.namespace}/{key.owner}"
                found += [(f"{name}/{what}", key, what, use) for what, use in uses.items()]
            await pacer.give_way()
        page, token = pages.cut(found, lambda each: each[0])
        shown = [_show(key, resource, use, prices) for _, key, resource, use in page]
        return pb.ListAccountsResponse(
            accounts=shown, next_page_token=token, currency=prices.currency
        )


def _show(key: AccountKey, resource: str, use: HoldUse, prices: Prices) -> pb.Account:
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
