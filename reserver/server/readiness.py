"""How well the state shows the cluster, for those who decide on it."""

from __future__ import annotations

from typing import Protocol

from reserver.errors import NotReady


class Readiness(Protocol):
    """How well the state shows the cluster (`reserver.readiness`)."""

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps the state from being good enough to decide on; empty if nothing."""

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed anything, but not longer than is excused."""


def require_ready(readiness: Readiness) -> None:
    """Check that the state is good enough to decide on.

    Raises:
        NotReady: it is not.
    """
    if obstacles := readiness.obstacles():
        raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")
