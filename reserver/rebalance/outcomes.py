"""Reports the outcomes of a round's moves: log, metrics, events on pods.

The event and the counted results follow kubernetes-sigs/descheduler
(pkg/descheduler/evictions/evictions.go), so that its dashboards keep working.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import structlog

from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.times import show_micro
from reserver.printable import printable
from reserver.rebalance.plan import PlannedMove

log = structlog.get_logger(__name__)

NAME = "sigs.k8s.io/descheduler"
_CONTROLLER = "sigs.k8s.io.descheduler"
_MOST_NOTE = 1024
"""Bound on an event's note, in bytes: NoteLengthLimit in pkg/apis/core/validation/events.go."""

_MOST_INSTANCE = 128
"""Bound on ``reportingInstance``, in bytes (as above)."""


class Result(StrEnum):
    """The result of an eviction: the label ``result`` of ``descheduler_pods_evicted_total``."""

    SUCCESS = "success"
    BACKGROUND = "background"
    ERROR = "error"


class MoveOutcome(NamedTuple):
    """The outcome of a move.

    Attributes:
        move: the planned move.
        result: its result.
        at: unix seconds of the result.
        why: the reason of a failure; empty after a success.
        pod_move: the name of its PodMove; empty if the pod was evicted.
    """

    move: PlannedMove
    result: Result
    at: float
    why: str = ""
    pod_move: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The settings of a round's evictions.

    Attributes:
        grace_period_s: the termination grace period, in seconds; None for the pods' own.
        tells_failures: a failed eviction is an event as well.
        patience_s: seconds in which one round repeats evictions that a budget forbids.
    """

    grace_period_s: int | None = None
    tells_failures: bool = False
    patience_s: float = 60.0


@dataclass(eq=False, repr=False)
class OutcomeReporter:
    """Reports the outcomes of moves.

    Attributes:
        instance: the name of this process in events.
        counted: receives each outcome.
    """

    client: ApiClient
    instance: str
    counted: Callable[[MoveOutcome], None] = lambda _: None

    async def report(self, outcome: MoveOutcome, terms: Terms) -> None:
        """Log and count what became of a move, and write an event on the pod."""
        move, why = outcome.move, outcome.why
        about = {"pod": str(move.pod), "node": move.source, "strategy": move.strategy}
        context = {**about, **move.worth}
        if outcome.result is Result.ERROR:
            log.warning("pod not evicted", **context, profile=move.profile, why=why)
        elif outcome.pod_move:
            log.info("wrote PodMove", **context, profile=move.profile, name=outcome.pod_move)
        else:
            log.info("evicted pod", **context, profile=move.profile, reason=move.reason)
        self.counted(outcome)
        if outcome.result is Result.ERROR and not terms.tells_failures:
            return
        path = f"/apis/events.k8s.io/v1/namespaces/{move.pod.namespace}/events"
        try:
            await self.client.create(path, _event(outcome, self.instance))
        except ApiError as exc:
            log.warning("event not written", pod=str(move.pod), why=str(exc))


def _event(outcome: MoveOutcome, instance: str) -> dict[str, object]:
    move = outcome.move
    has_failed = outcome.result is Result.ERROR
    note = f"pod eviction from {move.source} node by {NAME}"
    if outcome.pod_move:
        note += f" through PodMove {outcome.pod_move}"
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
