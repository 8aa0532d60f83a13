"""Callers: their user and address, and how many calls they may have open at once."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from reserver.base.fairness import FairCount
from reserver.errors import TooMany

LOCAL = "loopback"
"""Any caller on a loopback listener: on this machine, or in this pod."""

caller: ContextVar[str] = ContextVar("caller", default=LOCAL)
"""The name of the user."""

_HOST_BITS = 64
"""The host part of an IPv6 address, in bits: one host may have a whole /64."""


def peer_of(address: str) -> str:
    """Return the peer of an address as gRPC has it: ``ipv4:10.0.0.1:4242``."""
    text = address.partition(":")[2].rpartition(":")[0].replace("%5B", "[").replace("%5D", "]")
    try:
        host = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return "unknown"
    if host.version == 4:  # noqa: PLR2004
        return str(host)
    if mapped := host.ipv4_mapped:
        return str(mapped)
    return str(ipaddress.ip_network((host, _HOST_BITS), strict=False))


MOST_CALLS = 2_000
"""In all: gRPC itself refuses more."""


_ACCOUNT = "system:serviceaccount:"


def party_of(user: str) -> str:
    """Return with whom a user shares a part: with all service accounts of its namespace."""
    if not user.startswith(_ACCOUNT):
        return user
    return user[: user.find(":", len(_ACCOUNT))]


class CallCount:
    """Counts what is open at once."""

    def __init__(self, what: str, each: int, everybody: int = MOST_CALLS) -> None:
        """Begin with nothing of what is counted, a word in the plural.

        Of `everybody`'s calls each party has its part, and each user or peer `each` at most.
        """
        self._what = what
        self._each = each
        self._everybody = everybody
        self._open: Counter[str] = Counter()
        self._parties = FairCount(everybody)

    def __len__(self) -> int:
        """Return how many are open."""
        return self._parties.total

    @contextmanager
    def of(self, who: str) -> Iterator[None]:
        """Count one call until the block ends.

        Raises:
            TooMany: it would be one too many.
        """
        party = party_of(who)
        if self._open[who] >= self._each:
            raise TooMany(f"{who} has {self._each} {self._what} open; end one of them")
        if len(self) >= self._everybody:
            raise TooMany(f"there are {self._everybody} {self._what}; try again")
        if not self._parties.has_room(party):
            own = self._parties.of(party)
            part = f"{party} has {own} {self._what} open, which is its share"
            raise TooMany(f"{part} of {self._everybody}; end one of them")
        self._open[who] += 1
        self._parties.add(party)
        try:
            yield
        finally:
            self._parties.add(party, -1)
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]


class CallCounts:
    """Counts of open calls.

    Attributes:
        peers: open calls by peer, from before it is known who makes them.
        users: open calls by user.
        watches: open watches by user.
        anonymous: calls that need no token, by peer: health.
        lasting: those that last, reflection among them, so that they keep nobody from asking once.
    """

    def __init__(self) -> None:
        """Begin with no calls."""
        self.peers = CallCount("calls", each=256)
        self.users = CallCount("calls", each=128)
        self.watches = CallCount("watches", each=32, everybody=256)
        self.anonymous = CallCount("calls without a token", each=8, everybody=64)
        self.lasting = CallCount("watches without a token", each=8, everybody=64)
