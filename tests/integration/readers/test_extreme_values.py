"""Valid inputs with extreme values are read as fast as any other."""

from __future__ import annotations

from calendar import isleap
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import (
    encode,
)
from reserver.maintenance import codec as maintenance
from reserver.maintenance.model import Window
from reserver.maintenance.observe import turn_of
from reserver.rebalance.metrics_api import read_node_metrics
from reserver.scheduling.placement import placing
from reserver.stores.codec import prices
from tests.builders import NOW, node, state_of
from tests.cpu import MOST_S, least_cpu_s, longest_step_s
from tests.integration.readers.readers import reservation, window

LABELS = [f"{letter * 40}.example.com/{letter * 60}" for letter in "abcdefghijklmnop"]
NOT_IN = [
    {"key": key, "operator": "NotIn", "values": [f"{key[:3]}-{n}" for n in range(64)]}
    for key in LABELS
]
RARE = {"duration": "1m", "timeZone": "America/St_Johns"}
LEAP_DAYS = [date(year, 2, 29) for year in range(2032, 4832) if isleap(year)]
FIFTH_SUNDAYS = [str(day) for day in LEAP_DAYS if day.isoweekday() == 7]
"""Of February: every 28 years, as a rule."""


def window_of(minute: int) -> bytes:
    names = [f"node-{number}-{'x' * 200}" for number in range(maintenance.MOST_NODES)]
    schedule = {**RARE, "cron": f"{minute} 0 * 2 SUN#5", "until": "9000-01-01T00:00:00Z"}
    spec = {"schedule": schedule, "nodes": names, "surge": True, "maxUnavailable": "1%"}
    return encode({**spec, "nodeSelector": {"matchExpressions": NOT_IN}, "drainBefore": "168h"})


def of_schedule(cron: str, **more: Any) -> bytes:
    owners, resources = [{"selector": {"matchLabels": {"app": "web"}}}], {"cpu": "1"}
    schedule = {**RARE, "cron": cron, **more}
    return encode({"owners": owners, "resources": resources, "schedule": schedule})


def recurring(spec: bytes) -> object:
    """Read one, and find the occurrences that people are shown."""
    (found,) = reservation(spec).reservations  # type: ignore[attr-defined]
    return found.at(NOW).next_occurrences


def kept(spec: bytes) -> object:
    """Read a window, and find its occurrence of now."""
    found = window(spec)
    assert isinstance(found, Window)
    return found.at(NOW)


def whole_nodes(number: int) -> bytes:
    terms = [{"matchExpressions": [{**NOT_IN[n], "key": f"{number}"}]} for n in range(10)]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    tolerations = [{"key": f"k{number}-{n}", "operator": "Exists"} for n in range(32)]
    return encode({
        "owners": [{"selector": {"matchLabels": {"app": f"web-{n}"}}} for n in range(100)],
        "nodes": {"count": 500, "selector": dict.fromkeys(LABELS[:15], "x" * 60)},
        "placement": {"tolerations": tolerations, "affinity": {"nodeAffinity": affinity}},
    })  # fmt: skip


def node_metric(pods: int, resources: int, number: int) -> bytes:
    usage = {f"{number}-{n}.example.com/x": "12345678.9m" for n in range(resources)}
    metrics = [{"name": f"p{n}", "podUsage": {"resources": usage}} for n in range(pods)]
    whole = {"nodeUsage": {"resources": usage}, "systemUsage": {"resources": usage}}
    status = {"updateTime": "2030-01-01T00:00:00Z", "nodeMetric": whole, "podsMetric": metrics}
    item = {"metadata": {"name": "n"}, "status": status}
    return encode({"kind": "NodeMetricList", "items": [item]})


def metric(raw: bytes) -> object:
    return read_node_metrics(raw, NOW)


def skipped(number: int) -> bytes:
    skip = [f"{day}T0{number % 10}:00:00-03:30" for day in FIFTH_SUNDAYS[:90]]
    return of_schedule(f"0 {number % 10} * 2 SUN#5", skip=skip)


STRANGE: dict[str, tuple[Callable[[int], bytes], Callable[[bytes], object]]] = {
    "a window that comes every 28 years": (window_of, kept),
    "a reservation that comes every 28 years, a hundred times": (
        lambda n: of_schedule(f"{n} 0 * 2 SUN#5", count=100).replace(
            b'"schedule"', b'"startsAt":"2030-01-01T00:00:00Z","schedule"'
        ),
        recurring,
    ),
    "one that follows real time so": (
        lambda n: of_schedule(f"*/59 {n} * 2 SUN#5", count=100).replace(
            b'"schedule"', b'"startsAt":"2030-01-01T00:00:00Z","schedule"'
        ),
        recurring,
    ),
    "one that is left out for 2,000 years": (skipped, recurring),
    "one that comes each minute, and is left out a hundred times": (
        lambda n: of_schedule(
            "* * * * *",
            skip=[f"2030-03-17T{17 + m // 60}:{m % 60:02}:0{n}Z" for m in range(46, 146)],
        ),
        recurring,
    ),
    "whole nodes": (whole_nodes, reservation),
    "a NodeMetric of many pods": (partial(node_metric, 500, 50), metric),
    "a NodeMetric of many resources": (partial(node_metric, 1, 9_000), metric),
    "prices": (
        lambda n: ",".join(
            f"{'a' * 60}.{n}.example.com/{m}=0.{'1' * 1_000}" for m in range(prices.MOST_PRICES)
        ).encode(),
        lambda raw: prices.parse(raw.decode()),
    ),
}
"""Valid inputs with extreme values."""


@pytest.mark.parametrize("name", STRANGE)
def test_the_strangest_that_is_valid_takes_no_longer(name: str) -> None:
    make, read = STRANGE[name]
    read(make(0))  # It is valid.
    assert least_cpu_s(lambda number: make(1 + number), read) < MOST_S


def test_a_window_of_many_terms_is_judged_for_all_nodes_in_short_steps() -> None:
    labels = dict.fromkeys(LABELS, "y" * 60)
    nodes = [node(f"node-{number}", labels=labels) for number in range(5_000)]
    found = kept(window_of(1))
    assert isinstance(found, Window)
    assert longest_step_s(lambda: turn_of(found, nodes)) < MOST_S


def test_five_hundred_whole_nodes_are_placed_in_short_steps() -> None:
    (asked,) = reservation(whole_nodes(1)).reservations  # type: ignore[attr-defined]
    labels = dict.fromkeys(LABELS[:15], "x" * 60)
    state = state_of(*(node(f"n{n}", cpu="8", labels=labels | {"1": "z"}) for n in range(5_000)))
    assert sum(part.slots for part in outcome(placing(asked, 500, state)).parts) == 500
    assert longest_step_s(lambda: placing(asked, 500, state)) < MOST_S
