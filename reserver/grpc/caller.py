"""The caller of a call: its user, and the part of its address that it cannot change."""

from __future__ import annotations

import ipaddress
from contextvars import ContextVar

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
