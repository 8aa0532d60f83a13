"""Limits on what the clients of an HTTP listener may use."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """Bounds on what the clients of a listener may use.

    Attributes:
        connections: in all; beyond it, idle connections give way to new ones.
        new: connections that have not yet sent a complete request head.
        new_per_peer: such connections from one IP address.
        request_s: seconds for a TLS handshake, and for a request from its first byte to its last.
        unread_s: seconds that a client may leave an answer unread.
        idle_s: seconds that a connection may wait for its next request.
        lifetime_s: seconds that it may last, for one request; None for no bound on either.
        headers: header fields of a request.
        header_bytes: bytes of one header field, and of the request line.
        bodies: bytes of a body, by path; other paths accept none.
        queries: whether a path may be followed by a query there: API servers add their timeout.
        bodies_bytes: bytes of all bodies that are read and answered at once.
    """

    connections: int = 2048
    new: int = 100
    new_per_peer: int = 50
    request_s: float = 10.0
    unread_s: float = 10.0
    idle_s: float = 120.0  # kube-scheduler closes after 90: if it closes first, no call is lost.
    lifetime_s: float | None = None
    headers: int = 32
    header_bytes: int = 4096
    bodies: dict[str, int] = field(default_factory=dict)
    queries: bool = False
    bodies_bytes: int = 64 * 2**20
