"""Callers: their user and peer, and the bounds on their open calls."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from reserver.base.fairness import FairCount
from reserver.base.pacer import FairQueue, present_consumer
from reserver.errors import TooMany

LOCAL = "loopback"
"""The user name of every caller on a loopback listener."""

caller: ContextVar[str] = ContextVar("caller", default=LOCAL)
"""The user name of the present call."""

_HOST_BITS = 64
"""The prefix length of an IPv6 peer: one host may have a whole /64."""


def peer_of(address: str) -> str:
    """Return the peer of a gRPC address such as ``ipv4:10.0.0.1:4242``: an IP, or an IPv6 /64."""
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
"""Bound on all open calls; gRPC itself refuses more."""


_ACCOUNT = "system:serviceaccount:"


def party_of(user: str) -> str:
    """Return the party of a user: the service accounts of a namespace share one."""
    if not user.startswith(_ACCOUNT):
        return user
    return user[: user.find(":", len(_ACCOUNT))]


class CallCount:
    """Counts open calls of one kind."""

    def __init__(self, kind: str, each: int, total: int = MOST_CALLS) -> None:
        """Begin without calls; `kind` is the name of the counted calls, in the plural.

        Each user or peer may have `each` calls; the parties share `total` calls fairly.
        """
        self._kind = kind
        self._each = each
        self._total = total
        self._open: Counter[str] = Counter()
        self._parties = FairCount(total)

    def __len__(self) -> int:
        """Return the number of open calls."""
        return self._parties.total

    @contextmanager
    def of(self, user: str) -> Iterator[None]:
        """Count a call of a user, or of a peer, until the block ends.

        Raises:
            TooMany: the call exceeds a bound.
        """
        party = party_of(user)
        if self._open[user] >= self._each:
            raise TooMany(f"{user} has {self._each} {self._kind} open; end one of them")
        if len(self) >= self._total:
            raise TooMany(f"there are {self._total} {self._kind}; try again")
        if not self._parties.has_room(party):
            own = self._parties.of(party)
            part = f"{party} has {own} {self._kind} open, which is its share"
            raise TooMany(f"{part} of {self._total}; end one of them")
        self._open[user] += 1
        self._parties.add(party)
        try:
            yield
        finally:
            self._parties.add(party, -1)
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]


class CallCounts:
    """Counts of open calls.

    Attributes:
        peers: open calls by peer, counted from before the authentication.
        users: open calls by user.
        watches: open watches by user.
        anonymous: short calls without a token, by peer: health.
        lasting: long calls without a token, by peer: health watches and reflection; counted apart,
            so that they do not exclude short ones.
    """

    def __init__(self) -> None:
        """Begin with no calls."""
        self.peers = CallCount("calls", each=256)
        self.users = CallCount("calls", each=128)
        self.watches = CallCount("watches", each=32, total=256)
        self.anonymous = CallCount("calls without a token", each=8, total=64)
        self.lasting = CallCount("watches without a token", each=8, total=64)


class FairLock:
    """A lock that consumers get in turn, so that the calls of one delay another's by one."""

    def __init__(self) -> None:
        """Begin unlocked."""
        self._is_held = False
        self._waiting = FairQueue[asyncio.Future[None]]()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the lock for the present consumer until the block ends."""
        if self._is_held:
            await self._wait()
        self._is_held = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.put(present_consumer.get(), turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # Its turn had come.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_held = False
