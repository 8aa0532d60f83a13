"""Readiness checks for the parts that decide on the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from reserver.base.pacer import Pacer
from reserver.errors import NotReady
from reserver.reservations.ledger import Ledger


class Readiness(Protocol):
    """How well the state shows the cluster (`reserver.process.readiness`)."""

    def obstacles(self) -> tuple[str, ...]:
        """Return what keeps the state from being good enough to decide on; empty if nothing."""

    async def caught_up(self) -> None:
        """Wait until no watch is known to have missed anything, for five seconds at most.

        Raises:
            NotReady: something still lacks then.
        """


def require_ready(readiness: Readiness) -> None:
    """Check that the state is good enough to decide on.

    Raises:
        NotReady: it is not.
    """
    if obstacles := readiness.obstacles():
        raise NotReady(f"reserver does not see the cluster yet: {'; '.join(obstacles)}")


async def up_to_date(readiness: Readiness, ledger: Ledger, clock: Callable[[], float]) -> None:
    """Return once no watch is known to have missed anything, and due holds have begun and ended.

    Raises:
        NotReady: the state is not good enough to decide on.
    """
    await readiness.caught_up()
    while ledger.is_due(clock()):
        await Pacer().run(ledger.advancing(clock()))
        await readiness.caught_up()
    require_ready(readiness)
