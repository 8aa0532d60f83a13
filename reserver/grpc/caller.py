"""The caller of the current call."""

from __future__ import annotations

from contextvars import ContextVar

LOCAL = "loopback"
"""Any caller on a loopback listener: on this machine, or in this pod."""

caller: ContextVar[str] = ContextVar("caller", default=LOCAL)
"""The name of the user."""
