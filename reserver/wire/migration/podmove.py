"""PodMove objects of reserver.io/v1alpha1: what one asks for, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.errors import InvalidInput
from reserver.migration.move import (
    ALONE,
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    MOST_IN_GROUP,
    NOBODY,
    Group,
    Mode,
    Move,
    Phase,
    Reason,
    Replacement,
    Spec,
    Status,
)
from reserver.reservations.placement import ANYWHERE
from reserver.wire.k8s import names
from reserver.wire.k8s.objects import Metadata, decode, decode_part
from reserver.wire.limits import TENANT, Int64, check_count
from reserver.wire.spec import placementform
from reserver.wire.spec.object import API_VERSION
from reserver.wire.times import parse_duration, parse_moment, show_micro

KIND = "PodMove"
COLLECTION = f"/apis/{API_VERSION}/podmoves"
"""The path of all PodMoves of a cluster."""

INVALID = "InvalidSpec"
"""The reason of a PodMove that cannot be read."""

MOST_BYTES = 8_192
"""Bound on a spec; all that the schema allows takes less."""

MOST_GRACE_S = 24 * 3600
"""How long a pod that moves may take to end, in seconds."""

MOST_KEPT_S = 30 * 24 * 3600
"""How long a PodMove may be kept after its end, in seconds."""

MOST_LABELS = 16
"""How many labels ``to.nodeSelector`` may ask for."""

_MOST_GROUP_NAME = 253
_MOST_UID = 64


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of what people write; refuses unknown fields."""


class PodObject(_Strict):
    """``pod`` as it is written."""

    name: str
    uid: str = ""


class TargetObject(_Strict):
    """``to`` as it is written."""

    node: str = ""
    node_selector: dict[str, str] = {}


class DeleteOptionsObject(_Strict):
    """``deleteOptions`` as they are written."""

    grace_period_seconds: Annotated[int, msgspec.Meta(ge=0, le=MOST_GRACE_S)] | None = None


class GroupObject(_Strict):
    """``group`` as it is written."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=1, le=MOST_IN_GROUP)]


class SpecObject(_Strict):
    """The spec as it is written."""

    pod: PodObject
    to: TargetObject | None = None
    mode: Mode = Mode.RESERVE_FIRST
    timeout: str | None = None
    delete_options: DeleteOptionsObject | None = None
    group: GroupObject | None = None
    paused: bool = False
    ttl_seconds_after_finished: Annotated[int, msgspec.Meta(ge=0, le=MOST_KEPT_S)] | None = None


class ControllerObject(msgspec.Struct):
    """``status.controller``."""

    kind: str = ""
    name: str = ""


class ReplacementObject(msgspec.Struct):
    """``status.replacement``."""

    name: str = ""
    uid: str = ""
    node: str = ""


class Condition(msgspec.Struct, rename="camel", frozen=True):
    """A condition (metav1.Condition)."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: Int64 = 0


class StatusObject(msgspec.Struct, rename="camel", kw_only=True):
    """The whole status subresource, as Reserver writes it; what is None is taken away."""

    phase: Phase
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    pod_uid: str | None = msgspec.field(default=None, name="podUID")
    controller: ControllerObject | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    reservation: str | None = None
    replacement: ReplacementObject | None = None
    started_at: str | None = None
    evicted_at: str | None = None
    finished_at: str | None = None
    conditions: list[Condition] = []


class MoveMetadata(Metadata, frozen=True):
    """The metadata of a PodMove."""

    creation_timestamp: str = ""
    generation: Int64 = 0


class MoveObject(msgspec.Struct, frozen=True):
    """A PodMove on the wire; spec and status stay raw, so a broken one does not hide it."""

    metadata: MoveMetadata = MoveMetadata()
    spec: msgspec.Raw = msgspec.Raw(b"")
    status: msgspec.Raw = msgspec.Raw(b"")

    @property
    def name(self) -> PodName:
        """Namespace and name."""
        return PodName(self.metadata.namespace, self.metadata.name)


def collection(namespace: str) -> str:
    """Return the path of the PodMoves of a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/podmoves"


def path(name: PodName) -> str:
    """Return the path of a PodMove."""
    return f"{collection(name.namespace)}/{name.name}"


def status_path(name: PodName) -> str:
    """Return the path of the status of a PodMove."""
    return f"{path(name)}/status"


def read_object(item: MoveObject) -> Move:
    """Return the move that a PodMove asks for, and how far it is.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    try:
        spec = _spec(item)
    except InvalidInput as exc:
        raise exc.under("spec") from exc
    created_at = parse_moment(item.metadata.creation_timestamp)
    status = read_status(item)
    return Move(
        name=item.name, uid=item.metadata.uid, created_at=created_at, spec=spec, status=status
    )


def keep_for(item: MoveObject) -> int | None:
    """Return how long a PodMove is kept after its end, in seconds; None for ever.

    Raises:
        InvalidInput: its spec cannot be read.
    """
    return decode(SpecObject, item.spec).ttl_seconds_after_finished


