"""Evictions: a plan is carried out through the API server, which keeps PodDisruptionBudgets.

The annotations, the event and the results that are counted are those of
kubernetes-sigs/descheduler (pkg/descheduler/evictions/evictions.go), so that webhooks and
dashboards made for it keep working. The precondition is ours: a pod that has taken the place of
the one that was judged stays.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import structlog

from reserver.backoff import Backoff
from reserver.errors import ApiError
from reserver.kube.api.client import ApiClient
from reserver.kube.api.eviction import Reply, evict, eviction
from reserver.printable import printable
from reserver.rebalance.plan import Move
from reserver.wire.times import show_micro

log = structlog.get_logger(__name__)

_NAME = "sigs.k8s.io/descheduler"
_CONTROLLER = "sigs.k8s.io.descheduler"
_MOST_NOTE = 1024
"""Bound on an event's note, in bytes: NoteLengthLimit in pkg/apis/core/validation/events.go."""

_MOST_INSTANCE = 128
"""Bound on ``reportingInstance``, in bytes (as above)."""

_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 10.0


class Result(StrEnum):
    """How an eviction ended: the label ``result`` of ``descheduler_pods_evicted_total``."""

    SUCCESS = "success"
    BACKGROUND = "background"
    ERROR = "error"


class Outcome(NamedTuple):
    """What became of a move.

    Attributes:
        move: what was to be done.
        result: how it ended.
        at: when, in unix seconds.
        why: what kept it from being done; empty if it was done.
    """

    move: Move
    result: Result
    at: float
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a round evicts.

    Attributes:
        grace_period_s: what pods get to end, in seconds; None for their own.
        tells_failures: an eviction that fails is an event as well.
        patience_s: how long one round tries what a budget forbids for now, in seconds.
    """

    grace_period_s: int | None = None
    tells_failures: bool = False
    patience_s: float = 60.0


class Pace:
    """A bound on how often something is done: so many times at once, then at a steady rate."""

    def __init__(self, per_second: float, burst: int) -> None:
        """Allow `burst` turns at once and `per_second` from then on."""
        self._every_s = 1 / per_second
        self._ahead_s = (burst - 1) / per_second
        self._next = float("-inf")

    def turn_in(self, now: float) -> float:
        """Take a turn; return how long to wait for it, in seconds."""
        self._next = max(self._next, now - self._ahead_s) + self._every_s
        return max(0.0, self._next - self._every_s - now)


@dataclass(slots=True)
class _Attempt:
    """A move that is tried until it is known what became of it.

    Attributes:
        move: what is to be done.
        backoff: how long to wait for the next attempt.
        why: what kept the latest one from succeeding.
        is_open: a request was left without an answer, and may have been carried out.
    """

    move: Move
    backoff: Backoff
    why: str = ""
    is_open: bool = False


class Evictions:
    """Evicts pods, at a bounded rate."""

    def __init__(
        self,
        client: ApiClient,
        clock: Callable[[], float],
        instance: str,
        pace: Pace,
        counted: Callable[[Outcome], None] = lambda _: None,
    ) -> None:
        """Evict through a client.

        Args:
            client: to the API server.
            clock: unix seconds.
            instance: names this process in events.
            pace: how often a request may be sent.
            counted: told of each outcome.
        """
        self._client = client
        self._clock = clock
        self._instance = instance
        self._pace = pace
        self._counted = counted

    async def carry_out(self, moves: Iterable[Move], terms: Terms) -> list[Outcome]:
        """Evict the pods of a plan, in its order; return what became of each.

        What a budget forbids is tried again while others go on, until the round's patience ends.
        So is a request without an answer: the precondition makes that safe.
        """
        until = self._clock() + terms.patience_s
        due = [
            (0.0, order, _Attempt(move, Backoff(_FIRST_PAUSE_S, _LAST_PAUSE_S)))
            for order, move in enumerate(moves)
        ]
        outcomes = []
        while due:
            at, order, attempt = heapq.heappop(due)
            await self._wait(at)
            result = await self._try(attempt, terms)
            if result is None:
                again = self._clock() + attempt.backoff.failed()
                if again <= until:
                    heapq.heappush(due, (again, order, attempt))
                    continue
            why = "" if result is Result.SUCCESS else attempt.why
            outcome = Outcome(attempt.move, result or Result.ERROR, self._clock(), why)
            outcomes.append(outcome)
            await self._tell(outcome, terms)
        return outcomes

    async def _wait(self, at: float) -> None:
        now = self._clock()
        pause = max(at - now, self._pace.turn_in(max(at, now)))
        if pause > 0:
            await asyncio.sleep(pause)

    async def _try(self, attempt: _Attempt, terms: Terms) -> Result | None:
        """Send a request; return how it ended, or None if it is to be sent again."""
        move = attempt.move
        reason = f"triggered by {move.profile}/{move.strategy}: {move.reason}"
        annotations = {"reason": reason, "requested-by": _NAME}
        body = eviction(move.pod, move.uid, terms.grace_period_s, annotations)
        reply, attempt.why = await evict(self._client, body)
        if reply is Reply.GONE:
            return Result.SUCCESS if attempt.is_open else Result.ERROR
        attempt.is_open = attempt.is_open or reply is Reply.UNSURE
        return _RESULTS.get(reply)

    async def _tell(self, outcome: Outcome, terms: Terms) -> None:
        """Log and count what became of a move, and write an event on the pod."""
        move, why = outcome.move, outcome.why
        context = {"pod": str(move.pod), "node": move.source, "strategy": move.strategy}
        if outcome.result is Result.ERROR:
            log.warning("pod not evicted", **context, profile=move.profile, why=why)
        else:
            log.info("evicted pod", **context, profile=move.profile, reason=move.reason)
        self._counted(outcome)
        if outcome.result is Result.ERROR and not terms.tells_failures:
            return
        path = f"/apis/events.k8s.io/v1/namespaces/{move.pod.namespace}/events"
        try:
            await self._client.create(path, _event(outcome, self._instance))
        except ApiError as exc:
            log.warning("event not written", pod=str(move.pod), why=str(exc))


_RESULTS = {
    Reply.ACCEPTED: Result.SUCCESS,
    Reply.IN_BACKGROUND: Result.BACKGROUND,
    Reply.REFUSED: Result.ERROR,
}
"""How an eviction ended; after any other reply the request is sent again."""


def _event(outcome: Outcome, instance: str) -> dict[str, object]:
    move = outcome.move
    has_failed = outcome.result is Result.ERROR
    note = f"pod eviction from {move.source} node by {_NAME}"
    if has_failed:
        note += f" failed: {outcome.why}"
    elif move.reason:
        note += f": {move.reason}"
    short = printable(note).encode()[:_MOST_NOTE].decode(errors="ignore")
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            # As client-go names events: events.k8s.io takes no generateName that ends with a dot.
            "name": f"{move.pod.name[:200].rstrip('.-')}.{int(outcome.at * 1e9):x}",
            "namespace": move.pod.namespace,
        },
        "eventTime": show_micro(outcome.at),
        "reportingController": _CONTROLLER,
        "reportingInstance": f"{_CONTROLLER}-{instance}"[:_MOST_INSTANCE],
        "action": "Descheduled",
        "reason": "EvictionFailed" if has_failed else move.strategy,
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": move.pod.namespace,
            "name": move.pod.name,
            "uid": move.uid,
        },
        "note": short,
        "type": "Warning" if has_failed else "Normal",
    }
