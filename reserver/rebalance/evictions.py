"""Carries out a plan by the Eviction API, which enforces PodDisruptionBudgets.

The annotations follow kubernetes-sigs/descheduler (pkg/descheduler/evictions/evictions.go), so that
its webhooks keep working. Reserver adds the UID as a precondition: a later pod of the same name
stays.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reserver.base.clock import is_ahead
from reserver.base.pacer import Backoff
from reserver.k8s.client import ApiClient
from reserver.k8s.eviction import Reply, evict, eviction
from reserver.rebalance.outcomes import NAME, MoveOutcome, OutcomeReporter, Result, Terms
from reserver.rebalance.plan import PlannedMove

FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 10.0
"""Between attempts, in seconds: the first time, and at most."""


class Pace:
    """A bound on how often something is done: so many times at once, then at a steady rate."""

    def __init__(self, per_second: float, burst: int) -> None:
        """Allow `burst` turns at once and `per_second` from then on."""
        self._every_s = 1 / per_second
        self._ahead_s = (burst - 1) / per_second
        self._next = self._last = float("-inf")

    def turn_in(self, now: float) -> float:
        """Take a turn; return how long to wait for it, in seconds."""
        if now < self._last:  # The clock was set back.
            self._next = now
        self._last = now
        self._next = max(self._next, now - self._ahead_s) + self._every_s
        return max(0.0, self._next - self._every_s - now)

    async def wait(self, now: float, at: float = 0.0) -> None:
        """Take a turn, at a moment or later, and wait for it."""
        at = at if is_ahead(at, now, longest_s=LAST_PAUSE_S) else now
        pause = max(at - now, self.turn_in(max(at, now)))
        if pause > 0:
            await asyncio.sleep(pause)


@dataclass(slots=True)
class _Attempt:
    """A move that is tried until its outcome is certain.

    Attributes:
        move: the planned move.
        backoff: the delay before the next attempt.
        why: the reason why the latest attempt failed.
        is_open: a request had no answer, and may have been carried out.
    """

    move: PlannedMove
    backoff: Backoff
    why: str = ""
    is_open: bool = False


@dataclass(eq=False, repr=False)
class PacedMoves:
    """Carries out moves, at a bounded rate.

    Attributes:
        clock: unix seconds.
        pace: the rate limit of requests.
        reporter: receives each outcome.
    """

    client: ApiClient
    clock: Callable[[], float]
    pace: Pace
    reporter: OutcomeReporter


class Evictions(PacedMoves):
    """Evicts pods."""

    async def carry_out(self, moves: Iterable[PlannedMove], terms: Terms) -> list[MoveOutcome]:
        """Evict the pods of a plan, in its order; return the outcomes.

        An eviction that a budget forbids, or whose request has no answer, is tried again while
        other evictions go on, until the round's patience ends. The precondition makes a repetition
        safe.
        """
        until = self.clock() + terms.patience_s
        due = [
            (0.0, order, _Attempt(move, Backoff(FIRST_PAUSE_S, LAST_PAUSE_S)))
            for order, move in enumerate(moves)
        ]
        outcomes = []
        while due:
            at, order, attempt = heapq.heappop(due)
            await self.pace.wait(self.clock(), at)
            result = await self._try(attempt, terms)
            if result is None:
                again = self.clock() + attempt.backoff.failed()
                if is_ahead(until, again, longest_s=terms.patience_s):
                    heapq.heappush(due, (again, order, attempt))
                    continue
            why = "" if result is Result.SUCCESS else attempt.why
            outcome = MoveOutcome(attempt.move, result or Result.ERROR, self.clock(), why)
            outcomes.append(outcome)
            await self.reporter.report(outcome, terms)
        return outcomes

    async def _try(self, attempt: _Attempt, terms: Terms) -> Result | None:
        """Send a request; return how it ended, or None if it is to be sent again."""
        move = attempt.move
        reason = f"triggered by {move.profile}/{move.strategy}: {move.reason}"
        annotations = {"reason": reason, "requested-by": NAME}
        body = eviction(move.pod, move.uid, terms.grace_period_s, annotations)
        reply, attempt.why = await evict(self.client, body)
        if reply is Reply.GONE:
            return Result.SUCCESS if attempt.is_open else Result.ERROR
        attempt.is_open = attempt.is_open or reply is Reply.UNSURE
        return _RESULTS.get(reply)


_RESULTS = {
    Reply.ACCEPTED: Result.SUCCESS,
    Reply.IN_BACKGROUND: Result.BACKGROUND,
    Reply.REFUSED: Result.ERROR,
}
"""The result of an eviction by reply; after any other reply the request is sent again."""
