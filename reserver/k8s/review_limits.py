"""Bounds on reviews of unknown tokens: anybody can send those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachetools import TTLCache

from reserver.base.fairness import FairCount
from reserver.errors import TooMany

MOST_FAILURES = 50
"""How many calls with an unknown token may come from one peer..."""

WINDOW_S = 10.0
"""...until none came for this long, in seconds; refused calls do not count."""

MOST_PENDING = 100
"""How many unknown tokens are asked about at once, from all peers together; each has its part."""

_PEERS = 4096


class ReviewLimits:
    """Counts of reviews of unknown tokens, by peer and in all."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with none; `clock` gives seconds."""
        self._failures: TTLCache[str, int] = TTLCache(_PEERS, WINDOW_S, clock)
        self._pending = FairCount(MOST_PENDING)

    @contextmanager
    def asking(self, peer: str) -> Iterator[None]:
        """Count a token as unknown, from before it is asked about; `known` takes that back.

        Raises:
            TooMany: that would be one too many.
        """
        if not self._pending.has_room(peer):
            raise TooMany("too many unknown tokens are being asked about; try again")
        self.failed(peer)
        self._pending.add(peer)
        try:
            yield
        finally:
            self._pending.add(peer, -1)

    def failed(self, peer: str) -> None:
        """Count a call of an unknown caller.

        Raises:
            TooMany: that is one too many.
        """
        failures = self._failures.get(peer, 0)
        if failures >= MOST_FAILURES:
            what = f"more than {MOST_FAILURES} calls without a valid token came from {peer}"
            raise TooMany(f"{what}; wait {WINDOW_S:.0f} seconds")
        self._failures[peer] = failures + 1

    def known(self, peer: str) -> None:
        """Take back the count of a token: it is known, or that cannot be told."""
        failures = self._failures.get(peer, 0)
        if failures > 1:
            self._failures[peer] = failures - 1
        else:
            self._failures.pop(peer, None)
