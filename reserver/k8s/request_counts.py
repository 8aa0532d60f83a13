"""What requests to the API server came to, and how long they waited for a connection."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import aiohttp
from prometheus_client.core import CounterMetricFamily, Metric

ERROR = "<error>"
"""The code of a request without an answer, as client-go has it."""


class RequestCounts:
    """Requests of one client.

    Attributes:
        by_code: how many there were, by method and status code.
        waited_s: how long they waited for a connection, in seconds.
    """

    def __init__(self) -> None:
        """Begin at 0."""
        self.by_code = Tally[tuple[str, str]]()
        self.waited_s = 0.0

    def count(self, method: str, status: int) -> None:
        """Count a request with its status code; 0 without an answer."""
        self.by_code[method, str(status or ERROR)] += 1

    def trace(self) -> aiohttp.TraceConfig:
        """Return what measures the waits of a session of aiohttp."""

        async def begin(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:  # noqa: ANN401 - it is empty
            context.since = time.monotonic()

        async def end(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:  # noqa: ANN401 - as above
            self.waited_s += time.monotonic() - context.since

        trace = aiohttp.TraceConfig()
        trace.on_connection_queued_start.append(begin)
        trace.on_connection_queued_end.append(end)
        return trace


def measured(every: Iterable[RequestCounts]) -> Iterator[Metric]:
    """Yield the sums of some clients."""
    told = "Requests to the API server, by HTTP method and status code; 429 is throttled."
    requests = CounterMetricFamily("reserver_client_requests", told, labels=("method", "code"))
    totals = sum((each.by_code for each in every), Tally[tuple[str, str]]())
    for labels, count in totals.items():
        requests.add_metric(labels, count)
    yield requests
    waited = sum(each.waited_s for each in every)
    told = "Seconds that requests to the API server waited for one of the connections."
    yield CounterMetricFamily("reserver_client_wait_seconds", told, value=waited)
