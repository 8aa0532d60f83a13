"""All connections of a listener: the calls that are refused unread, and the connections to close.

Every process of this machine can reach loopback, and a browser sends there any request of any page
(CSRF), under any name that the page's owner resolves to it (DNS rebinding). So only calls that no
page can make are read: for one of our hosts, with JSON, and without the headers that browsers add.
There are no CORS headers, so browsers refuse calls that need a preflight.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Generic, NamedTuple, Protocol, TypeVar

_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[0-9A-Za-z._-]{1,253})(:[0-9]{1,5})?")
_SHOWN = 100


class CheckFailure(NamedTuple):
    """A refusal: an HTTP status, a reason in one word, and a remedy."""

    status: HTTPStatus
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that calls may name: the host of kube-scheduler's `urlPrefix`, a probe's address.

    Attributes:
        names: DNS names and IP addresses, in lower case.
        any_address: any IP address is allowed: only the listener at an address serves its pages.
    """

    names: frozenset[str]
    any_address: bool

    @classmethod
    def of(cls, bind_address: str, allowed: Iterable[str]) -> Hosts:
        """Return the hosts of a listener: its address, loopback, and the allowed ones."""
        names = {"localhost", bind_address.lower(), *(host.lower() for host in allowed)}
        return cls(frozenset(names), ipaddress.ip_address(bind_address).is_unspecified)

    def have(self, header: str) -> bool:
        """Return whether a `Host` header names one of these hosts, with any port."""
        match = _HOST.fullmatch(header)
        if match is None:
            return False
        host = match[1].strip("[]").lower()
        if host in self.names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return self.any_address or address.is_loopback


def refusal(
    method: str, target: str, headers: Mapping[str, str], hosts: Hosts, bodies: Mapping[str, int]
) -> CheckFailure | None:
    """Return the reason to refuse a call unread; None if it is read.

    Header names are in lower case. `bodies` has the most bytes by path; other paths accept none.
    """
    if not target.startswith("/"):
        return CheckFailure(HTTPStatus.BAD_REQUEST, "target", "the request line has to name a path")
    if not hosts.have(host := headers.get("host", "")):
        return CheckFailure(
            HTTPStatus.MISDIRECTED_REQUEST,
            "host",
            f"Host: {host[:_SHOWN]!r} is not served here; call a loopback address, or start "
            "reserver with --allowed-host",
        )
    if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
        return CheckFailure(HTTPStatus.FORBIDDEN, "origin", "pages in browsers may not call")
    return _of_body(method, target, headers, bodies)


def _of_body(
    method: str, target: str, headers: Mapping[str, str], bodies: Mapping[str, int]
) -> CheckFailure | None:
    if "content-encoding" in headers:
        problem = "Content-Encoding: compressed bodies are not accepted"
        return CheckFailure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "encoding", problem)
    if "transfer-encoding" in headers:
        problem = "Transfer-Encoding: send Content-Length instead"
        return CheckFailure(HTTPStatus.LENGTH_REQUIRED, "length", problem)
    length, most = int(headers.get("content-length", "0")), bodies.get(target, 0)
    if length > most:
        problem = f"Content-Length: {length} is over {most} bytes"
        return CheckFailure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "length", problem)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (method == "POST" or length) and kind != "application/json":
        problem = f"Content-Type: {kind[:_SHOWN]!r} is not application/json"
        return CheckFailure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "type", problem)
    return None


class ConnectionStage(Enum):
    """The stage of a connection."""

    NEW = auto()
    """No complete head of a request has arrived yet."""

    BUSY = auto()
    """A request is being read or answered."""

    IDLE = auto()
    """Its last request is answered."""


class OpenConnection(Protocol):
    """A connection."""

    peer: str
    stage: ConnectionStage


C = TypeVar("C", bound=OpenConnection)


