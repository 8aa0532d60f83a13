"""The quotas of namespaces and their use, as `reserver top quotas` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reserver.cli import failure, output, table
from reserver.cli.formatting import NOTHING
from reserver.cli.output import Report
from reserver.cli.table import Row
from reserver.cli.terminal import progress
from reserver.client import Client, NamespaceQuota
from reserver.cluster import quantity
from reserver.k8s.objects.times import show_duration

_RESERVATIONS = "reservations"
_TENANTS = "(all tenants)"


async def show(client: Client, namespace: str, form: Report) -> None:
    """Print the quota and its use for a namespace, or for each if it is empty."""
    async with progress("Asking for quotas"):
        found = [each async for each in client.capacity.quotas(namespace)]
    titles = ("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD")
    rows = [row for each in found for row in _quota_rows(each)]
    if form is Report.CSV:
        output.csv(titles, table.texts(rows))
    elif form is not Report.TABLE:
        output.document({"quotas": list(map(quota_document, found))}, form)
    elif found:
        table.show(titles, rows)
    else:
        failure.report(f"no quota limits {namespace or 'any namespace'}")


def _quota_rows(quota: NamespaceQuota) -> Iterator[Row]:
    """Yield each limit and its use, as `kubectl describe quota` does."""
    pending = {_RESERVATIONS: f"{quota.pending} pending"} if quota.pending else {}
    shares = {name: f"{share:.0%}" for name, share in _shares(quota).items()}
    for counted in sorted(quota.hard.keys() | quota.used.keys() | pending.keys()):
        used = [each[counted] for each in (quota.used, pending, shares) if counted in each]
        hard = quota.hard.get(counted, NOTHING)
        yield quota.namespace or _TENANTS, quota.name, counted, ", ".join(used) or NOTHING, hard
    for rule, limit in _quota_rules(quota).items():
        yield quota.namespace, quota.name, rule, NOTHING, limit


def _shares(quota: NamespaceQuota) -> dict[str, float]:
    """Return how much of each limit of the ceiling is used."""
    limits = sorted(quota.hard.items()) if not quota.namespace else ()
    used = {name: quantity.parse(quota.used.get(name, "0")) for name, _ in limits}
    return {name: round(used[name] / (quantity.parse(limit) or 1), 4) for name, limit in limits}


def _quota_rules(quota: NamespaceQuota) -> Mapping[str, str]:
    """Return the other limits, as a ReservationQuota's spec names them."""
    rules = {} if quota.max_ttl is None else {"maxTTL": show_duration(quota.max_ttl)}
    if quota.forbids_node_names:
        rules["nodeNames"] = "Forbidden"
    if quota.forbids_firm_holds:
        rules["firmHolds"] = "Forbidden"
    return rules


def quota_document(quota: NamespaceQuota) -> dict[str, Any]:
    """Return a quota as a program reads it."""
    return {
        "namespace": quota.namespace,
        "name": quota.name,
        "hard": dict(sorted(quota.hard.items())),
        "used": dict(sorted(quota.used.items())),
        "pending": quota.pending,
        **({"share": shares} if (shares := _shares(quota)) else {}),
        **_quota_rules(quota),
    }
