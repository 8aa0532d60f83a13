"""Asks a running Reserver what reservations hold, for plans."""

from __future__ import annotations

from reserver.cli.connect import connected
from reserver.cli.failure import Failed
from reserver.cli.target import Target
from reserver.cluster import quantity
from reserver.rebalance.capacity import Held
from reserver.rebalance.cluster_state import Amounts


async def held(target: Target) -> Held:
    """Return what reservations hold, by node.

    Raises:
        Failed: Reserver cannot be reached, or does not say.
    """
    found: dict[str, Amounts] = {}
    try:
        async with connected(target) as session:
            async for each in session.client.capacity.nodes():
                found[each.node] = {
                    name: quantity.amount(name, amounts.held)
                    for name, amounts in each.resources.items()
                    if amounts.held
                }
    except Failed as exc:
        remedy = "or go on --without-holds, as if nothing were held"
        raise Failed(exc.status, f"{exc}; {remedy}") from exc
    return {node: amounts for node, amounts in found.items() if amounts}
