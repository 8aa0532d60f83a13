"""Specs as people write them (docs/reservations.md), to and from those of the client."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from reserver.client import (
    Controller,
    OwnerRule,
    PodOwner,
    Policy,
    Requirement,
    Reservation,
    Spec,
)
from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref
from reserver.wire.spec import ownerform, specform
from reserver.wire.spec.ownerform import OwnerEntry
from reserver.wire.times import parse_duration, parse_moment

_NOT_SENT = {
    "request_id": ("requestId", "is not read from files", "give --request-id"),
    "origin": ("origin", "is for reserver itself to write", "remove it"),
}


def read(document: Any, name: str, namespace: str, now: float) -> Spec:  # noqa: ANN401 - YAML
    """Return what a mapping asks for, refused here as the server would refuse it.

    Args:
        document: in the form of docs/reservations.md.
        name: of the reservation.
        namespace: of owners that do not say theirs.
        now: unix seconds.

    Raises:
        InvalidInput: a field is not acceptable; the error carries its path.
    """
    specform.read(document, Ref.of_object(namespace, name), now)
    written = specform.convert(document, specform.EntrySpec)
    for attribute, refusal in _NOT_SENT.items():
        if getattr(written, attribute):
            raise InvalidInput(*refusal)
    return Spec(
        owners=tuple(_owner(each, namespace) for each in written.owners),
        node=written.node,
        resources={resource: str(amount) for resource, amount in written.resources.items()},
        slots=written.slots,
        starts_at=None if written.starts_at is None else read_moment(written.starts_at),
        expires_at=None if written.expires_at is None else read_moment(written.expires_at),
        ttl=None if written.ttl is None else timedelta(seconds=parse_duration(str(written.ttl))),
        policy=Policy[written.policy.name],
        reusable=written.reusable,
        preemptible=written.preemptible,
        priority=written.priority,
        placement=written.placement,
    )


def show(reservation: Reservation) -> dict[str, Any]:
    """Return a reservation as `-o json` and `-o yaml` print it, and `create -f` reads it."""
    claims = [{"pod": claim.pod, "uid": claim.uid} for claim in reservation.claims]
    return {
        "name": reservation.name,
        "id": reservation.id,
        "etag": reservation.etag,
        "spec": show_spec(reservation.spec),
        "status": {
            "phase": reservation.phase.capitalize(),
            "backed": reservation.is_backed,
            "reason": reservation.reason,
            "message": reservation.message,
            "placements": [part._asdict() for part in reservation.placements],
            "claims": claims,
        },
    }


def read_moment(text: str) -> datetime:
    """Return an RFC 3339 time; the errors are those of `parse_moment`."""
    return datetime.fromtimestamp(parse_moment(text), UTC)


def show_spec(spec: Spec) -> dict[str, Any]:
    """Return what a reservation asks for, in the form of docs/reservations.md."""
    shown: dict[str, Any] = {"owners": [_show_owner(owner) for owner in spec.owners]}
    if spec.node:
        shown["node"] = spec.node
    if spec.placement is not None:
        shown["placement"] = dict(spec.placement)
    shown |= {"resources": dict(spec.resources), "slots": spec.slots}
    if spec.starts_at is not None:
        shown["startsAt"] = show_moment(spec.starts_at)
    if spec.expires_at is not None:
        shown["expiresAt"] = show_moment(spec.expires_at)
    if spec.ttl is not None:
        shown["ttl"] = show_duration(spec.ttl)
    shown["policy"] = spec.policy.capitalize()
    for field in ("reusable", "preemptible"):
        if getattr(spec, field):
            shown[field] = True
    if spec.priority is not None:
        shown["priority"] = spec.priority
    return shown


def show_duration(duration: timedelta) -> str:
    """Return a duration as ``ttl`` has it, such as ``1h30m``; ``0`` stands for ever."""
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    hours += 24 * duration.days
    parts = [(hours, "h"), (minutes, "m"), (seconds, "s"), (duration.microseconds // 1000, "ms")]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0"


def show_moment(moment: datetime) -> str:
    """Return a moment as RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _owner(entry: OwnerEntry, default: str) -> PodOwner | OwnerRule:
    parts = (entry.pod, entry.controller, entry.selector)
    namespace = next((each.namespace for each in parts if each and each.namespace), default)
    if entry.pod and not (entry.controller or entry.selector):
        return PodOwner(namespace, entry.pod.name)
    controller, selector = entry.controller, entry.selector
    expressions = selector.match_expressions if selector else ()
    return OwnerRule(
        namespace=namespace,
        pod=entry.pod.name if entry.pod else "",
        controller=Controller(controller.kind, controller.name) if controller else None,
        match_labels=selector.match_labels if selector else {},
        match_expressions=tuple(
            Requirement(each.key, each.operator, tuple(each.values)) for each in expressions
        ),
    )


def read_owner(entry: Mapping[str, Any], namespace: str) -> PodOwner | OwnerRule:
    """Return an entry of ``owners`` that flags stand for.

    Raises:
        InvalidInput: a name in it is not acceptable; the error carries its path.
    """
    written = msgspec.convert(entry, OwnerEntry)
    ownerform.read([written], namespace)
    return _owner(written, namespace)


def _show_owner(owner: PodOwner | OwnerRule) -> dict[str, Any]:
    if isinstance(owner, PodOwner):
        return {"pod": {"name": owner.name, "namespace": owner.namespace}}
    namespace = {"namespace": owner.namespace} if owner.namespace else {}
    shown: dict[str, Any] = {}
    if owner.pod:
        shown["pod"] = {"name": owner.pod, **namespace}
    if owner.controller is not None:
        shown["controller"] = {**owner.controller._asdict(), **namespace}
    selector: dict[str, Any] = {}
    if owner.match_labels:
        selector["matchLabels"] = dict(owner.match_labels)
    if owner.match_expressions:
        selector["matchExpressions"] = [
            {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
            for key, operator, values in owner.match_expressions
        ]
    if selector:
        shown["selector"] = {**selector, **namespace}
    return shown
