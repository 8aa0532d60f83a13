"""Converts messages of the gRPC API to and from the client's values.

Fields correspond by name. A field needs a line here only if its type differs in the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache, partial
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from reserver.client.spec_parts import Nodes, OccurrenceInfo, RecurringSchedule
from reserver.client.values import (
    Claim,
    ControllerOwner,
    LabelRequirement,
    Lend,
    OwnerSelector,
    PastClaim,
    PlacedSlots,
    PodOwner,
    ReplacedPod,
    ReservationInfo,
    ResourceAmounts,
    Selection,
    Spec,
)
from reserver.errors import InvalidInput
from reserver.reservations.enums import Outcome, Phase, Policy
from reserver.stores.codec.spec_message import to_document, to_message
from reserver.v1 import reservation_pb2 as pb

_ENUMS: dict[str, type[StrEnum]] = {"Phase": Phase, "Policy": Policy, "Outcome": Outcome}

_NESTED: dict[str, type[Any]] = {
    "Amounts": ResourceAmounts,
    "Claim": Claim,
    "Lend": Lend,
    "Nodes": Nodes,
    "Occurrence": OccurrenceInfo,
    "PastClaim": PastClaim,
    "PlacedSlots": PlacedSlots,
    "Schedule": RecurringSchedule,
}

Value = TypeVar("Value")
_Read = Callable[[Any], Any]
_Write = Callable[[Any], Any]


def read(found: Message, kind: type[Value]) -> Value:
    """Return the value of a message with the same fields; an absent field is None."""
    return kind(**_fields(found))


def read_reservation(found: pb.Reservation) -> ReservationInfo:
    """Return the value of a reservation message."""
    fields = _fields(found.status) | _fields(found, "spec", "status")
    spec = read_spec(found.spec, found.id.partition("/")[0])
    return ReservationInfo(spec=spec, is_backed=fields.pop("backed"), **fields)


def read_spec(found: pb.ReservationSpec, home: str = "") -> Spec:
    """Return the value of a spec message; `home` is the default namespace of owners."""
    fields = _fields(found, "owners")
    fields |= {"slots": fields["slots"] or 1, "policy": fields["policy"] or Policy.PREFER}
    return Spec(owners=tuple(read_owner(each, home) for each in found.owners), **fields)


def read_owner(found: pb.Owner, home: str) -> PodOwner | OwnerSelector:
    """Return the value of an owner message; `home` is the default namespace."""
    if not any(map(found.HasField, ("controller", "selector", "replaces"))):
        return PodOwner(namespace=found.pod.namespace or home, name=found.pod.name)
    namespaces = (found.pod.namespace, found.controller.namespace, found.selector.namespace)
    controller = ControllerOwner(found.controller.kind, found.controller.name)
    replaced = ReplacedPod(found.replaces.uid, tuple(found.replaces.existing))
    return OwnerSelector(
        namespace=next(filter(None, namespaces), home),
        pod=found.pod.name,
        controller=controller if found.HasField("controller") else None,
        match_labels=dict(found.selector.match_labels),
        match_expressions=tuple(
            LabelRequirement(each.key, each.operator, tuple(each.values))
            for each in found.selector.match_expressions
        ),
        replaces=replaced if found.HasField("replaces") else None,
    )


def write_spec(spec: Spec) -> pb.ReservationSpec:
    """Return the message of a spec.

    Raises:
        InvalidInput: a value has the wrong type; the error names the field.
    """
    if isinstance(spec.owners, PodOwner | OwnerSelector):
        raise InvalidInput("owners", "is one owner, not several", "write owners=[…]")
    for name, path in (("starts_at", "startsAt"), ("expires_at", "expiresAt")):
        check_zone(getattr(spec, name), path)
    written = pb.ReservationSpec()
    for field in written.DESCRIPTOR.fields:
        value = getattr(spec, field.name)
        writer = _WRITERS.get(field.name)
        try:
            message = writer(value) if writer else value
            written.MergeFrom(pb.ReservationSpec(**{field.name: message}))
        except (AttributeError, TypeError, ValueError) as exc:
            why = f": {exc}" if writer else f" as {type(value).__name__}"
            remedy = _REMEDIES.get(field.name, f"see Spec.{field.name}")
            raise InvalidInput(field.json_name, f"{value!r} cannot be sent{why}", remedy) from exc
    return written


def _write_resources(resources: Mapping[str, str]) -> dict[str, str]:
    for name, amount in resources.items():
        if not isinstance(amount, str):
            raise TypeError(f"the amount of {name} is {type(amount).__name__}, not str")
    return dict(resources)


def _write_placement(placement: Mapping[str, Any] | None) -> pb.Placement | None:
    if placement is None:
        return None
    return to_message({"placement": dict(placement)}).placement  # Empty allows any node.


def _write_nodes(nodes: Nodes | None) -> pb.Nodes | None:
    return None if nodes is None else pb.Nodes(count=nodes.count, selector=nodes.selector)


def _write_schedule(schedule: RecurringSchedule | None) -> pb.Schedule | None:
    if schedule is None:
        return None
    check_zone(schedule.until, "schedule.until")
    for index, skipped in enumerate(schedule.skip):
        check_zone(skipped, f"schedule.skip[{index}]")
    fields = {field.name for field in pb.Schedule.DESCRIPTOR.fields}
    return pb.Schedule(**{name: getattr(schedule, name) for name in fields})


def write_extension(name: str, until: datetime | timedelta, etag: str = "") -> pb.ExtendRequest:
    """Return the request that sets the expiry to a time, or to a duration from now.

    Raises:
        InvalidInput: the time has no zone.
    """
    request = pb.ExtendRequest(name=name, etag=etag)
    if isinstance(until, datetime):
        check_zone(until, "until")
        request.expires_at.FromDatetime(until)
    else:
        request.ttl.FromTimedelta(until)
    return request


def check_zone(moment: object, path: str) -> None:
    """Refuse a naive datetime: protobuf would take it as UTC, Python as local time.

    Raises:
        InvalidInput: at `path`.
    """
    if isinstance(moment, datetime) and moment.tzinfo is None:
        problem = f"{moment.isoformat()} has no time zone"
        raise InvalidInput(
            path, problem, "write for example datetime.now(UTC) + timedelta(hours=1)"
        )


def _write_owner(owner: PodOwner | OwnerSelector) -> pb.Owner:
    if isinstance(owner, PodOwner):
        return pb.Owner(pod={"namespace": owner.namespace, "name": owner.name})
    if not isinstance(owner, OwnerSelector):
        raise TypeError(f"{owner!r} is neither a PodOwner nor an OwnerSelector")
    home, selector = {"namespace": owner.namespace}, None
    if owner.match_labels or owner.match_expressions:
        expressions = [each._asdict() for each in owner.match_expressions]
        selector = {"match_labels": owner.match_labels, "match_expressions": expressions} | home
    return pb.Owner(
        pod={"name": owner.pod} | home if owner.pod else None,
        controller=owner.controller._asdict() | home if owner.controller else None,
        selector=selector,
        replaces=owner.replaces._asdict() if owner.replaces else None,
    )


_WRITERS: Mapping[str, _Write] = {
    "owners": lambda owners: [_write_owner(each) for each in owners],
    "resources": _write_resources,
    "policy": lambda policy: f"POLICY_{Policy(policy).name}",
    "placement": _write_placement,
    "lend": lambda lend: None if lend is None else pb.Lend(below_priority=lend.below_priority),
    "nodes": _write_nodes,
    "schedule": _write_schedule,
}
"""The converters of fields whose message differs from the value."""

_REMEDIES = {
    "owners": 'write [PodOwner(namespace="shop", name="web-0")]',
    "resources": 'write quantities as text: {"cpu": "2", "memory": "4Gi"}',
    "ttl": "write timedelta(hours=1)",
    "release_if_idle": "write timedelta(minutes=10)",
    "starts_at": "write datetime.now(UTC) + timedelta(hours=1)",
    "expires_at": "write datetime.now(UTC) + timedelta(hours=1)",
    "schedule": 'write RecurringSchedule(cron="0 22 * * *", duration=timedelta(hours=8))',
    "lend": "write Lend(below_priority=100)",
    "nodes": 'write Nodes(count=3, selector={"pool": "gpu"})',
    "policy": f"write {' or '.join(f'Policy.{each.name}' for each in Policy)}",
    "placement": "write what docs/reservations.md has below `placement`",
}


def write_selection(selection: Selection) -> pb.ReservationFilter:
    """Return the message of a selection."""
    made_by = selection.owner_controller
    return pb.ReservationFilter(
        node=selection.node,
        owner=str(selection.owner or ""),
        owner_namespace=selection.owner_namespace,
        owner_controller=made_by._asdict() if made_by else None,
        owner_labels=selection.owner_labels,
        phases=[f"PHASE_{phase.name}" for phase in selection.phases],
        label_selector=selection.label_selector,
    )


def _fields(found: Message, *without: str) -> dict[str, Any]:
    """Return the fields of a message as values, by name, except the fields in `without`."""
    return {
        name: None if is_optional and not found.HasField(name) else as_value(getattr(found, name))
        for name, as_value, is_optional in _readers(found.DESCRIPTOR)
        if name not in without
    }


@cache
def _readers(kind: Descriptor) -> tuple[tuple[str, _Read, bool], ...]:
    return tuple((each.name, _reader(each), each.has_presence) for each in kind.fields)


def _reader(field: FieldDescriptor) -> _Read:
    """Return the converter of a field."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        each = _reader_of_one(message.fields_by_name["value"])
        return lambda items: {key: each(items[key]) for key in items}
    each = _reader_of_one(field)
    return (lambda items: tuple(map(each, items))) if field.is_repeated else each


def _reader_of_one(field: FieldDescriptor) -> _Read:
    """Return the converter of a single value of a field, list or map."""
    if field.enum_type is not None:
        return partial(_word, field.enum_type)
    if field.message_type is None:
        return lambda value: value
    match field.message_type.name:
        case "Timestamp":
            return lambda moment: moment.ToDatetime(UTC)
        case "Duration":
            return lambda duration: duration.ToTimedelta()
        case "Placement":
            return _read_placement
        case name:
            return lambda each: read(each, _NESTED[name])


def _read_placement(found: pb.Placement) -> dict[str, Any]:
    spec = to_document(pb.ReservationSpec(placement=found))
    placement: dict[str, Any] = spec.get("placement", {})
    return placement


def _word(kind: EnumDescriptor, number: int) -> StrEnum | None:
    """Return a value of an enum; None if this version of the client does not define it."""
    with suppress(KeyError):
        word = kind.values_by_number[number].name
        return _ENUMS[kind.name][word.removeprefix(f"{kind.name.upper()}_")]
    return None
