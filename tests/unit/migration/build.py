"""Moves and what they see, so that a scenario reads as what it is about."""

from dataclasses import replace

from reserver.cluster.pod import Controller, PodName
from reserver.migration.advance import advance
from reserver.migration.move import Move, Phase, Reason, Spec
from reserver.migration.seen import Seen, SeenPod, SeenSeat

NOW = 1_900_000_000.0
WEB = Controller("ReplicaSet", "web-5d8f")
POD = SeenPod(uid="uid-web", node="worker-1", controller=WEB, requests={"cpu": 500, "pods": 1})
BACKED = SeenSeat(node="worker-2", is_backed=True)
UNPLACED = SeenSeat(obstacle="no node has room")


def move(phase: Phase = Phase.PENDING, spec: Spec | None = None) -> Move:
    """Return a move of the pod shop/web that has come to a phase."""
    made = Move(
        name=PodName("shop", "web-move"),
        uid="0123456789abcdef",
        created_at=NOW - 10,
        spec=spec or Spec(pod=PodName("shop", "web")),
    )
    if phase is Phase.PENDING:
        return made
    status = replace(
        made.status,
        phase=phase,
        uid=POD.uid,
        controller=WEB,
        source=POD.node,
        seat=made.seat_name,
        target="worker-2",
    )
    return replace(made, status=status)


def wanted(**fields: object) -> Spec:
    """Return what is wanted of a move of shop/web."""
    return Spec(pod=PodName("shop", "web"), **fields)  # type: ignore[arg-type]


def leaving() -> SeenPod:
    """Return the pod with a deletionTimestamp."""
    return replace(POD, is_leaving=True)


def seen(pod: SeenPod | None = POD, seat: SeenSeat | None = None, **fields: object) -> Seen:
    """Return what a step looks at."""
    return Seen(pod=pod, seat=seat, **fields)  # type: ignore[arg-type]


def judged(made: Move, what: Seen) -> tuple[Phase, Reason | None]:
    """Return where a move is after a step."""
    status = advance(made, what, NOW).move.status
    return status.phase, status.reason
