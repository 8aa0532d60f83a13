"""How many calls may be open at once: of one peer, of one user, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from reserver.errors import TooMany

MOST_CALLS = 2_000
"""In all: gRPC itself refuses more."""


class Share:
    """Counts what is open at once."""

    def __init__(self, what: str, each: int, everybody: int = MOST_CALLS) -> None:
        """Begin with nothing.

        Args:
            what: is counted, in the plural.
            each: how many one may have.
            everybody: how many there may be in all.
        """
        self._what = what
        self._each = each
        self._everybody = everybody
        self._open: Counter[str] = Counter()
        self._number = 0

    def __len__(self) -> int:
        """Return how many are open."""
        return self._number

    @contextmanager
    def of(self, who: str) -> Iterator[None]:
        """Count one call until the block ends.

        Raises:
            TooMany: it would be one too many.
        """
        if self._open[who] >= self._each:
            raise TooMany(f"{who} has {self._each} {self._what} open; end one of them")
        if self._number >= self._everybody:
            raise TooMany(f"there are {self._everybody} {self._what}; try again")
        self._open[who] += 1
        self._number += 1
        try:
            yield
        finally:
            self._number -= 1
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]


class Shares:
    """Counts of open calls.

    Attributes:
        peers: open calls by peer, from before it is known who makes them.
        users: open calls by user.
        watches: open watches by user.
        strangers: open calls that need no token, by peer: health and reflection.
    """

    def __init__(self) -> None:
        """Begin with no calls."""
        self.peers = Share("calls", each=256)
        self.users = Share("calls", each=128)
        self.watches = Share("watches", each=32, everybody=256)
        self.strangers = Share("calls without a token", each=8, everybody=64)