def read_status(item: MoveObject) -> Status:
    """Return how far a PodMove is.

    Raises:
        InvalidInput: the status is not one that Reserver writes; the error carries the path.
    """
    said = decode_part(StatusObject, bytes(item.status), "status")
    if said is None:
        return Status()
    came, made_by = said.replacement, said.controller
    try:
        return Status(
            phase=said.phase,
            reason=Reason(said.reason) if said.reason else None,
            message=said.message,
            uid=said.pod_uid or "",
            controller=Controller(made_by.kind, made_by.name) if made_by else NO_CONTROLLER,
            source=said.from_ or "",
            target=said.to or "",
            seat=said.reservation or "",
            replacement=Replacement(came.name, came.uid, came.node) if came else NOBODY,
            started_at=_moment(said.started_at),
            evicted_at=_moment(said.evicted_at),
            finished_at=_moment(said.finished_at),
        )
    except ValueError as exc:
        problem = f"{said.reason[:40]!r} is no reason of a move"
        raise InvalidInput("status.reason", problem, "leave the status to Reserver") from exc


def said(item: MoveObject) -> StatusObject | None:
    """Return the status of a PodMove; None if it has none that Reserver wrote."""
    try:
        return decode(StatusObject, item.status)
    except InvalidInput:
        return None


def show_status(status: Status, generation: int) -> StatusObject:
    """Return how far a move is, as it is written of a generation of the spec."""
    came = status.replacement
    return StatusObject(
        phase=status.phase,
        reason=status.reason or "",
        message=status.message,
        observed_generation=generation,
        pod_uid=status.uid or None,
        controller=ControllerObject(*status.controller) if status.controller.kind else None,
        from_=status.source or None,
        to=status.target or None,
        reservation=status.seat or None,
        replacement=ReplacementObject(*came) if came.uid else None,
        started_at=_shown(status.started_at),
        evicted_at=_shown(status.evicted_at),
        finished_at=_shown(status.finished_at),
        conditions=list(_conditions(status, generation)),
    )


def _conditions(status: Status, generation: int) -> Iterator[Condition]:
    """Yield what `kubectl wait` may wait for."""
    reason, message = status.reason or status.phase, status.message
    if status.evicted_at is not None:
        at, left = show_micro(status.evicted_at), f"the pod has left {status.source}"
        yield Condition("Evicted", "True", "PodLeft", left, at, generation)
    if status.finished_at is not None:
        at = show_micro(status.finished_at)
        yield Condition("Done", "True", reason, message, at, generation)


def refused(problem: InvalidInput, generation: int) -> StatusObject:
    """Return the status of a PodMove that is not carried out because it cannot be read."""
    return StatusObject(
        phase=Phase.FAILED,
        reason=INVALID,
        message=str(problem),
        observed_generation=generation,
    )


def _spec(item: MoveObject) -> Spec:
    if len(item.spec) > MOST_BYTES:
        problem = f"{len(item.spec)} bytes are too many for a move"
        raise InvalidInput("", problem, f"keep it under {MOST_BYTES}")
    said = decode(SpecObject, item.spec)
    namespace, to = item.metadata.namespace, said.to or TargetObject()
    options = said.delete_options or DeleteOptionsObject()
    names.check_subdomain(said.pod.name, "pod.name", "a pod's name")
    _check_length(said.pod.uid, "pod.uid", _MOST_UID)
    if to.node:
        names.check_subdomain(to.node, "to.node", "a node's name")
        if to.node_selector:
            remedy = "keep one of them"
            raise InvalidInput("to.nodeSelector", "cannot be set together with to.node", remedy)
    check_count(to.node_selector, "to.nodeSelector", MOST_LABELS)
    placement = ANYWHERE
    if to.node_selector:
        try:
            wanted = {"nodeSelector": to.node_selector}
            placement = placementform.read(wanted, namespace, TENANT)
        except InvalidInput as exc:
            raise exc.under("to") from exc
    return Spec(
        pod=PodName(namespace, said.pod.name),
        uid=said.pod.uid,
        node=to.node,
        placement=placement,
        mode=said.mode,
        timeout_s=_timeout(said.timeout),
        grace_period_s=options.grace_period_seconds,
        group=_group(said),
        paused=said.paused,
    )


def _timeout(text: str | None) -> float:
    if text is None:
        return DEFAULT_TIMEOUT_S
    try:
        seconds = parse_duration(text)
    except InvalidInput as exc:
        raise exc.under("timeout") from exc
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise InvalidInput("timeout", f"{text} is out of range", "write more than 0s, at most 24h")
    return seconds


def _group(said: SpecObject) -> Group:
    if said.group is None:
        return ALONE
    if said.mode is not Mode.RESERVE_FIRST:
        problem = f"its members wait for each other's seats, and {said.mode} takes none"
        raise InvalidInput("group", problem, f"remove it, or write mode {Mode.RESERVE_FIRST}")
    if not said.group.name:
        raise InvalidInput("group.name", "is empty", "write what its members have in common")
    _check_length(said.group.name, "group.name", _MOST_GROUP_NAME)
    return Group(said.group.name, said.group.size)


def _check_length(text: str, path: str, most: int) -> None:
    if len(text) > most:
        raise InvalidInput(path, f"{len(text)} characters are too many", f"write {most} at most")


def _moment(text: str | None) -> float | None:
    return None if text is None else parse_moment(text)


def _shown(seconds: float | None) -> str | None:
    return None if seconds is None else show_micro(seconds)
