"""The metrics endpoint: metrics as text, and counts of refused calls."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, generate_latest

_SHARE = 0.1
"""The share of the time that it may take: anybody may ask, as often as they like."""


def refusals(registry: CollectorRegistry) -> Callable[[str], None]:
    """Return what counts HTTP calls that a door refuses, by reason."""
    refused = Counter(
        "reserver_http_refused",
        "HTTP connections and calls that were refused unread, by reason.",
        ("reason",),
        registry=registry,
    )
    return lambda reason: refused.labels(reason).inc()


class Exposition:
    """The text of the metrics; repeated for ten times as long as it took to make."""

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Expose a registry; `clock` returns seconds."""
        self._registry = registry
        self._clock = clock
        self._text = b""
        self._until = float("-inf")

    def text(self) -> bytes:
        """Return the metrics as they are, or were a moment ago."""
        began = self._clock()
        if began >= self._until:
            self._text = generate_latest(self._registry)
            took_s = self._clock() - began
            self._until = began + took_s / _SHARE
        return self._text
