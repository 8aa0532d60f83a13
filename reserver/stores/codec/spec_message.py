"""Converts a spec (docs/reservations.md) to the message of the gRPC API and back.

The JSON form of the message differs from the spec in enums and times only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import parse_duration, parse_moment, show_duration, show_micro
from reserver.v1 import reservation_pb2 as pb

_POLICY = "POLICY_"
_STRATEGY = "STRATEGY_"
_TIMES = ("startsAt", "expiresAt", "ttl")
_DURATIONS = {"duration", "lead"}
"""The durations of a schedule."""


def to_document(spec: pb.ReservationSpec) -> dict[str, Any]:
    """Return a message as a spec of docs/reservations.md, with times in RFC 3339.

    Raises:
        InvalidInput: a field has no JSON form.
    """
    try:
        written: dict[str, Any] = json_format.MessageToDict(spec)
    except (ValueError, json_format.Error):
        for field, value in spec.ListFields():
            _check_field(field, value)
        raise
    if "policy" in written:
        written["policy"] = _word(written["policy"], _POLICY, "policy").capitalize()
    if spec.HasField("release_if_idle"):
        written["releaseIfIdle"] = show_duration(spec.release_if_idle.ToTimedelta())
    for parent, name in _maps(written):
        parent[name] = _in_order(parent[name])
    placement = written["placement"] = whole(written.get("placement", {}))
    if not placement:
        del written["placement"]
    if "strategy" in placement:
        placement["strategy"] = _word(placement["strategy"], _STRATEGY, "placement.strategy")
    schedule = written.get("schedule", {})
    for name in _DURATIONS & schedule.keys():
        schedule[name] = show_duration(timedelta(seconds=float(schedule[name].removesuffix("s"))))
    return written


def _check_field(field: FieldDescriptor, value: Any) -> None:  # noqa: ANN401 - of any field
    """Refuse a field without a JSON form: a time out of range, or NaN."""
    try:
        json_format.MessageToDict(pb.ReservationSpec(**{field.name: value}))
    except (ValueError, json_format.Error) as exc:
        problem = f"cannot be written as JSON: {shorten(str(exc), 200)}"
        raise InvalidInput(field.json_name, problem, "check its times and numbers") from exc


def _maps(written: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield parent and field of each map with names by users, which a message does not order."""
    selectors = (owner.get("selector", {}) for owner in written.get("owners", ()))
    placement, nodes = written.get("placement", {}), written.get("nodes", {})
    places = [(written, "resources"), (nodes, "selector")]
    places += [(each, "matchLabels") for each in selectors]
    for parent, name in (*places, *((placement, each) for each in placement)):
        if name in parent:
            yield parent, name


def _in_order(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def to_message(document: Mapping[str, Any]) -> pb.ReservationSpec:
    """Return a spec of docs/reservations.md as a message, without startsAt, expiresAt and ttl.

    Raises:
        json_format.ParseError: the document is not a spec.
    """
    fields = {name: value for name, value in document.items() if name not in _TIMES}
    fields["resources"] = {
        name: str(amount) for name, amount in fields.get("resources", {}).items()
    }
    if (idle := fields.get("releaseIfIdle")) is not None:
        fields["releaseIfIdle"] = f"{parse_duration(idle):.6f}s"
    if "policy" in fields:
        fields["policy"] = f"{_POLICY}{fields['policy'].upper()}"
    placement = fields.get("placement")
    if placement and "strategy" in placement:
        fields["placement"] = placement | {
            "strategy": f"{_STRATEGY}{placement['strategy'].upper()}"
        }
    if fields.get("schedule") is not None:
        fields["schedule"] = _with_json_times(fields["schedule"])
    return json_format.ParseDict(fields, pb.ReservationSpec(), ignore_unknown_fields=True)


def _with_json_times(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schedule with its times in the JSON form of protobuf."""
    fields = dict(schedule)
    for name in _DURATIONS & fields.keys():
        fields[name] = f"{parse_duration(fields[name]):.3f}s"
    if fields.get("until") is not None:
        fields["until"] = show_micro(parse_moment(fields["until"]))
    fields["skip"] = [show_micro(parse_moment(each)) for each in fields.get("skip", ())]
    return fields


def whole(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return a value with its whole numbers as integers; a protobuf Struct has only floats."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _word(value: str | int, prefix: str, path: str) -> str:
    """Return an enum value in lower case without its prefix; refuse unknown values (numbers)."""
    word = str(value)
    if not word.startswith(prefix):
        raise InvalidInput(path, f"{word} is not known", "use a value of the contract")
    return word.removeprefix(prefix).lower()
