"""The codec of the status of PodMoves."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reserver.cluster.pod import NO_CONTROLLER, Controller
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.limits import Int64
from reserver.k8s.objects.objects import Condition, decode_or_none, decode_part
from reserver.k8s.objects.times import parse_moment, show_micro, show_moment
from reserver.moves.model import NOBODY, MoveStatus, Replacement
from reserver.moves.phases import MovePhase, MoveReason

_REASONS = frozenset(MoveReason)


class ControllerObject(msgspec.Struct):
    """``status.controller``."""

    kind: str = ""
    name: str = ""


class ReplacementObject(msgspec.Struct):
    """``status.replacement``."""

    name: str = ""
    uid: str = ""
    node: str = ""


class StatusObject(msgspec.Struct, rename="camel", kw_only=True):
    """The whole status subresource, as Reserver writes it; None removes a field."""

    phase: MovePhase
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    pod_uid: str | None = msgspec.field(default=None, name="podUID")
    pod: str | None = None
    found_at: str | None = None
    window_opens_at: str | None = None
    window_opened_at: str | None = None
    controller: ControllerObject | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    reservation: str | None = None
    replacement: ReplacementObject | None = None
    fallback: str | None = None
    fell_back_at: str | None = None
    surged_at: str | None = None
    handed_over_at: str | None = None
    started_at: str | None = None
    evicted_at: str | None = None
    finished_at: str | None = None
    conditions: list[Condition] = []


def read_status(raw: msgspec.Raw) -> MoveStatus:
    """Return the status of a PodMove; a reason of another version reads as none.

    Raises:
        InvalidInput: this version did not write the status; the error carries the path.
    """
    said = decode_part(StatusObject, bytes(raw), "status")
    if said is None:
        return MoveStatus()
    came, owner = said.replacement, said.controller
    with under("status"):
        return MoveStatus(
            phase=said.phase,
            reason=MoveReason(said.reason) if said.reason in _REASONS else None,
            message=said.message,
            uid=said.pod_uid or "",
            pod=said.pod or "",
            found_at=_moment(said.found_at),
            opens_at=_moment(said.window_opens_at),
            opened_at=_moment(said.window_opened_at),
            controller=Controller(owner.kind, owner.name) if owner else NO_CONTROLLER,
            source=said.from_ or "",
            target=said.to or "",
            seat=said.reservation or "",
            replacement=Replacement(came.name, came.uid, came.node) if came else NOBODY,
            fallback=said.fallback or "",
            fell_back_at=_moment(said.fell_back_at),
            surged_at=_moment(said.surged_at),
            handed_at=_moment(said.handed_over_at),
            started_at=_moment(said.started_at),
            evicted_at=_moment(said.evicted_at),
            finished_at=_moment(said.finished_at),
        )


def said(raw: msgspec.Raw) -> StatusObject | None:
    """Return the written status of a PodMove; None if empty, or if Reserver did not write it."""
    return decode_or_none(StatusObject, raw)


def has_begun(raw: msgspec.Raw) -> bool:
    """Return whether a PodMove may have begun, or has ended: its status has to stay as it is.

    Another version may have written what this one cannot read, after an eviction.
    """
    if bytes(raw) in {b"", b"null"}:
        return False
    found = said(raw)
    is_new = found and (found.phase is MovePhase.PENDING or found.reason == MoveReason.INVALID_SPEC)
    return not is_new


def show_status(status: MoveStatus, generation: int) -> StatusObject:
    """Return the status of a move for one generation of its spec."""
    came = status.replacement
    return StatusObject(
        phase=status.phase,
        reason=status.reason or "",
        message=status.message,
        observed_generation=generation,
        pod_uid=status.uid or None,
        pod=status.pod or None,
        found_at=_shown(status.found_at),
        window_opens_at=show_moment(status.opens_at) if status.opens_at else None,
        window_opened_at=_shown(status.opened_at),
        controller=ControllerObject(*status.controller) if status.controller.kind else None,
        from_=status.source or None,
        to=status.target or None,
        reservation=status.seat or None,
        replacement=ReplacementObject(*came) if came.uid else None,
        fallback=status.fallback or None,
        fell_back_at=_shown(status.fell_back_at),
        surged_at=_shown(status.surged_at),
        handed_over_at=_shown(status.handed_at),
        started_at=_shown(status.started_at),
        evicted_at=_shown(status.evicted_at),
        finished_at=_shown(status.finished_at),
        conditions=list(_conditions(status, generation)),
    )


def _conditions(status: MoveStatus, generation: int) -> Iterator[Condition]:
    """Yield the conditions, for `kubectl wait`."""
    reason, message = status.reason or status.phase, status.message
    if status.opened_at is not None:
        at = show_micro(status.opened_at)
        yield Condition("WindowOpened", "True", "WindowOpened", "its window opened", at, generation)
    if status.fell_back_at is not None:
        at = show_micro(status.fell_back_at)
        yield Condition("Surged", "False", "FellBack", status.fallback, at, generation)
    elif status.surged_at is not None:
        at, started = show_micro(status.surged_at), "a copy of the pod may start"
        yield Condition("Surged", "True", "StartsCopy", started, at, generation)
    if status.evicted_at is not None:
        at, left = show_micro(status.evicted_at), f"the pod has left {status.source}"
        yield Condition("Evicted", "True", "PodLeft", left, at, generation)
    if status.finished_at is not None:
        at = show_micro(status.finished_at)
        yield Condition("Done", "True", reason, message, at, generation)


def refused(problem: InvalidInput, generation: int) -> StatusObject:
    """Return the status of an invalid PodMove."""
    return StatusObject(
        phase=MovePhase.FAILED,
        reason=MoveReason.INVALID_SPEC,
        message=str(problem),
        observed_generation=generation,
    )


def _moment(text: str | None) -> float | None:
    return None if text is None else parse_moment(text)


def _shown(seconds: float | None) -> str | None:
    return None if seconds is None else show_micro(seconds)
