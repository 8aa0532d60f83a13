"""Quotas as `reserver top quotas` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reserver.cli import failure, output, table
from reserver.cli.manifest import show_duration
from reserver.cli.options import Report
from reserver.cli.patience import patience
from reserver.cli.table import Row
from reserver.cli.words import NOTHING
from reserver.client import Client, NamespaceQuota

_RESERVATIONS = "reservations"


async def show(client: Client, namespace: str, form: Report) -> None:
    """Print what a namespace, or each if it is empty, may hold and holds."""
    async with patience("Asking for quotas"):
        found = [each async for each in client.capacity.quotas(namespace)]
    if form is not Report.TABLE:
        output.document({"quotas": list(map(_shown, found))}, form)
    elif found:
        rows = [row for each in found for row in _rows(each)]
        table.show(("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD"), rows)
    else:
        failure.tell(f"no quota limits {namespace or 'any namespace'}")


def _rows(quota: NamespaceQuota) -> Iterator[Row]:
    """Yield what is limited, and what is used of it, in the manner of `kubectl describe quota`."""
    pending = {_RESERVATIONS: f"{quota.pending} pending"} if quota.pending else {}
    for counted in sorted(quota.hard.keys() | quota.used.keys() | pending.keys()):
        used = [each[counted] for each in (quota.used, pending) if counted in each]
        hard = quota.hard.get(counted, NOTHING)
        yield quota.namespace, quota.name, counted, ", ".join(used) or NOTHING, hard
    for rule, limit in _rules(quota).items():
        yield quota.namespace, quota.name, rule, NOTHING, limit


def _rules(quota: NamespaceQuota) -> Mapping[str, str]:
    """Return what else is limited, in the words of a ReservationQuota's spec."""
    rules = {} if quota.max_ttl is None else {"maxTTL": show_duration(quota.max_ttl)}
    if quota.forbids_node_names:
        rules["nodeNames"] = "Forbidden"
    if quota.forbids_firm_holds:
        rules["firmHolds"] = "Forbidden"
    return rules


def _shown(quota: NamespaceQuota) -> dict[str, Any]:
    return {
        "namespace": quota.namespace,
        "name": quota.name,
        "hard": dict(sorted(quota.hard.items())),
        "used": dict(sorted(quota.used.items())),
        "pending": quota.pending,
        **_rules(quota),
    }