class Connections(Generic[C]):
    """The connections of a listener.

    A client that opens many connections and sends nothing displaces only its own, as long as it has
    more than any other client; a connection whose request is being answered is never displaced.
    """

    def __init__(self, most: int, most_new: int, most_new_per_peer: int) -> None:
        """Begin without connections."""
        self._most = most
        self._most_new = most_new
        self._most_new_per_peer = most_new_per_peer
        self._new: dict[str, dict[C, None]] = {}  # By peer; each peer's oldest is first.
        self._new_count = 0
        self._idle: dict[C, None] = {}  # The connection that has waited longest is first.
        self._open: set[C] = set()

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._open)

    def __iter__(self) -> Iterator[C]:
        """Return an iterator over a copy of the connections."""
        return iter(tuple(self._open))

    def __contains__(self, connection: C) -> bool:
        """Return whether the listener has the connection."""
        return connection in self._open

    @property
    def idle(self) -> tuple[C, ...]:
        """Connections that wait for a request after their first."""
        return tuple(self._idle)

    def is_full(self, peer: str) -> bool:
        """Return whether a connection must be closed before a new one of a peer has room."""
        return (
            len(self._new.get(peer, ())) >= self._most_new_per_peer
            or self._new_count >= self._most_new
            or len(self._open) >= self._most
        )

    def next_to_go(self, peer: str) -> C | None:
        """Return the connection to close for a new one of a peer; None if all are busy."""
        if len(self._new.get(peer, ())) >= self._most_new_per_peer:
            return next(iter(self._new[peer]))
        if self._new_count < self._most_new and self._idle:
            return next(iter(self._idle))
        if not self._new:
            return None
        largest = max(self._new.values(), key=len)
        return next(iter(largest))

    def add(self, connection: C) -> None:
        """Add a new connection."""
        connection.stage = ConnectionStage.NEW
        self._new.setdefault(connection.peer, {})[connection] = None
        self._new_count += 1
        self._open.add(connection)

    def begin(self, connection: C) -> None:
        """Handle a request whose head has arrived."""
        if connection in self._open:
            self._leave(connection)
        connection.stage = ConnectionStage.BUSY

    def end(self, connection: C) -> None:
        """Handle a connection whose request is answered."""
        if connection in self._open:
            connection.stage = ConnectionStage.IDLE
            self._idle[connection] = None

    def remove(self, connection: C) -> None:
        """Remove a connection, if it is there."""
        if connection in self._open:
            self._leave(connection)
            self._open.remove(connection)

    def _leave(self, connection: C) -> None:
        if connection.stage is ConnectionStage.IDLE:
            self._idle.pop(connection, None)
        elif connection.stage is ConnectionStage.NEW:
            of_peer = self._new[connection.peer]
            del of_peer[connection]
            self._new_count -= 1
            if not of_peer:
                del self._new[connection.peer]


class Bodies(Generic[C]):
    """The bodies of a listener, whose total size is bounded.

    A client that announces many bodies and does not send them displaces only its own, as long as it
    has more bytes than any other client; a body that has arrived is never displaced.
    """

    def __init__(self, most: int) -> None:
        """Begin without bodies; together they may take `most` bytes."""
        self._most = most
        self._total = 0
        self._sizes: dict[C, int] = {}
        self._coming: dict[str, dict[C, int]] = {}  # By peer; each peer's oldest is first.

    def is_full(self, size: int) -> bool:
        """Return whether a sender must be closed before a body of `size` bytes has room."""
        return self._total + size > self._most

    def next_to_go(self) -> C | None:
        """Return the sender to close; None if all bodies have arrived."""
        if not self._coming:
            return None
        largest = max(self._coming.values(), key=lambda of_peer: sum(of_peer.values()))
        return next(iter(largest))

    def add(self, sender: C, size: int) -> None:
        """Add a body that is announced."""
        self._sizes[sender] = size
        self._total += size
        self._coming.setdefault(sender.peer, {})[sender] = size

    def arrived(self, sender: C) -> None:
        """Mark a body as arrived; repeatable."""
        of_peer = self._coming.get(sender.peer, {})
        if of_peer.pop(sender, None) is not None and not of_peer:
            del self._coming[sender.peer]

    def remove(self, sender: C) -> None:
        """Remove a body; repeatable."""
        self.arrived(sender)
        self._total -= self._sizes.pop(sender, 0)
