"""Refuses HTTP calls unread that come from browsers, for other hosts, or too large.

Loopback is open to everybody on this machine, and a browser there does what any page tells it to
(CSRF), under any name that the page's owner points here (DNS rebinding). So only calls that no page
can make are read: for one of our hosts, with JSON, and without the headers that browsers add. There
are no CORS headers, so browsers refuse calls that need a preflight.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[0-9A-Za-z._-]{1,253})(:[0-9]{1,5})?")
_SHOWN = 100


class CheckFailure(NamedTuple):
    """Why a call is refused: a status, a word for it, and what to do about it."""

    status: HTTPStatus
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that calls may name: that of kube-scheduler's `urlPrefix`, a probe's address.

    Attributes:
        names: DNS names and IP addresses, in lower case.
        any_address: any IP address, too: only who listens at an address can serve pages from it.
    """

    names: frozenset[str]
    any_address: bool

    @classmethod
    def of(cls, bind_address: str, allowed: Iterable[str]) -> Hosts:
        """Return the hosts of a listener: its address, loopback, and the allowed ones."""
        names = {"localhost", bind_address.lower(), *(host.lower() for host in allowed)}
        return cls(frozenset(names), ipaddress.ip_address(bind_address).is_unspecified)

    def have(self, header: str) -> bool:
        """Whether the value of a `Host` header is one of these, with any port."""
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
    """Return why a call is refused unread; None if it is read.

    Headers are by name in lower case. `bodies` has the most bytes by path; other paths take none.
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
