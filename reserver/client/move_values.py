"""Values of the calls about moves of pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from reserver.client.values import ChangeKind
from reserver.migration.move import ENDED, Group, Mode, Phase, Replacement


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSpec:
    """The spec of a move.

    Attributes:
        pod: the name of the pod that is to leave its node.
        pod_uid: its UID; empty for the pod that has the name when the move begins.
        after: the PodMove that moves the pod first: what comes in its place is to leave; empty if
            it follows none.
        node: where to; empty for any node that fits.
        node_selector: labels that the node must have, instead of `node`.
        mode: what has to be there before the eviction.
        timeout: from its creation, or, if it follows another one, from when its pod has come; None
            for ten minutes.
        grace_period_s: what the pod gets to end, in seconds; None for its own period.
        group: the moves that it evicts together with; None if it is alone. `Moves.create` takes it
            beside the moves.
        paused: it does not go on.
        keep_s: it is deleted so long after its end, in seconds; None for never.
    """

    pod: str
    pod_uid: str = ""
    after: str = ""
    node: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.RESERVE_FIRST
    timeout: timedelta | None = None
    grace_period_s: int | None = None
    group: Group | None = None
    paused: bool = False
    keep_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMove:
    """A move as it was when the server answered.

    Attributes:
        namespace: of the PodMove and of its pod.
        name: its name.
        uid: tells it from another one of that name.
        spec: what it asks for; None if that cannot be read.
        phase: how far it is; None if this client does not know that phase.
        reason: why it is there, in one word; empty before anybody has looked.
        message: the same in a sentence.
        pod: the pod that leaves, if it has come with the PodMove that this one follows; else empty.
        source: the node that the pod leaves; empty before it is known.
        target: the node of the seat, or where the replacement has landed; empty before.
        reservation: the name of the Reservation that is the seat; empty if it has none.
        replacement: the pod that has come in its place; None as long as there is none.
        created: when it was created.
        started: when it had its turn; None before.
        evicted: when the pod was seen to leave; None before.
        finished: when it ended; None before.
    """

    namespace: str
    name: str
    uid: str
    spec: MoveSpec | None
    phase: Phase | None
    reason: str
    message: str
    pod: str
    source: str
    target: str
    reservation: str
    replacement: Replacement | None
    created: datetime | None
    started: datetime | None
    evicted: datetime | None
    finished: datetime | None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.phase in ENDED


class MoveChange(NamedTuple):
    """One change of a move."""

    kind: ChangeKind
    move: PodMove
