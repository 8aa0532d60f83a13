"""Metrics of the accounts: what was held in time, and of which holds little is used."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from reserver.process.hold_metrics import UNITS, bounded
from reserver.stores.hold_accounts import HoldAccounts


def families(held: HoldAccounts) -> Iterator[Metric]:
    """Yield what this process has counted."""
    told = (
        "Amounts times seconds held for pods of a namespace: free, in claimed slots beyond what "
        "their pods request (spare), and requested by these pods (used)."
    )
    labels = ("namespace", "resource", "unit", "part")
    seconds = CounterMetricFamily("reserver_namespace_held_unit_seconds", told, labels=labels)
    for (namespace, resource), use in tuple(held.seconds.items()):
        unit, per_unit = UNITS[resource]
        for part, amount in use._asdict().items():
            seconds.add_metric((namespace, resource, unit, part), amount / per_unit)
    yield seconds
    told = "Reservations of which pods requested less than `warnUseBelow` on the last day."
    low = GaugeMetricFamily("reserver_low_use_reservations", told, labels=("namespace",))
    for namespace, count in bounded(held.low_use()).items():
        low.add_metric((namespace,), count)
    yield low
