"""Moves and their observations, in few words for scenarios."""

from dataclasses import replace

from reserver.cluster.pod import Controller, PodName
from reserver.moves.advance import advance
from reserver.moves.model import Move, MoveSpec
from reserver.moves.observation import Observation, ObservedPod, ObservedSeat
from reserver.moves.phases import MovePhase, MoveReason

NOW = 1_900_000_000.0
WEB = Controller("ReplicaSet", "web-5d8f")
POD = ObservedPod(uid="uid-web", node="worker-1", controller=WEB, requests={"cpu": 500, "pods": 1})
BACKED = ObservedSeat(node="worker-2", is_backed=True)
UNPLACED = ObservedSeat(obstacle="no node has room")


def move(phase: MovePhase = MovePhase.PENDING, spec: MoveSpec | None = None) -> Move:
    """Return a move of the pod shop/web in a phase."""
    made = Move(
        name=PodName("shop", "web-move"),
        uid="0123456789abcdef",
        created_at=NOW - 10,
        spec=spec or MoveSpec(pod=PodName("shop", "web")),
    )
    if phase is MovePhase.PENDING:
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


def wanted(**fields: object) -> MoveSpec:
    """Return the spec of a move of shop/web."""
    return MoveSpec(pod=PodName("shop", "web"), **fields)  # type: ignore[arg-type]


def leaving() -> ObservedPod:
    """Return the pod with a deletionTimestamp."""
    return replace(POD, is_leaving=True)


def seen(
    pod: ObservedPod | None = POD, seat: ObservedSeat | None = None, **fields: object
) -> Observation:
    """Return the observation that a step reads."""
    return Observation(pod=pod, seat=seat, **fields)  # type: ignore[arg-type]


def judged(made: Move, what: Observation) -> tuple[MovePhase, MoveReason | None]:
    """Return the phase and the reason of a move after a step."""
    status = advance(made, what, NOW).move.status
    return status.phase, status.reason


def metadata(space: str, name: str, revision: int) -> dict[str, str]:
    """Return the metadata of a PodMove as a watch shows it."""
    return {
        "name": name,
        "namespace": space,
        "uid": f"uid-{space}-{name}",
        "resourceVersion": str(revision),
        "creationTimestamp": "2030-01-01T00:00:00Z",
    }
